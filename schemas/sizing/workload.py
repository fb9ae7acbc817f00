"""What a sized model is to run: sequences, positions, tokens."""

from typing import Annotated

from pydantic import Field

from schemas.base import Asked

_MOST = 1 << 40

Some = Annotated[int, Field(ge=1, le=_MOST)]
Count = Annotated[int, Field(ge=0, le=_MOST)]


class WorkloadAsked(Asked):
    """Sequences and their positions."""

    tokens: Some | None = Field(
        default=None,
        description="Positions n of a pass, in each sequence. Default: 1024, fewer where a learned "
        "table of positions ends before; of an image its patches.",
    )
    batch: Some = Field(default=1, description="Sequences B.")
    cached: Count = Field(
        default=0, description="Positions before them that are in the cache already."
    )
    source_tokens: Count | None = Field(
        default=None,
        description="Positions s that cross-attention reads. Default: tokens, where there is any.",
    )
    new_tokens: Count = Field(default=0, description="Tokens generated after them; 0: none.")
