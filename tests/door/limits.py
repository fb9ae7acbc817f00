"""Requests beyond a limit of size or work: which, and how far."""

from functools import partial
from typing import Any

from door.case import EDIT, LETTERS, TOKENS, asked

_limit = partial(asked, faults={"": "beyond_limit"}, problem="beyond-limit")
_of_last = partial(asked, faults="beyond_limit", problem="beyond-limit")
_of_config = partial(asked, problem="beyond-limit")
_WIDTH, _DEPTH = "/model/config/d_model", "/model/config/n_layers"


def _config(**given: object) -> dict[str, object]:
    """Changes to a config with one token; n_heads is 1 where it is not given."""
    config = {"d_model": 4, "attention": {"n_heads": 1}, "vocab": 5, **given}
    return {"/model/config": config, "/input": {"token_ids": [0]}}


def _ids(n: int, batch: int = 0) -> list[Any]:
    return [[0] * n] * batch if batch else [0] * n


SIZES = [
    _of_last("4,097 positions of a tensor", {"/input/tensor": [[1] * 4] * 4097}, says="positions"),
    _of_last("4,097 token ids", {"": TOKENS, "/input/token_ids": _ids(4097)}, says="positions"),
    _of_last(
        "100,000 token ids", {"": TOKENS, "/input/token_ids": _ids(100_000)}, says="positions"
    ),
    _of_last("4,097 positions in a batch", {"": TOKENS, "/input/token_ids": _ids(4097, 2)}),
    _of_last("4,097 letters", {"": LETTERS, "/input/text": "A" * 4097}, says="positions"),
    _of_last("65 inputs", {"": TOKENS, "/input/token_ids": _ids(1, 65)}, says="batch"),
    _of_last("65 inputs as a tensor", {"/input/tensor": [[[1] * 4]] * 65}, says="batch"),
    _of_last("10,000 inputs", {"": TOKENS, "/input/token_ids": _ids(1, 10_000)}, says="batch"),
    _of_last("10,000 texts", {"": LETTERS, "/input/text": ["A"] * 10_000}, says="batch"),
    _of_config("d_model of 8,193", _config(d_model=8193), {_WIDTH: "beyond_limit"}, says="d_model"),
    _of_config(
        "d_model of 1,048,576", _config(d_model=1 << 20), {_WIDTH: "beyond_limit"}, says="d_model"
    ),
    _of_config("65 blocks", _config(n_layers=65), {_DEPTH: "beyond_limit"}, says="blocks"),
    _of_config(
        "1,048,576 blocks", _config(n_layers=1 << 20), {_DEPTH: "beyond_limit"}, says="blocks"
    ),
    _of_config(
        "1,048,576 blocks of an encoder",
        _config(encoder={"attention": {"n_heads": 1}, "n_layers": 1 << 20}),
        {"/model/config/encoder/n_layers": "beyond_limit"},
        says="blocks",
    ),
]

_ROW = [{"name": "Z", "position": [-1]}]
WORK = [
    _limit("answer of more elements than may be", {
        **_config(attention={"n_heads": 8, "d_head": 1}), "/input/token_ids": _ids(1024),
        "/select": ["A"]}, says="answer_elements"),
    _limit("default answer of a long input", {
        **_config(d_model=256), "/input/token_ids": _ids(2048)}, says="answer_elements"),
    _limit("default answer of a deep model", {
        **_config(d_model=256, n_layers=64), "/input/token_ids": _ids(64)}),
    _limit("source_out of every position", {
        **_config(d_model=512), "/input/token_ids": _ids(512),
        "/select": [{"name": "source_out", "position": list(range(512))}]}),
    _limit("weights of more memory than may be", {
        **_config(d_model=8192, n_layers=8), "/select": _ROW}, says="memory_bytes"),
    _limit("widest and deepest model", {
        **_config(d_model=8192, n_layers=64), "/select": _ROW}, says="memory_bytes"),
    _limit("every width as large as it may be", {
        **_config(d_model=8192, n_layers=64, vocab=1 << 20, ffn={"d_ff": 1 << 20},
                  attention={"n_heads": 1 << 20, "d_head": 1 << 20, "d_value": 1 << 20}),
        "/select": _ROW}, says="memory_bytes"),
    _limit("every width in float64", {
        **_config(d_model=8192, n_layers=64, ffn={"d_ff": 1 << 20},
                  attention={"n_heads": 1 << 20, "d_head": 1 << 20, "d_value": 1 << 20}),
        "/dtype": "float64", "/select": _ROW}, says="memory_bytes"),
    _limit("more elements than 64 bits count", {
        **_config(d_model=8192, attention={"n_heads": 1 << 20, "d_head": 1, "d_value": 1}),
        "/input/token_ids": _ids(4096, 64),
        "/select": [{"name": "source_out", "position": [0] * 8192}]}, says="answer_elements"),
    _limit("million tokens of a vocabulary", {
        **_config(d_model=1024, vocab=1 << 20), "/select": _ROW}, says="memory_bytes"),
    _limit("million rows of learned positions", {
        **_config(d_model=1024, position={"kind": "learned", "n_positions": 1 << 20}),
        "/select": _ROW}, says="memory_bytes"),
    _limit("scores of 64 heads at 4,096 positions", {
        **_config(d_model=64, attention={"n_heads": 64}), "/input/token_ids": _ids(4096),
        "/select": _ROW}, says="memory_bytes"),
    _limit("alibi at 4,096 positions in a batch", {
        **_config(position={"kind": "alibi"}), "/input/token_ids": _ids(4096, 8),
        "/select": _ROW}, says="memory_bytes"),
    _limit("more arithmetic than may be", {
        **_config(d_model=1024, n_layers=4), "/input/token_ids": _ids(4000), "/select": _ROW},
        says="work_flops"),
    _limit("arithmetic of a long stack", {
        **_config(d_model=512, n_layers=60, ffn={"d_ff": 512}), "/input/token_ids": _ids(2000),
        "/select": _ROW}, says="work_flops"),
    _limit("all the experts there may be", {
        **_config(d_model=256, ffn={"kind": "moe", "n_experts": 1 << 12, "top_k": 1}),
        "/select": _ROW}, says="memory_bytes"),
    _limit("every expert of many for every token", {
        **_config(d_model=256, ffn={"kind": "moe", "n_experts": 64, "top_k": 64}),
        "/input/token_ids": _ids(4096), "/select": _ROW}),
    _limit("million types of tokens", {
        **_config(d_model=1024, token_types=1 << 20), "/select": _ROW}, says="memory_bytes"),
    _limit("patterns of a long input across a long memory", {
        **_config(d_model=64, attention={"n_heads": 64}, cross_attention=True),
        "/input": {"token_ids": _ids(2048), "memory": {"tensor": [[1] * 64] * 4096}},
        "/select": ["cross.pattern"]}, says="answer_elements"),
    _limit("widest and deepest encoder", {
        **_config(d_model=8192, encoder={"attention": {"n_heads": 1}, "n_layers": 63}),
        "/input": {"token_ids": [0], "memory": {"token_ids": [0]}},
        "/select": _ROW}, says="memory_bytes"),
    _limit("arithmetic of an encoder of a long memory", {
        **_config(d_model=1024, encoder={"attention": {"n_heads": 1}, "n_layers": 4}),
        "/input": {"token_ids": [0], "memory": {"token_ids": _ids(4000)}},
        "/select": _ROW}, says="work_flops"),
    _limit("logits of a large vocabulary", {
        **_config(d_model=64, vocab=100_000), "/input/token_ids": _ids(1000),
        "/select": ["logits"]}),
    _limit("limit of float64 that float32 keeps", {
        **_config(d_model=4096, ffn={"kind": "none"}, n_layers=3), "/dtype": "float64",
        "/select": _ROW}, says="memory_bytes"),
]  # fmt: skip

_TENSORS = "/model/weights/tensors"
COUNTS = [
    asked("4,097 tensors", {_TENSORS: {f"t{i}": [1] for i in range(4097)}}, "too_many_keys",
          says="at most 4096 keys"),
    asked("257 edits", {"/model/weights/edits": [EDIT] * 257}, "too_long", says="At most 256"),
    asked("1,001 selections", {"/select": ["A"] * 1001}, "too_long", says="At most 1000"),
    asked("17 axis words", {"/model/weights/edits": [{**EDIT, "where": {str(i): [0] for i in
          range(17)}}]}, {"/model/weights/edits/0/where": "too_many_keys"}, says="at most 16 keys"),
    asked("8,193 indices", {"/select": [{"name": "A", "head": [0] * 8193}]},
          {"/select/0/head": "wrong_length"}, says="From 1 to 8192"),
    asked("65,537 letters", {"/input/text": "A" * 65537}, "text_too_long", base=LETTERS,
          says="65536"),
]  # fmt: skip
