"""Which weights a run fetches: those that are read until its last stage, in order of computing."""

from compute import stages
from compute.selection import Scene
from compute.sizing.tracing import work

_MOMENTS = (
    *("embed", "pos_embed", "type_embed", "embed_norm", "rel_bias"),
    *("blocks", "final_norm", "mlm_head", "mlm_norm", "unembed"),
)
"""What a stack computes and reads, by the first part of a name, in order."""

_BLOCKS = _MOMENTS.index("blocks")


def numbers(scene: Scene, needed: frozenset[str]) -> int:
    """Numbers of the weights that a run fetches: it stops after the last stage needed."""
    if not needed:
        return 0
    end = max(_moment(name) for name in needed)
    return sum(size * _times_read(name, scene, end) for name, size in work.sizes(scene.config))


def _moment(name: str) -> tuple[bool, int, int]:
    """When a stage is computed or a tensor read: the encoder first, a block's tensors together."""
    first = name.removeprefix(stages.ENCODER).partition(".")[0]
    part = _MOMENTS.index("unembed" if first == "logits" else first)
    return not stages.stack_of(name), part, (stages.layer_of(name) or 0) if part == _BLOCKS else 0


def _times_read(name: str, scene: Scene, end: tuple[bool, int, int]) -> int:
    """How many tensors of a kind are read until then: of so many blocks, or one, or none."""
    if not name.removeprefix(stages.ENCODER).startswith("blocks."):
        return int(any(at <= end for at in _reads(name, scene)))
    encoder = scene.config.encoder if stages.stack_of(name) else None
    own, (is_own, part, layer) = not stages.stack_of(name), end
    if (own, _BLOCKS) == (is_own, part):
        return layer + 1
    return (encoder or scene.config).n_layers if (own, _BLOCKS) < (is_own, part) else 0


def _reads(name: str, scene: Scene) -> list[tuple[bool, int, int]]:
    """When a tensor is read, which for the shared embedding may be never or several times."""
    if name != "embed.W_E":
        return [_moment(name)]
    reads = {
        stages.ENCODER + name: scene.memory_tokens,
        name: scene.tokens,
        "unembed.W_U": scene.config.tied,
    }
    return [_moment(at) for at, happens in reads.items() if happens]
