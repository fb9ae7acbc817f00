"""The keys of a GGUF file that a model's numbers depend on, as the fields of a config.json.

A key is `architecture.name`. One that is not listed here might change numbers, and is refused.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.fields import LARGEST_SIZE, Fields
from compute.checkpoints.gguf.taking import Value

Shapes = Mapping[str, tuple[int, ...]]
Raw = dict[str, object]

ALWAYS = frozenset(
    {
        "attention.causal",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.value_length",
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "pooling_type",
        "tensor_data_layout",
        "vocab_size",
    }
)
LAYERNORM = frozenset({"attention.layer_norm_epsilon"})
RMS_NORM = frozenset({"attention.layer_norm_rms_epsilon"})
ROPE = frozenset(
    {
        "rope.dimension_count",
        "rope.freq_base",
        "rope.scale_linear",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        "rope.scaling.finetuned",
        "rope.scaling.original_context_length",
        "rope.scaling.type",
        "rope.scaling.yarn_attn_factor",
        "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
        "rope.scaling.yarn_ext_factor",
    }
)


class Keys:
    """The keys of one architecture, read as the fields of a config.json are."""

    def __init__(self, keys: Mapping[str, Value], file: str, shapes: Shapes) -> None:
        self.fields = Fields(keys, (file,))
        self.file = file
        self.shapes = shapes
        said = keys.get("general.architecture")
        self.architecture = said if isinstance(said, str) else ""

    def key(self, name: str) -> str:
        """A key in full."""
        return f"{self.architecture}.{name}"

    def has(self, name: str) -> bool:
        """Whether a key is there."""
        return self.fields.has(self.key(name))

    def size(self, name: str) -> int:
        """A whole number that must be there."""
        return self.fields.size(self.key(name))

    def size_or(self, name: str, default: int, most: int = LARGEST_SIZE) -> int:
        """A whole number."""
        return self.fields.size_or(self.key(name), default, most)

    def number(self, name: str) -> float:
        """A number above 0 that must be there."""
        return self.fields.number(self.key(name))

    def number_or(self, name: str, default: float) -> float:
        """A number above 0."""
        return self.fields.number_or(self.key(name), default)

    def must_be(self, name: str, expected: object) -> None:
        """Refuse an option that is not computed."""
        self.fields.must_be(self.key(name), expected, default=expected)

    def rows(self, tensor: str) -> int:
        """How many rows a table has; 0 where there is none."""
        return self.shapes.get(tensor, (0,))[0]

    def refuse_others(self, known: AbstractSet[str]) -> None:
        """Note each key of the architecture that is not known."""
        prefix = self.key("")
        for key in self.fields.raw:
            if key.startswith(prefix) and key.removeprefix(prefix) not in known:
                self.fields.fault(key, "is not read, and may change what is computed.")


def d_head(keys: Keys) -> int:
    """The width of a head."""
    equal = keys.size("embedding_length") // keys.size("attention.head_count")
    return keys.size_or("attention.key_length", max(equal, 1))


def shared(keys: Keys) -> Raw:
    """What nearly all config.json files call alike."""
    n_heads, width = keys.size("attention.head_count"), d_head(keys)
    keys.must_be("attention.value_length", width)
    return {
        "hidden_size": keys.size("embedding_length"),
        "num_hidden_layers": keys.size("block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": keys.size_or("attention.head_count_kv", n_heads),
        "head_dim": width,
        "intermediate_size": keys.size("feed_forward_length"),
        "vocab_size": keys.rows("token_embd.weight"),
        "tie_word_embeddings": not keys.rows("output.weight"),
    }


def layernorm(keys: Keys) -> Raw:
    """LayerNorm's epsilon."""
    return {"layer_norm_eps": keys.number("attention.layer_norm_epsilon")}


def rms_norm(keys: Keys) -> Raw:
    """RMSNorm's epsilon."""
    return {"rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon")}


def rope(keys: Keys, theta: float = 10000.0) -> Raw:
    """The base and the scaling; Llama 3's lies in a tensor. The rest GGUF's readers set: ext_factor
    1, and attention's factor as YaRN has it."""
    for name in ("scaling.attn_factor", "scaling.yarn_attn_factor", "scaling.yarn_ext_factor"):
        keys.must_be(f"rope.{name}", 1.0)
    keys.must_be("rope.scale_linear", 1.0)
    kinds = {"none": "default", "linear": "linear", "yarn": "yarn"}
    kind = keys.fields.choice(keys.key("rope.scaling.type"), kinds, "none")
    turned: Raw = {
        "rope_type": kind,
        "rope_theta": keys.number_or("rope.freq_base", theta),
        "partial_rotary_factor": _fraction(keys),
    }
    if kind != "default":
        turned["factor"] = keys.number("rope.scaling.factor")
    if kind == "yarn":
        trained = keys.size("rope.scaling.original_context_length")
        turned["original_max_position_embeddings"] = trained
        turned["beta_fast"] = keys.number_or("rope.scaling.yarn_beta_fast", 32.0)
        turned["beta_slow"] = keys.number_or("rope.scaling.yarn_beta_slow", 1.0)
    return {"rope_parameters": turned}


def _fraction(keys: Keys) -> float:
    """How much of each head turns; half a coordinate more, for products are cut, not rounded."""
    width = d_head(keys)
    turned = keys.size_or("rope.dimension_count", width, most=width)
    return min((turned + 0.5) / width, 1.0)
