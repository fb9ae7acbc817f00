"""A model folder: config.json, tensors in safetensors files, tokenizer.json, README.md (the card).

At load config.json, the tokenizer and the headers are read; the numbers when they are asked for.
"""

from pathlib import Path

from compute.checkpoints import content, copies, fitting, json_file, resolving, shards
from compute.checkpoints.checkpoint import Checkpoint, check_whole
from compute.checkpoints.families.own import OWN
from compute.checkpoints.faults import fault, refused
from compute.checkpoints.fields import Fields
from compute.checkpoints.registry import family_for
from compute.checkpoints.shards import Shards
from compute.checkpoints.text import LARGEST_TOKENIZER, Text
from compute.errors import ModelError, refuse_if

__all__ = ["Checkpoint", "check_whole", "load"]

CONFIG, TOKENIZER, CARD = "config.json", "tokenizer.json", "README.md"
LARGEST_CARD = 1 << 20


def load(folder: Path) -> Checkpoint:
    """The model of a folder by all but its numbers; a ModelError says what does not fit.

    A folder in our own form has all four files, and its numbers are looked at.
    """
    if not (folder / CONFIG).is_file():
        raise refused(CONFIG, f"{folder.name} has no {CONFIG}.")
    config_bytes = json_file.read_bytes(folder / CONFIG, json_file.LARGEST_JSON)
    raw = json_file.parsed_object(config_bytes, CONFIG)
    family = family_for(raw.get("model_type"))
    if family is OWN:
        _refuse_missing(folder)
    found = shards.load(folder)
    form = fitting.variant(family, found.entries)
    names = fitting.known_names(form, found.entries)
    config = resolving.config_of(form, Fields(raw), names.keys())
    fitted = fitting.fitted(form, config, names, found.entries)
    copies.check(found, fitted)
    tokenizer = _maybe(folder / TOKENIZER, LARGEST_TOKENIZER)
    checkpoint = Checkpoint(
        name=folder.name,
        family=family.name,
        config=config,
        reader=found,
        stored=fitted.stored,
        text=None if tokenizer is None else Text.of_json(tokenizer),
        card=(_maybe(folder / CARD, LARGEST_CARD) or b"").decode("utf-8", errors="replace"),
        content=_content([config_bytes, tokenizer or b""], found),
        left_out=fitted.left_out,
    )
    if family is OWN:
        check_whole(checkpoint)
    return checkpoint


def _refuse_missing(folder: Path) -> None:
    missing = [name for name in (shards.WHOLE, TOKENIZER, CARD) if not (folder / name).is_file()]
    faults = [fault(name, f"{folder.name} has no {name}.") for name in missing]
    refuse_if(ModelError, faults)


def _maybe(path: Path, most: int) -> bytes | None:
    return json_file.read_bytes(path, most) if path.is_file() else None


def _content(small: list[bytes], found: Shards) -> str:
    headers = [file.header for file in found.files]
    sizes = [file.mark.bytes for file in found.files]
    return content.content_of([*small, *headers], sizes, found)
