"""Where models lie on disk: the folder of those that ship, and what GLASSBLOCK_MODELS names."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compute.checkpoints.gguf.loading import SUFFIX
from schemas.models import Origin
from service.storage.opening import Mark, is_model_folder, marks

_PACKAGED = Path(__file__).parents[1] / "_models"
_CHECKOUT = Path(__file__).parents[2]


def shipped() -> Path:
    """The folder of the models that ship: inside the installed package, or beside it."""
    return _CHECKOUT / "models" if checkout() else _PACKAGED


def checkout() -> Path | None:
    """The checkout that the code runs from, or None where the package is installed."""
    return None if _PACKAGED.is_dir() else _CHECKOUT


@dataclass(frozen=True, slots=True)
class Root:
    """A folder of models; or one model alone, by its own folder or .gguf file."""

    path: Path
    origin: Origin

    @property
    def trouble(self) -> str:
        """Why no model is found here now, or nothing."""
        if not (os.path.isdir(self.path) or self._is_model()):
            return "is no folder of models, and no model"
        if not any(self.names()):
            return "holds no model: that is a folder with a config.json, or a .gguf file"
        return ""

    def names(self) -> Iterator[str]:
        """What the models here are called, names that no model can have among them."""
        paths = [self.path] if self._is_model() else _inside(self.path)
        return (_name_of(path) for path in paths if marks(path))

    def find(self, name: str) -> Iterator[tuple[Path, tuple[Mark, ...]]]:
        """The models here of a name, a folder before a file, and what their files are."""
        for path in [self.path] if self._is_model() else self._inside(name):
            stamp = marks(path) if _name_of(path) == name else ()
            if stamp:
                yield path, stamp

    def _inside(self, name: str) -> list[Path]:
        """What may be a model of this name here, as far as it is there."""
        folder = os.path.join(self.path, name)
        return [Path(path) for path in (folder, folder + SUFFIX) if os.path.exists(path)]

    def _is_model(self) -> bool:
        return is_model_folder(self.path) or (
            self.path.suffix == SUFFIX and os.path.isfile(self.path)
        )


def root(path: Path) -> Root:
    """What GLASSBLOCK_MODELS names, by a path that has a name, which `.` has not; links stay."""
    return Root(Path(os.path.abspath(path)), "folder")


def _name_of(path: Path) -> str:
    return path.name if os.path.isdir(path) else path.name.removesuffix(SUFFIX)


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
