"""What POST /v1/rope answers. Every key is always there; null where it means nothing."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from schemas.answers import Entry, Matrix, PackedAnswer
from schemas.resolved import PositionAnswer

TwoCoordinates = Annotated[list[int], Field(min_length=2, max_length=2)]


class RopePairAnswer(TypedDict):
    """One pair of coordinates of a head."""

    pair: Annotated[int, Field(description="i, from 0.")]
    coordinates: Annotated[TwoCoordinates, Field(description="Which two coordinates turn.")]
    radians_per_position: Annotated[float, Field(description="The pair's frequency.")]
    degrees_per_position: Annotated[float, Field(description="The same in degrees.")]
    wavelength: Annotated[
        Entry, Field(description="Positions in a whole turn, 2π / frequency; null: it is still.")
    ]
    angles_degrees: Annotated[
        list[float] | PackedAnswer,
        Field(description="Position · degrees a position, not reduced to one turn."),
    ]
    angles_radians: Annotated[list[float] | PackedAnswer, Field(description="The same in radians.")]
    between_degrees: Annotated[
        float | None, Field(description="Of two positions: first angle less second; else null.")
    ]
    dot: Annotated[
        Entry, Field(description="Of two positions: what the pair adds to the dot product.")
    ]


class RopeSpectrumAnswer(TypedDict):
    """Every pair of a head."""

    d_head: Annotated[int, Field(description="Coordinates of a query or key.")]
    position: Annotated[PositionAnswer, Field(description="As in a config, resolved.")]
    attention_factor: Annotated[
        float, Field(description="What multiplies cosines and sines: 1, but for yarn.")
    ]
    unrotated: Annotated[list[int], Field(description="Coordinates that do not turn.")]
    pairs: Annotated[list[RopePairAnswer], Field(description="From the fastest on.")]


class RopeVectorsAnswer(TypedDict):
    """The two vectors as turned, a row for each position."""

    query: Annotated[Matrix, Field(description="(position, coordinate).")]
    key: Annotated[Matrix, Field(description="(position, coordinate).")]


class RopeGridAnswer(TypedDict):
    """Each position of the query (rows) with each of the key (columns)."""

    relative: Annotated[list[list[int]], Field(description="Row's position less column's.")]
    between_degrees: Annotated[
        list[list[float]] | PackedAnswer | None,
        Field(description="Row's angle less column's; null: many pairs."),
    ]
    dots: Annotated[Matrix, Field(description="Query at the row's position times key.")]


class RopeAnswer(TypedDict):
    """Angles, vectors as turned and their dot products."""

    positions: Annotated[list[int], Field(description="As asked.")]
    angles_degrees: Annotated[
        list[float] | PackedAnswer | None,
        Field(
            description="Of a pair: position · degrees a position, not reduced to one turn. null "
            "for a spectrum, whose pairs have their own."
        ),
    ]
    angles_radians: Annotated[
        list[float] | PackedAnswer | None, Field(description="The same in radians.")
    ]
    relative: Annotated[
        int | None, Field(description="Of two positions: first less second; else null.")
    ]
    between_degrees: Annotated[
        float | None, Field(description="Of a pair and two positions: first angle less second.")
    ]
    dot: Annotated[
        Entry, Field(description="Of two positions: query at the first times key at the second.")
    ]
    rotated: Annotated[RopeVectorsAnswer, Field(description="The vectors as turned.")]
    grid: Annotated[RopeGridAnswer, Field(description="Every two of the positions.")]
    spectrum: Annotated[RopeSpectrumAnswer | None, Field(description="null for a pair.")]
