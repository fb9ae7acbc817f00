"""How the tensors of an answer are written, whatever carries them."""

from typing import Literal

from pydantic import Field

from schemas.base import Asked

Encoding = Literal["nested", "base64"]


class FormAsked(Asked):
    """How numbers are written. `Accept` chooses what carries them: JSON, safetensors or lines."""

    encoding: Encoding = Field(
        default="nested",
        description="Of arrays inside JSON: nested lists, or base64 of their little-endian bytes. "
        "A safetensors body has the bytes themselves.",
    )
    digits: int | None = Field(
        default=None,
        ge=1,
        le=15,
        description="Round arrays to so many significant digits; each tensor says so. Default: "
        "exact to the bit.",
    )


class Formed(Asked):
    """A request whose answer holds tensors."""

    format: FormAsked = Field(default=FormAsked(), description="How arrays are written.")
    dry_run: bool = Field(
        default=False,
        description="Run nothing, make no weight, and answer the plan of this request: what it "
        "would answer and cost, and whether it is within the limits of work.",
    )
