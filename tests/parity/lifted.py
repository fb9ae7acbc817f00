"""Run upstream's code with every float32 that it asks for replaced by float64.

Many modules of transformers convert to float32 inside, whatever the dtype of the model: RMS norms,
the softmax of the scores, the angles of rotary positions, the router's softmax. A model converted
with `.double()` is therefore accurate to float32 only. Inside `lift()` it is accurate to float64.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class NotLifted(Exception):
    """A float32 number was made inside `lift()`."""


class Lift(TorchFunctionMode):
    """Every call of torch: float32 among its arguments becomes float64, `.float()` is `.double()`.

    A call that still makes a float32 tensor is an error, so that no conversion can be missed.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - any function of torch passes through here
        wide = torch.Tensor.double if func is torch.Tensor.float else func
        named = {name: widened(value) for name, value in (kwargs or {}).items()}
        result = wide(*[widened(value) for value in args], **named)
        refuse_float32(getattr(func, "__name__", str(func)), result)
        return result


def widened(value: object) -> object:
    """float64 for float32; anything else as it is."""
    return torch.float64 if value is torch.float32 else value


def refuse_float32(name: str, result: object) -> None:
    """Raise where a result holds a float32 tensor."""
    results = result if isinstance(result, list | tuple) else [result]
    if any(isinstance(each, torch.Tensor) and each.dtype == torch.float32 for each in results):
        raise NotLifted(f"{name} made a float32 tensor")


@contextmanager
def lift() -> Iterator[None]:
    """A context in which models are made and run in float64 throughout."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Lift():
            yield
    finally:
        torch.set_default_dtype(before)
