"""What all requests and answers share: strict, frozen, nothing unknown."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Index = Annotated[int, Field(ge=-(1 << 31), le=1 << 31)]
Indices = Annotated[list[Index], Field(min_length=1, max_length=8192)]
Name = Annotated[str, Field(min_length=1, max_length=128)]


class Asked(BaseModel):
    """Part of a request: no unknown keys, no coercion, no change after."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Answered(BaseModel):
    """Part of an answer: every key is there, none has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def at_most(most: int) -> Callable[[object], object]:
    """A validator that refuses a longer object before anything in it is looked at."""

    def check(raw: object) -> object:
        if isinstance(raw, dict) and len(raw) > most:
            rule = f"There are at most {most} keys here."
            raise PydanticCustomError("too_many_keys", "{rule}", {"rule": rule, "got": len(raw)})
        return raw

    return check


def spread(*names: str) -> Callable[[object], object]:
    """A validator that writes true or false for an object of booleans as that for each name."""

    def expand(raw: object) -> object:
        return dict.fromkeys(names, raw) if isinstance(raw, bool) else raw

    return expand


def exactly_one(model: BaseModel, *names: str) -> None:
    """Raise one error unless exactly one of the optional keys is given."""
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        rule = f"Give exactly one of {', '.join(names)}."
        raise PydanticCustomError("exactly_one", "{rule}", {"rule": rule})
