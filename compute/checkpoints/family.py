"""A family of checkpoints: how its config and its tensors' names become ours.

A family is one small file in `families/`: a function from a config.json's fields to a config, and
one from a config to where each tensor lies.
"""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored
from compute.config import ModelConfig

NOTHING = re.compile(r"(?!)")
"""Matches no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family.

    config: from the fields of config.json and the names of the file's tensors (prefix stripped),
    for a head may be there or not. stored: for each of our tensors, where it lies. prefixes: what
    may stand before a name, and is taken off; the first that fits. ignored: names that hold no
    weight we read (masks, buffers, a pooler, a readout that is tied anyway), each said by the
    docs; a name that `stored` reads is read all the same. variants: the same family with its
    tensors under other names: one of them is taken where one of its `marks` is in the file.
    """

    name: str
    model_types: tuple[str, ...]
    config: Callable[[Fields, AbstractSet[str]], ModelConfig]
    stored: Callable[[ModelConfig], Mapping[str, Stored]]
    prefixes: tuple[str, ...] = ()
    ignored: re.Pattern[str] = NOTHING
    marks: re.Pattern[str] = NOTHING
    variants: tuple["Family", ...] = ()
