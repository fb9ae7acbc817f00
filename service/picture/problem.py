"""A problem as it is read in a terminal: what is wrong, where, and what would be right."""

from collections.abc import Iterator, Mapping
from typing import cast

import orjson
from rich.text import Text

from schemas.problems import Advice, Problem, ProblemFault
from service.picture import words


def lines(problem: Problem) -> Iterator[Text]:
    """The title, each fault with its place, what to do."""
    yield words.prose(problem["title"], words.STRONG)
    faults = problem["errors"]
    if not faults and problem["detail"].rstrip(".") != problem["title"]:
        yield words.prose(f"  {problem['detail']}")
    for fault in faults:
        yield words.prose(f"  {_fault(fault)}")
    more = problem["errors_total"] - len(faults)
    if faults and more > 0:
        yield words.prose(f"  And {words.counted(more, 'more fault')}.")
    yield from _advice(cast(Mapping[str, Advice], problem).get("advice", {}))


def _fault(fault: ProblemFault) -> str:
    """`pointer: detail (expected …, got …)`."""
    members = [f"{key} {_told(fault[key])}" for key in ("expected", "got") if key in fault]
    place = fault["pointer"] or "the request"
    return f"{place}: {fault['detail']}" + (f" ({', '.join(members)})" if members else "")


def _told(member: object) -> str:
    """A word as it is, words with commas between them, all else as JSON."""
    if isinstance(member, str):
        return member
    if isinstance(member, list) and all(isinstance(word, str) for word in member):
        return " or ".join(member)
    return _json(member)


def _json(member: object) -> str:
    return orjson.dumps(member, default=str, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _advice(advice: Advice) -> Iterator[Text]:
    if "text" in advice:
        yield words.prose(f"  {advice['text']}")
    if "select" in advice:
        yield words.prose(f'  This fits: "select": {_json(advice["select"])}')
