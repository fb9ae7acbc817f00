"""A state split by hand at one position: literal loops over the reference's float64 stages."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.configs import Case

Array = npt.NDArray[np.float64]
Parts = dict[tuple[str, int | None], Array]
Stages = dict[str, npt.NDArray[Any]]


class ByHand:
    """One position of one example of a case: its stages and how its last sum is split."""

    def __init__(self, case: Case, stages: Stages, position: int, batch: int | None) -> None:
        self.config = case.config
        self.weights = case.weights
        self.inputs = case.inputs
        self.n = position
        self.batch = batch
        self.stages = stages if batch is None else {x: one[batch] for x, one in stages.items()}

    def parts(self, by: str) -> Parts:
        """Every part of the last state, or of the last sum before its norm."""
        found: Parts = {}
        subs = [
            (layer, name) for layer in range(self.config["n_layers"]) for name in self.sublayers
        ]
        if self.is_post:
            subs = subs[-1:]
            found[self.state_before(*subs[0]), None] = self.row(self.state_before(*subs[0]))
        else:
            found |= self.below()
        if by == "block" and not self.is_post:
            for layer in range(self.config["n_layers"]):
                outs = [self.row(f"blocks.{layer}.{name}_out") for name in self.sublayers]
                found[f"blocks.{layer}", None] = np.sum(outs, axis=0)
            return found
        for layer, name in subs:
            found |= self.of_sublayer(layer, name, by)
        return found

    @property
    def sublayers(self) -> list[str]:
        there = {
            "attn": self.config["attention"]["kind"] != "none",
            "cross": self.config["cross_attention"],
            "ffn": self.config["ffn"]["kind"] != "none",
        }
        return [name for name, is_there in there.items() if is_there]

    @property
    def is_post(self) -> bool:
        norm = self.config["norm"]
        return bool(norm["kind"] != "none" and norm["placement"] == "post")

    def state_before(self, layer: int, name: str) -> str:
        before = self.sublayers[: self.sublayers.index(name)]
        states = {"attn": "resid_mid", "cross": "resid_cross"}
        return f"blocks.{layer}.{states[before[-1]] if before else 'resid_pre'}"

    def row(self, name: str) -> Array:
        """A stage with axes (n, …) at the position."""
        return np.array(self.stages[name][self.n], np.float64)

    def below(self) -> Parts:
        """What is added below the first block, through the norm there."""
        found: Parts = {}
        if "embed" not in self.stages:
            rows = np.asarray(self.inputs["tensor"])
            found["input", None] = (rows if self.batch is None else rows[self.batch])[self.n]
        for name in ("embed", "pos_embed", "type_embed"):
            if name in self.stages:
                found[name, None] = self.row(name)
        if not self.config["embed_norm"]:
            return found
        through = {key: self.normed("embed_norm", part) for key, part in found.items()}
        return through | self.norm_bias("embed_norm", 1.0)

    def normed(self, name: str, part: Array) -> Array:
        """(part - mean) / scale · gain, coordinate by coordinate."""
        norm = self.config["norm"]
        gain = self.weights[f"{name}.weight"] + norm["gain_offset"]
        scale = float(self.stages[f"{name}.scale"][self.n, 0])
        mean = sum(part) / len(part) if norm["kind"] == "layernorm" else 0.0
        return np.array([(x - mean) / scale * g for x, g in zip(part, gain, strict=True)])

    def norm_bias(self, name: str, multiplier: float) -> Parts:
        bias = self.weights.get(f"{name}.bias")
        return {} if bias is None else {(f"{name}.bias", None): multiplier * bias}

    def of_sublayer(self, layer: int, name: str, by: str) -> Parts:
        prefix = f"blocks.{layer}."
        if by in ("block", "sublayer"):
            return {(f"{prefix}{name}_out", None): self.row(f"{prefix}{name}_out")}
        raw = dict(self.raw_parts(prefix, name, by))
        norm, multiplier = self.config["norm"], self.config["residual_multiplier"]
        if norm["kind"] == "none" or norm["placement"] not in ("sandwich", "output"):
            return {key: multiplier * part for key, part in raw.items()}
        after = prefix + ("norm2_post" if name == "ffn" else "norm1_post")
        pushed = {key: multiplier * self.normed(after, part) for key, part in raw.items()}
        return pushed | self.norm_bias(after, multiplier)

    def raw_parts(
        self, prefix: str, name: str, by: str
    ) -> Iterator[tuple[tuple[str, int | None], Array]]:
        if name == "ffn":
            yield from (self.experts if self.is_moe else self.neurons)(prefix, by == "neuron")
            return
        sources = list(self.sources(prefix, name))
        if by == "source":
            yield from (((head, m), part) for head, m, part in sources)
        elif by == "head":
            heads = dict.fromkeys(head for head, _, _ in sources)
            for own in heads:
                yield (own, None), np.sum([p for head, _, p in sources if head == own], axis=0)
        else:
            yield (prefix + name, None), np.sum([part for _, _, part in sources], axis=0)
        yield from self.head_biases(prefix, name)

    def sources(self, prefix: str, name: str) -> Iterator[tuple[str, int, Array]]:
        """a_nm (v_m - b_V) W_O^(r), one head and one source at a time."""
        A, V = self.stages[f"{prefix}{name}.pattern"], self.stages[f"{prefix}{name}.v"]
        for r in range(len(A)):
            for m in range(A.shape[-1]):
                value = V[self.kv(r), m] - self.b_V(prefix, name, r)
                W_O = self.weights[f"{prefix}{name}.W_O"][r]
                yield self.head_id(prefix, name, r), m, A[r, self.n, m] * np.dot(value, W_O)

    def head_biases(self, prefix: str, name: str) -> Iterator[tuple[tuple[str, int | None], Array]]:
        A = self.stages[f"{prefix}{name}.pattern"]
        if self.config["attention"]["bias"]["v"]:
            for r in range(len(A)):
                b_V = self.b_V(prefix, name, r)
                through = np.dot(b_V, self.weights[f"{prefix}{name}.W_O"][r])
                yield (f"{self.head_id(prefix, name, r)}.b_V", None), sum(A[r, self.n]) * through
        if self.config["attention"]["bias"]["o"]:
            own = f"{prefix}{'cross.' if name == 'cross' else ''}b_O"
            yield (own, None), self.weights[f"{prefix}{name}.b_O"]

    def head_id(self, prefix: str, name: str, r: int) -> str:
        return f"{prefix}{'cross.' if name == 'cross' else ''}head.{r}"

    def kv(self, r: int) -> int:
        attention = self.config["attention"]
        return int(r // (attention["n_heads"] // attention["n_kv_heads"]))

    def b_V(self, prefix: str, name: str, r: int) -> Array:
        if not self.config["attention"]["bias"]["v"]:
            return np.zeros(self.stages[f"{prefix}{name}.v"].shape[-1])
        return np.asarray(self.weights[f"{prefix}{name}.b_V"][self.kv(r)])

    @property
    def is_moe(self) -> bool:
        return bool(self.config["ffn"]["kind"] == "moe")

    def neurons(
        self, prefix: str, one_by_one: bool
    ) -> Iterator[tuple[tuple[str, int | None], Array]]:
        hidden, W_out = self.row(f"{prefix}ffn.hidden"), self.weights[f"{prefix}ffn.W_out"]
        written = [h * W_out[f] for f, h in enumerate(hidden)]
        if one_by_one:
            yield from (((f"{prefix}ffn.neuron.{f}", None), x) for f, x in enumerate(written))
        else:
            yield (f"{prefix}ffn", None), np.sum(written, axis=0)
        if self.config["ffn"]["bias"]["out"]:
            yield (f"{prefix}ffn.b_out", None), self.weights[f"{prefix}ffn.b_out"]

    def experts(
        self, prefix: str, one_by_one: bool
    ) -> Iterator[tuple[tuple[str, int | None], Array]]:
        chosen, weights = self.row(f"{prefix}ffn.experts"), self.row(f"{prefix}ffn.expert_weights")
        together = np.zeros(self.config["d_model"])
        for c, e in enumerate(int(e) for e in chosen):
            own = f"{prefix}ffn.expert.{e}"
            for f, h in enumerate(self.stages[f"{prefix}ffn.expert_hidden"][self.n, c]):
                written = weights[c] * h * self.weights[f"{prefix}ffn.W_out"][e, f]
                together = together + written
                if one_by_one:
                    yield (f"{own}.neuron.{f}", None), written
            if self.config["ffn"]["bias"]["out"]:
                b_out = self.weights[f"{prefix}ffn.b_out"][e]
                yield (f"{own}.b_out", None), weights[c] * b_out
        shared = self.config["ffn"]["d_shared"] > 0
        if one_by_one and shared:
            yield (f"{prefix}ffn.shared", None), self.row(f"{prefix}ffn.shared_out")
        elif not one_by_one:
            also = self.row(f"{prefix}ffn.shared_out") if shared else 0.0
            yield (f"{prefix}ffn", None), together + also
