"""The table of a trial: what was measured, beside what is allowed."""

from dataclasses import dataclass

SHOWN = 4  # words of a list


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure."""

    name: str
    measured: str
    limit: str
    ok: bool

    def __str__(self) -> str:
        return line(self.name, self.measured, self.limit, "ok" if self.ok else "FAILED")


def line(name: str, measured: str, limit: str, ok: str) -> str:
    """A line of the table."""
    return f"{name:<46} {measured:>16}  {limit:>16}  {ok}"


def equal(name: str, measured: object, limit: object) -> Row:
    """A figure that must be what it should be."""
    return Row(name, str(measured), str(limit), str(measured) == str(limit))


def at_most(name: str, measured: float, limit: float, unit: str) -> Row:
    """A figure that must not be larger."""
    return Row(
        name, f"{measured:.4g} {unit}".strip(), f"<= {limit:g} {unit}".strip(), measured <= limit
    )


def listed(name: str, found: list[str], limit: list[str]) -> Row:
    """A list that must hold just these."""
    return Row(name, _told(found), _told(limit), found == limit)


def _told(words: list[str]) -> str:
    more = [f"and {len(words) - SHOWN} more"] if len(words) > SHOWN else []
    return " ".join([*words[:SHOWN], *more]) or "none"
