"""A comparison as asked for: two traces, and how far apart counts as a difference."""

from typing import Annotated

from pydantic import Field

from schemas.base import Asked
from schemas.trace import RunAsked


class CompareRequest(Asked):
    """POST /v1/compare: two runs side by side, and the first stage in which they differ."""

    a: RunAsked = Field(description="A run, as POST /v1/trace takes it.")
    b: RunAsked = Field(description="The run that it is compared with.")
    threshold: Annotated[float, Field(ge=0.0)] = Field(
        default=1e-6,
        description="A stage differs where some entry of a and b is further apart than this.",
    )
