"""What an answer says of interventions: what was changed, and what that did to measures."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from compute.types import InterventionOp


class InterventionAnswer(TypedDict):
    """One change that was made: a stage of one block."""

    stage: Annotated[str, Field(description="Its full name.")]
    op: Annotated[InterventionOp, Field(description="What became of the slice.")]
    where: Annotated[
        dict[str, list[int]],
        Field(description="Axis word -> indices from the start; an axis left out: all of it."),
    ]


class Changed(TypedDict):
    """A measure after the interventions."""

    after: Annotated[float | None, Field(description="Its value; null if not finite.")]
    delta: Annotated[float | None, Field(description="after - before.")]


class EffectAnswer(TypedDict):
    """What the interventions do to one measure."""

    before: Annotated[float | None, Field(description="Without them; null if not finite.")]
    total: Annotated[
        Changed | None,
        Field(description="All that follows computed anew; null without interventions."),
    ]
    direct: Annotated[
        Changed | None,
        Field(description="Later updates as they were; null without interventions."),
    ]
