"""The same quantities the long way: whole (d, d) matrices in float64, a head at a time.

Nothing of compute.circuits is used; weights are taken by name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
EPS = 2.0**-23


class Dense:
    """A model's weights by name, with a config as JSON."""

    def __init__(self, config: Mapping[str, Any], values: Mapping[str, Any], fold: bool = False):
        self.config, self.values, self.fold = config, values, fold

    @property
    def heads(self) -> list[tuple[int, int]]:
        count = self.config["attention"]["n_heads"]
        return [(b, r) for b in range(self.config["n_layers"]) for r in range(count)]

    def kv(self, r: int) -> int:
        attention = self.config["attention"]
        groups = np.repeat(
            np.arange(attention["n_kv_heads"]), attention["n_heads"] // attention["n_kv_heads"]
        )
        return int(groups[r])

    def take(self, b: int, name: str) -> Matrix:
        return np.array(self.values[f"blocks.{b}.{name}"], np.float64)

    def norm(self, b: int, name: str) -> Matrix:
        """The d x d matrix that a folded norm puts before a read."""
        d, norm = self.config["d_model"], self.config["norm"]
        before = norm["kind"] != "none" and norm["placement"] in ("pre", "sandwich")
        if not (self.fold and before):
            return np.eye(d)
        gain = norm["gain_offset"] + self.take(b, f"{name}.weight")
        centre = np.eye(d) - np.ones((d, d)) / d if norm["kind"] == "layernorm" else np.eye(d)
        return centre @ np.diag(gain)

    def Q(self, b: int, r: int) -> Matrix:
        return self.norm(b, "norm1") @ self.take(b, "attn.W_Q")[r]

    def K(self, b: int, r: int) -> Matrix:
        return self.norm(b, "norm1") @ self.take(b, "attn.W_K")[self.kv(r)]

    def V(self, b: int, r: int) -> Matrix:
        return self.norm(b, "norm1") @ self.take(b, "attn.W_V")[self.kv(r)]

    def O(self, b: int, r: int) -> Matrix:  # noqa: E743 - the article's letter
        return self.take(b, "attn.W_O")[r]

    def QK(self, b: int, r: int) -> Matrix:
        return self.Q(b, r) @ self.K(b, r).T

    def OV(self, b: int, r: int) -> Matrix:
        return self.V(b, r) @ self.O(b, r)

    def composition(self, kind: str, a: tuple[int, int], b: tuple[int, int]) -> float:
        read = {"q": self.QK(*b), "k": self.QK(*b).T, "v": self.OV(*b)}[kind]
        return product_score(self.OV(*a), read)

    def ffn(self, b: int, name: str) -> Matrix:
        """(d, f), a mixture's experts side by side."""
        norm = "norm1" if self.config["norm"].get("shared") else "norm2"
        M = self.take(b, f"ffn.{name}")
        experts = [M] if M.ndim == 2 else list(M)
        if name == "W_out":
            return np.concatenate([E.T for E in experts], axis=1)
        return self.norm(b, norm) @ np.concatenate(experts, axis=1)


def product_score(M: Matrix, N: Matrix) -> float:
    sizes = np.linalg.norm(M) * np.linalg.norm(N)
    return float(np.linalg.norm(M @ N) / sizes) if sizes else 0.0


def rank(M: Matrix) -> int:
    return int(np.linalg.matrix_rank(M, rtol=max(M.shape) * EPS))


def projector(M: Matrix) -> Matrix:
    """Onto the row space of M."""
    _, _, rows = np.linalg.svd(M)
    basis = rows[: rank(M)]
    return basis.T @ basis


def overlap(M: Matrix, N: Matrix) -> float:
    """tr(P Q) / min(rank): of row spaces."""
    narrow = min(rank(M), rank(N))
    return float(np.trace(projector(M) @ projector(N)) / narrow) if narrow else 0.0
