"""The model store: folders of models, loaded when first asked for."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from compute.checkpoints.folder import Checkpoint, load
from compute.errors import ModelError, Place
from service.errors import UnknownModel

_log = logging.getLogger("glassblock")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PACKAGED = Path(__file__).parent / "_models"
_CHECKOUT = Path(__file__).parent.parent / "models"


def shipped() -> Path:
    """The folder of the models that ship: inside the installed package, or beside it."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


class Store:
    """Models by name. Of one name in two folders the first counts; the shipped ones come first."""

    def __init__(self, folders: Sequence[Path]) -> None:
        last_first = reversed([path for folder in (shipped(), *folders) for path in _in(folder)])
        self._paths = {path.name: path for path in last_first}
        self._loaded: dict[str, Checkpoint] = {}

    def names(self) -> list[str]:
        """All models there are, by name."""
        return sorted(self._paths)

    def get(self, name: str, place: Place = ("model", "name")) -> Checkpoint:
        """The model of a name, or UnknownModel; `place` is where a body named it."""
        if name not in self._paths:
            raise UnknownModel(self.names(), place)
        if name not in self._loaded:
            self._loaded[name] = load(self._paths[name])
        return self._loaded[name]

    def all(self) -> tuple[list[Checkpoint], dict[str, str]]:
        """Every model that can be loaded, by name; and why others cannot."""
        found: list[Checkpoint] = []
        broken: dict[str, str] = {}
        for name in self.names():
            try:
                found.append(self.get(name))
            except ModelError as error:
                broken[name] = str(error)
        return found, broken


def _in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        _log.warning("%s is no folder: no models from there.", ascii(str(folder)))
        return []
    found = sorted(config.parent for config in folder.glob("*/config.json"))
    for path in found:
        if not _NAME.fullmatch(path.name):
            _log.warning("%s is no name of a model: left out.", ascii(path.name))
    return [path for path in found if _NAME.fullmatch(path.name)]
