"""A loaded model: what it is at once, its numbers when they are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from compute.checkpoints.fitting import shared_names
from compute.checkpoints.safetensors_file import Reader
from compute.checkpoints.stored import Stored
from compute.checkpoints.text import Text
from compute.config import ModelConfig
from compute.errors import MOST_FAULTS, Fault, ModelError, refuse_if
from compute.initial import Source
from compute.tensors import Tensor
from compute.types import Array


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class Checkpoint:
    """A model by name: its family, config, where its tensors lie, tokenizer, card.

    `content` is a hash of what decides its numbers, `left_out` what of the file is not read (a
    tensor's name -> "whole", or which rows), `dtypes` what its weights are stored as.
    """

    name: str
    family: str
    config: ModelConfig
    reader: Reader
    stored: Mapping[str, Stored]
    text: Text | None
    card: str
    content: str
    left_out: Mapping[str, str]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the weights as stored, by name."""
        names = (name for x in self.stored.values() for name in x.names)
        return tuple(sorted({self.reader.entries[name].dtype for name in names}))

    def source(self) -> Source:
        """Gives a tensor's values, read now; a ModelError where one is not finite."""
        read = _Reading(self.reader, shared_names(self.stored)).read

        def source(tensor: Tensor) -> Array:
            stored = self.stored[tensor.name]
            return stored.make(*[read(name) for name in stored.names])

        return source


class _Reading:
    """Reads a tensor that several of ours are made of once for them, where they follow closely."""

    def __init__(self, reader: Reader, shared: Mapping[str, int]) -> None:
        self._reader = reader
        self._shared = shared
        self._held: dict[str, tuple[Array, int]] = {}
        self._lock = Lock()

    def read(self, name: str) -> Array:
        if name not in self._shared:
            return self._reader.read(name)
        with self._lock:
            values, left = self._held.pop(name, (None, self._shared[name]))
            if values is None:
                values = self._reader.read(name)
            if left > 1:
                self._hold(name, values, left - 1)
            return values

    def _hold(self, name: str, values: Array, left: int) -> None:
        while len(self._held) >= 2:  # a matrix and its bias
            self._held.pop(next(iter(self._held)))
        self._held[name] = (values, left)


def check_whole(checkpoint: Checkpoint) -> None:
    """Make the tokenizer and read every weight once; a ModelError with what is wrong in them."""
    if checkpoint.text is not None:
        _ = checkpoint.text.tokenizer
    faults: list[Fault] = []
    for name in sorted({name for x in checkpoint.stored.values() for name in x.names}):
        try:
            checkpoint.reader.check(name)
        except ModelError as error:
            faults += error.faults
        if len(faults) >= MOST_FAULTS:
            break
    refuse_if(ModelError, faults)
