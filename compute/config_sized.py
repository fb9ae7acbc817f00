"""The rules of what a config says for sizing alone, and what of it no run takes."""

from collections.abc import Iterator
from dataclasses import replace

from compute.config import AttentionConfig, ModelConfig
from compute.errors import Fault


def rule(place: str, detail: str, expected: object = None, got: object = None) -> Fault:
    """A broken rule at a dotted place of a config."""
    return Fault(
        code="config_rule",
        detail=detail,
        place=tuple(int(part) if part.isdecimal() else part for part in place.split(".")),
        expected=expected,
        got=got,
    )


def not_run(config: ModelConfig) -> Iterator[Fault]:
    """A fault for each field that is sized and not run."""
    dense_too = config.ffn.first_dense > 0 or config.ffn.every > 1
    sized = {
        "attention.mla": (config.attention.mla is not None, "latent attention"),
        "ffn.first_dense": (config.ffn.first_dense > 0, "a mixture with dense blocks"),
        "ffn.every": (config.ffn.every > 1, "a mixture with dense blocks"),
        "ffn.d_dense": (config.ffn.d_dense > 0 and not dense_too, "a mixture with dense blocks"),
        "norm.gain": (not config.norm.gain, "norms without numbers"),
        "vocab_padded_to": (config.vocab_padded_to is not None, "a padded vocabulary"),
        "d_embed": (config.d_embed is not None, "an embedding of another width"),
        "distinct_blocks": (config.distinct_blocks is not None, "blocks that share weights"),
        "patches": (config.patches is not None, "patches of an image"),
    }
    for place, (said, words) in sized.items():
        if said:
            detail = f"{place}: {words} can be sized (POST /v1/sizing) and not run."
            yield replace(rule(place, detail), code="sized_only")


def dense_faults(config: ModelConfig) -> Iterator[Fault]:
    """Broken rules of a mixture with dense blocks."""
    ffn = config.ffn
    if ffn.first_dense > config.n_layers:
        detail = f"first_dense = {ffn.first_dense} is more than there are blocks."
        yield rule("ffn.first_dense", detail, f"at most {config.n_layers}", ffn.first_dense)
    if ffn.d_dense and not (ffn.first_dense or ffn.every > 1):
        yield rule(
            "ffn.d_dense", "d_dense is the width of dense blocks: give first_dense or every."
        )


def latent_faults(config: ModelConfig, attention: AttentionConfig) -> Iterator[Fault]:
    """Broken rules of latent attention."""
    mla = attention.mla
    if mla is None:
        return
    if attention.d_head != mla.d_nope + mla.d_rope:
        detail = f"With mla d_head is d_nope + d_rope = {mla.d_nope + mla.d_rope}; leave it out."
        expected = mla.d_nope + mla.d_rope
        yield rule("attention.d_head", detail, expected, attention.d_head)
    if attention.n_kv_heads != attention.n_heads:
        detail = "With mla every head has keys and values of its own: n_kv_heads = n_heads."
        yield rule("attention.n_kv_heads", detail, attention.n_heads, attention.n_kv_heads)
    yield from _not_latent(config, attention)


def _not_latent(config: ModelConfig, attention: AttentionConfig) -> Iterator[Fault]:
    """What is not known of latent attention."""
    unknown = {
        "attention.sinks": (attention.sinks, "With mla sinks are not known."),
        "attention.qk_norm": (
            attention.qk_norm != "none",
            "With mla the latent numbers are normalized: leave it out.",
        ),
        "cross_attention": (config.cross_attention, "Cross-attention with mla is not known."),
    }
    for name in ("q", "k", "v"):
        said = getattr(attention.bias, name)
        unknown[f"attention.bias.{name}"] = (said, f"mla has no bias of {name}.")
    for place, (said, detail) in unknown.items():
        if said:
            yield rule(place, detail)


def _sharing_faults(config: ModelConfig) -> Iterator[Fault]:
    distinct = config.distinct_blocks
    if distinct is None:
        return
    if distinct > config.n_layers:
        detail = f"distinct_blocks = {distinct} is more than there are blocks."
        yield rule("distinct_blocks", detail, f"at most {config.n_layers}", distinct)
    if config.ffn.first_dense or config.ffn.every > 1:
        yield rule("distinct_blocks", "Blocks that share weights are alike: all of experts.")


def _vocab_faults(config: ModelConfig) -> Iterator[Fault]:
    padded, vocab = config.vocab_padded_to, config.vocab
    if vocab is None:
        for place, said in (("vocab_padded_to", padded), ("d_embed", config.d_embed)):
            if said is not None:
                yield rule(place, f"{place} belongs to an embedding; it needs vocab.")
    elif padded is not None and padded < vocab:
        detail = f"vocab_padded_to = {padded} is less than vocab = {vocab}."
        yield rule("vocab_padded_to", detail, f"at least {vocab}", padded)
    if config.d_embed == config.d_model:
        detail = "d_embed is d_model: leave it out; there is no product between equal widths."
        yield rule("d_embed", detail, f"not {config.d_model}", config.d_embed)


def _patch_faults(config: ModelConfig) -> Iterator[Fault]:
    patches = config.patches
    if patches is None:
        return
    if patches.image_size % patches.patch_size:
        detail = f"image_size = {patches.image_size} is not a multiple of patch_size."
        expected = f"a multiple of {patches.patch_size}"
        yield rule("patches.image_size", detail, expected, patches.image_size)
    if config.vocab is not None:
        yield rule("patches", "Patches take the place of tokens: leave vocab out.")


def _extra_faults(config: ModelConfig) -> Iterator[Fault]:
    names = [extra.name for extra in config.extras]
    for at, name in enumerate(names):
        if name in names[:at]:
            yield rule(f"extras.{at}.name", "Each of extras has a name of its own.")


def faults(config: ModelConfig) -> Iterator[Fault]:
    """Broken rules of blocks that share weights, of tables, of patches and of extras."""
    yield from _sharing_faults(config)
    yield from _vocab_faults(config)
    yield from _patch_faults(config)
    yield from _extra_faults(config)
