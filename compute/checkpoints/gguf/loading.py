"""A model from one .gguf file, or from a folder that holds just one."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from compute import config_rules
from compute.checkpoints import content, fitting, resolving, shards
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.family import Family
from compute.checkpoints.faults import refused
from compute.checkpoints.fields import Fields
from compute.checkpoints.fitting import Fitted
from compute.checkpoints.gguf import names, rope_freqs
from compute.checkpoints.gguf.architectures import Architecture, architecture_of
from compute.checkpoints.gguf.card import card
from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.checkpoints.gguf.keys import ALWAYS, Keys
from compute.checkpoints.gguf.quantized import NUMBERS
from compute.checkpoints.gguf.text import text_of
from compute.config import AttentionBias, FfnBias, ModelConfig
from compute.errors import ComputeError, Fault, ModelError

SUFFIX = ".gguf"


def found(path: Path) -> Path | None:
    """The one .gguf file that a path is, or that a folder holds; None where there is not one."""
    if path.suffix == SUFFIX and path.is_file():
        return path
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    return files[0] if len(files) == 1 else None


def load(path: Path) -> Checkpoint:
    """The model of a file, or of a folder's one file, by its header; or a ModelError.

    Weights are float32 whatever they are stored as, and mean what the family's do.
    """
    found_at = found(path)
    if found_at is None:
        raise refused(path.name, f"{path.name} is not, and does not hold, just one {SUFFIX} file.")
    return _loaded(found_at, path.name if path.is_dir() else path.stem)


def _loaded(path: Path, name: str) -> Checkpoint:
    file, raw = GgufFile.load(path)
    shapes = {tensor: entry.shape for tensor, entry in file.entries.items()}
    keys = Keys(raw, path.name, shapes)
    architecture = architecture_of(keys)
    with _named(path.name):
        config = _config(architecture, keys, file)
        fitted = _fitted(architecture, config, file)
    text, why_not = text_of(file, raw)
    return Checkpoint(
        name=name,
        family=architecture.family.name,
        config=config,
        reader=file,
        stored=fitted.stored,
        text=text,
        card=card(raw, file.entries, architecture.unsaid, why_not),
        content=content.content_of([file.header()], [file.mark.bytes], file),
        left_out={k: x for k, x in fitted.left_out.items() if k != rope_freqs.TENSOR},
    )


def _config(architecture: Architecture, keys: Keys, file: GgufFile) -> ModelConfig:
    """The family's config by the fields that the keys stand for, then what only the file knows."""
    _refuse_parts(keys)
    keys.refuse_others(architecture.known | ALWAYS)
    fields = architecture.fields(keys)
    keys.fields.check()
    ours = set(file.entries) | ({"lm_head.weight"} if "output.weight" in file.entries else set())
    config = resolving.config_of(architecture.family, Fields(fields), ours)
    keys.must_be("attention.causal", config.attention.mask == "causal")
    adapted = replace(
        config,
        attention=replace(config.attention, bias=_attention_bias(file)),
        ffn=replace(config.ffn, bias=_ffn_bias(file)),
        norm=replace(config.norm, gain_offset=0.0),  # Gemma's 1 is in the weights
        unembed_bias="output.bias" in file.entries,
    )
    return config_rules.check(_turned(adapted, architecture, keys, file))


def _refuse_parts(keys: Keys) -> None:
    """Before anything is made for each block: every block has tensors of its own."""
    if keys.fields.count_or("split.count", 1) > 1:  # 0: put together again
        keys.fields.fault("split.count", "is above 1: a part of a model is not read.")
    if not keys.rows("token_embd.weight"):
        keys.fields.fault("token_embd.weight", "is missing.")
    depth = keys.size("block_count")
    if depth > len(keys.shapes):
        keys.fields.fault(keys.key("block_count"), "is more than the file has tensors.")
    keys.fields.check()


def _attention_bias(file: GgufFile) -> AttentionBias:
    def has(*parts: str) -> bool:
        return any(f"blk.0.attn_{part}.bias" in file.entries for part in parts)

    return AttentionBias(q=has("q", "qkv"), k=has("k", "qkv"), v=has("v", "qkv"), o=has("output"))


def _ffn_bias(file: GgufFile) -> FfnBias:
    def has(part: str) -> bool:
        return f"blk.0.ffn_{part}.bias" in file.entries

    return FfnBias(in_=has("up"), gate=has("gate"), out=has("down"))


def _turned(
    config: ModelConfig, architecture: Architecture, keys: Keys, file: GgufFile
) -> ModelConfig:
    """Llama's: all of a head turns, for all of it lies interleaved; and Llama 3's scaling."""
    if architecture.turned:
        keys.must_be("rope.dimension_count", config.attention.d_head)
    keys.fields.check()
    if rope_freqs.TENSOR not in file.entries or not architecture.turned:
        return config
    scaling = rope_freqs.scaling_of(file, config.position)
    return replace(config, position=replace(config.position, scaling=scaling))


def _fitted(architecture: Architecture, config: ModelConfig, file: GgufFile) -> Fitted:
    family = Family(
        name=architecture.family.name,
        model_types=(),
        config=architecture.family.config,
        stored=lambda config: names.stored(
            config, file.entries.keys(), turned=architecture.turned, other=architecture.other
        ),
        ignored=re.compile(architecture.ignored),
    )
    same: Mapping[str, str] = {name: name for name in file.entries}
    return fitting.fitted(family, config, same, file.entries, readable=NUMBERS.keys())


@contextmanager
def _named(file: str) -> Iterator[None]:
    """Faults of what a folder would have in two files are faults of the one."""
    try:
        yield
    except ModelError as error:
        raise ModelError([_moved(fault, file) for fault in error.faults]) from error
    except ComputeError as error:  # a rule that the config breaks by what only the file knows
        raise ModelError([resolving.as_read(x, file) for x in error.faults]) from error


def _moved(fault: Fault, file: str) -> Fault:
    detail = fault.detail.replace(shards.WHOLE, file).replace(resolving.FILE, file)
    return replace(fault, detail=detail, place=(file, *fault.place[1:]))
