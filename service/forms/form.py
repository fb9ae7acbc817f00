"""Which form an answer takes: what carries it, and how numbers stand in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.form import Encoding, FormAsked

JSON = "application/json"
SAFETENSORS = "application/vnd.safetensors"
LINES = "application/jsonl"
NDJSON = "application/x-ndjson"

JSON_ALONE: Sequence[str] = (JSON,)
ALL: Sequence[str] = (JSON, SAFETENSORS, LINES, NDJSON)
"""What a call that answers tensors offers, what it likes best first."""


@dataclass(frozen=True, slots=True)
class Form:
    """The media type of an answer, how arrays stand in its JSON, significant digits or None."""

    media: str = JSON
    encoding: Encoding = "nested"
    digits: int | None = None

    @property
    def is_lines(self) -> bool:
        """A line of JSON for each tensor."""
        return self.media in (LINES, NDJSON)

    @property
    def is_nested(self) -> bool:
        """Numbers are text."""
        return self.media != SAFETENSORS and self.encoding == "nested"

    @property
    def limit(self) -> str:
        """The setting that bounds the elements of such an answer."""
        return "answer_elements" if self.is_nested and not self.is_lines else "binary_elements"


PLAIN = Form()


def of(media: str, asked: FormAsked | None) -> Form:
    """The form of an answer in a media type to a request that may say more."""
    return Form(media) if asked is None else Form(media, asked.encoding, asked.digits)


def chosen(accept: Iterable[str], offered: Sequence[str]) -> str | None:
    """The offered media type that the Accept headers like best, of equals the first; None where
    they take none of them. No header takes the first."""
    ranges = [part for header in accept for part in header.split(",") if part.strip()]
    if not ranges:
        return offered[0]
    weighed = [_weighed(written) for written in ranges]
    best = max(offered, key=lambda media: _weight(weighed, media))
    return best if _weight(weighed, best) > 0 else None


def _weight(ranges: Sequence[tuple[str, float]], media: str) -> float:
    """The weight of a media type: the most specific range that meets it rules. RFC 9110, 12.5.1."""
    meeting = ("*/*", f"{media.partition('/')[0]}/*", media)
    met = [found for found in ranges if found[0] in meeting]
    return max(met, key=lambda found: meeting.index(found[0]), default=("", 0.0))[1]


def _weighed(written: str) -> tuple[str, float]:
    """(media range, weight) of one entry; a weight that cannot be read counts as 1."""
    name, *parameters = (word.strip().lower() for word in written.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            return name, _number(value)
    return name, 1.0


def _number(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0.0 <= weight <= 1.0 else 1.0
