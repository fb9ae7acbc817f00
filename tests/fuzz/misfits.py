"""One fault put into weights or into an input that have none, and where it must be found."""

from collections.abc import Callable
from typing import Any

from fuzz.parts import Drawn

Fault = tuple[str, str]
"""(code of the problem, pointer)"""


def another_shape(tensors: Drawn, name: str) -> Fault:
    tensors[name] = [tensors[name]] if _depth(tensors[name]) < 3 else [*tensors[name] * 2]
    return "shape-mismatch", name


def another_name(tensors: Drawn, name: str) -> Fault:
    tensors["blocks.7.attn.W_X"] = [1.0]
    return "shape-mismatch", "blocks.7.attn.W_X"


def a_word_inside(tensors: Drawn, name: str) -> Fault:
    inner, place = tensors[name], name
    while isinstance(inner[0], list):
        inner, place = inner[-1], f"{place}/{len(inner) - 1}"
    inner[-1] = "0.5"
    return "invalid-request", f"{place}/{len(inner) - 1}"


def a_row_too_long(tensors: Drawn, name: str) -> Fault:
    if _depth(tensors[name]) < 2 or len(tensors[name]) < 2:
        return a_word_inside(tensors, name)
    tensors[name][-1] = [*tensors[name][-1], tensors[name][-1][-1]]
    return "invalid-request", f"{name}/{len(tensors[name]) - 1}"


OF_WEIGHTS: tuple[Callable[[Drawn, str], Fault], ...] = (
    another_shape,
    another_name,
    a_word_inside,
    a_row_too_long,
)
"""Each changes nested lists of weights at a name so that there is one fault."""


def _depth(nested: Any) -> int:  # noqa: ANN401 - lists in lists
    return 1 + _depth(nested[0]) if isinstance(nested, list) else 0


def types_that_nothing_adds(config: Drawn, given: Drawn) -> Fault | None:
    if config["token_types"]:
        return None
    given["token_types"] = [0] * length_of(given)
    return "invalid-input", "token_types"


def type_beyond_the_table(config: Drawn, given: Drawn) -> Fault | None:
    if not config["token_types"]:
        return None
    given["token_types"] = [0] * (length_of(given) - 1) + [config["token_types"]]
    return "invalid-input", f"token_types/{length_of(given) - 1}"


def types_of_another_length(config: Drawn, given: Drawn) -> Fault | None:
    if not config["token_types"]:
        return None
    given["token_types"] = [0] * (length_of(given) + 1)
    return "invalid-input", "token_types"


def type_that_is_a_fraction(config: Drawn, given: Drawn) -> Fault | None:
    given["token_types"] = [0.5] * length_of(given)
    return "invalid-request", "token_types/0"


def memory_that_nothing_reads(config: Drawn, given: Drawn) -> Fault | None:
    if config["cross_attention"]:
        return None
    given["memory"] = {"tensor": [[1.0] * config["d_model"]]}
    return "invalid-input", "memory"


def no_memory(config: Drawn, given: Drawn) -> Fault | None:
    return ("invalid-input", "memory") if given.pop("memory", None) else None


def memory_of_another_width(config: Drawn, given: Drawn) -> Fault | None:
    if "memory" not in given:
        return None
    given["memory"] = {"tensor": [[1.0] * (config["d_model"] + 1)]}
    return "invalid-input", "memory/tensor"


def memory_of_a_batch(config: Drawn, given: Drawn) -> Fault | None:
    if "memory" not in given:
        return None
    given["memory"] = {"tensor": [[[1.0] * config["d_model"]]]}
    return "invalid-input", "memory"


def ids_that_nothing_embeds(config: Drawn, given: Drawn) -> Fault | None:
    if "memory" not in given:
        return None
    has_table = config["encoder"] is not None and config["vocab"] is not None
    beyond = config["vocab"] if has_table else 0
    given["memory"] = {"token_ids": [0, beyond]}
    return "invalid-input", "memory/token_ids" + ("/1" if has_table else "")


def mask_of_rows_of_another_number(config: Drawn, given: Drawn) -> Fault | None:
    if "memory" not in given:
        return None
    given["memory"] = {"tensor": [[1.0] * config["d_model"]], "key_mask": [True, True]}
    return "invalid-input", "memory/key_mask"


def positions_that_nothing_reads(config: Drawn, given: Drawn) -> Fault | None:
    if "memory" not in given or config["encoder"] is not None:
        return None
    given["memory"]["position_ids"] = [0] * length_of(given["memory"])
    return "invalid-input", "memory/position_ids"


def memory_of_nothing(config: Drawn, given: Drawn) -> Fault | None:
    given["memory"] = {}
    return "invalid-request", "memory"


def memory_of_a_memory(config: Drawn, given: Drawn) -> Fault | None:
    rows = {"tensor": [[1.0] * config["d_model"]]}
    given["memory"] = {**rows, "memory": rows}
    return "invalid-request", "memory/memory"


OF_INPUTS: tuple[Callable[[Drawn, Drawn], Fault | None], ...] = (
    types_that_nothing_adds,
    type_beyond_the_table,
    types_of_another_length,
    type_that_is_a_fraction,
    memory_that_nothing_reads,
    no_memory,
    memory_of_another_width,
    memory_of_a_batch,
    ids_that_nothing_embeds,
    mask_of_rows_of_another_number,
    positions_that_nothing_reads,
    memory_of_nothing,
    memory_of_a_memory,
)
"""Each changes an input of a resolved config so that there is one fault; None where it cannot."""


def length_of(given: Drawn) -> int:
    return len(given["tensor"])
