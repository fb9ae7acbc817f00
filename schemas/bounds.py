"""The bounds of a config's numbers as asked for."""

from typing import Annotated

from pydantic import Field

_BIG = 1 << 20

Size = Annotated[int, Field(ge=1, le=_BIG)]
Count = Annotated[int, Field(ge=0, le=_BIG)]
Multiplier = Annotated[float, Field(ge=-1e6, le=1e6)]
Positive = Annotated[float, Field(ge=1e-6, le=1e6)]
Theta = Annotated[float, Field(ge=1e-6, le=1e12)]
