"""What is asked of both: two models, each with a clean and a corrupted text and two letters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
VALUES = HERE / "values.safetensors"


@dataclass(frozen=True, slots=True)
class Case:
    """Texts of one length, each a token a letter; after `clean` comes `right`."""

    model: str
    clean: str
    corrupted: str
    right: str
    wrong: str
    rows: tuple[int, ...]
    """The positions whose vectors are kept."""

    @property
    def folder(self) -> Path:
        """Where the model lies."""
        return HERE.parents[1] / "models" / self.model


CASES: Mapping[str, Case] = {
    case.model: case
    for case in (
        # Six letters, and three of the answer: the count of the Bs decides between B and C.
        Case("letter-sort", "CABBACAAB", "CABCACAAB", "B", "C", (5, 8)),
        # The letter after the first T comes again after the second.
        Case("induction", "QWERTYQWERT", "QWERTZQWERT", "Y", "Z", (6, 10)),
    )
}

PATCHED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "resid_pre": ("resid_pre", ("block", "position")),
    "resid_mid": ("resid_mid", ("block", "position")),
    "attn_out": ("attn_out", ("block", "position")),
    "mlp_out": ("ffn_out", ("block", "position")),
    "attn_head_out_all_pos": ("attn.z", ("block", "head")),
    "attn_head_q_all_pos": ("attn.q", ("block", "head")),
    "attn_head_k_all_pos": ("attn.k", ("block", "kv_head")),
    "attn_head_v_all_pos": ("attn.v", ("block", "kv_head")),
    "attn_head_pattern_all_pos": ("attn.pattern", ("block", "head")),
    "attn_head_out_by_pos": ("attn.z", ("block", "position", "head")),
    "attn_head_pattern_by_pos": ("attn.pattern", ("block", "head", "position")),
}
"""Each table of `transformer_lens.patching`, as our stage and the axes it runs over."""
