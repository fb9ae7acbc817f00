"""Which requests are done sooner than they would be handed to a thread: those run where they are.

A request is known again by its outline: all of its text but the numbers of its input, and how many
those are. So requests of one outline cost the same. Where the last one was done in four
milliseconds, the next one runs on the event loop; where it takes longer after all it is handed
over between two steps, and its outline is forgotten.
"""

import re
import time
from collections import OrderedDict
from hashlib import blake2b

from service.bodies import Sent
from service.forms.form import JSON

MOST_SECONDS = 4e-3
"""What a request may have taken that runs on the event loop."""

_PATIENCE = 3 * MOST_SECONDS
_MOST_BYTES = 32 << 10
_MOST_KNOWN = 1024

_INPUT = re.compile(rb'"(?:tensor|token_ids)"\s*:\s*(\[[-+0-9.eE,\s\[\]]*\])')
_ROUNDED = b'"digits"'
"""What rounding costs depends on the numbers."""

Outline = bytes


class Slower(Exception):
    """A request is not as quick as those of its outline were."""


class Quick:
    """The outlines of requests that were quick, the latest ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[Outline, None] = OrderedDict()

    def outline(self, sent: Sent, call: str) -> Outline | None:
        """By what a request is known again; None of one that may not be quick."""
        body = sent.body
        if sent.media != JSON or len(body) > _MOST_BYTES or _ROUNDED in body:
            return None
        told = blake2b(f"{call} {sent.accepted}".encode(), digest_size=16)
        at = 0
        for numbers in _INPUT.finditer(body):
            start, end = numbers.span(1)
            told.update(body[at:start])
            told.update(b"%d,%d" % (body.count(b",", start, end), body.count(b"[", start, end)))
            at = end
        told.update(body[at:])
        return told.digest()

    def knows(self, outline: Outline | None) -> bool:
        """Whether the last request of an outline was quick."""
        return outline in self._known

    def note(self, outline: Outline | None, seconds: float) -> None:
        """Remember how long a request computed."""
        if outline is None:
            return
        self._known.pop(outline, None)
        if seconds <= MOST_SECONDS:
            self._known[outline] = None
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)


class Patience:
    """A `check` between steps: raises Slower where a request takes too long for the event loop."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _PATIENCE

    def __call__(self) -> None:
        """Raise where it does."""
        if time.perf_counter() > self._until:
            raise Slower
