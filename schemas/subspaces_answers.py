"""What a question about subspaces and circuits answers. Keys that stand for something that was not
asked for are NotRequired; all others are always there."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.answers import Matrix, ModelAnswer, PackedAnswer, Row

Numbers1 = list[float] | PackedAnswer
Eigenvalues = list[Annotated[list[float], Field(min_length=2, max_length=2)]] | PackedAnswer


class ChanceAnswer(TypedDict):
    """What unrelated random matrices of the same shapes score."""

    mean: Annotated[float, Field(description="Mean.")]
    std: Annotated[float, Field(description="Standard deviation.")]


class HeadScore(TypedDict):
    """A score of one head."""

    score: Annotated[float, Field(description="The score.")]
    baseline: Annotated[ChanceAnswer, Field(description="What chance gives.")]


class QkAnswer(TypedDict):
    """W_Q W_Kᵀ of a head: how it chooses where to look."""

    norm: Annotated[float, Field(description="Frobenius norm.")]
    singular_values: Annotated[Numbers1, Field(description="Largest first; all others are 0.")]
    eigenvalues: Annotated[
        Eigenvalues, Field(description="[real, imaginary], largest first; all others are 0.")
    ]
    token_scores: NotRequired[
        Annotated[
            Matrix, Field(description="scale · W_E[q] W_Q W_Kᵀ W_E[k]ᵀ, a row for each query.")
        ]
    ]


class OvAnswer(TypedDict):
    """W_V W_O of a head: what it writes of what it looks at."""

    norm: Annotated[float, Field(description="Frobenius norm.")]
    singular_values: Annotated[Numbers1, Field(description="Largest first; all others are 0.")]
    eigenvalues: Annotated[
        Eigenvalues, Field(description="[real, imaginary], largest first; all others are 0.")
    ]
    copying: Annotated[
        HeadScore,
        Field(
            description="Sum of the eigenvalues over the sum of their moduli: whether it keeps "
            "directions of the stream or turns them round."
        ),
    ]
    token_logits: NotRequired[
        Annotated[Matrix, Field(description="W_E[s] W_V W_O W_U, a row for each source token.")]
    ]


class NamedHead(TypedDict):
    """A query head."""

    block: Annotated[int, Field(description="Its block.")]
    head: Annotated[int, Field(description="Its number in the block.")]


class ReaderHead(NamedHead):
    """A query head that may read."""

    kv_head: Annotated[int, Field(description="The key/value head it uses.")]


class WritingHead(TypedDict):
    """A head's write subspace, the row space of W_O^(r), and its circuits."""

    block: Annotated[int, Field(description="Its block.")]
    head: Annotated[int, Field(description="Its number in the block.")]
    kv_head: Annotated[int, Field(description="The key/value head it uses.")]
    rank: NotRequired[Annotated[int, Field(description="Numerical rank of W_O^(r).")]]
    singular_values: NotRequired[
        Annotated[Numbers1, Field(description="Of W_O^(r), largest first.")]
    ]
    effective_rank: NotRequired[
        Annotated[HeadScore, Field(description="exp of the entropy of s / Σ s.")]
    ]
    participation_ratio: NotRequired[
        Annotated[HeadScore, Field(description="(Σ s²)² / Σ s⁴; comes with effective_rank.")]
    ]
    basis: NotRequired[
        Annotated[
            list[list[float]] | PackedAnswer,
            Field(description="Orthonormal rows that span it, by falling singular value."),
        ]
    ]
    qk: NotRequired[Annotated[QkAnswer, Field(description="The QK circuit.")]]
    ov: NotRequired[Annotated[OvAnswer, Field(description="The OV circuit.")]]
    token_copying: NotRequired[
        Annotated[HeadScore, Field(description="copying of W_E W_V W_O W_U, from token to token.")]
    ]


class ChanceGrid(TypedDict):
    """A baseline for each entry of a grid."""

    mean: Annotated[Matrix, Field(description="Mean.")]
    std: Annotated[Matrix, Field(description="Standard deviation.")]


class OverlapAnswer(TypedDict):
    """Overlaps of subspaces, each beside its baseline, which is exact."""

    score: Annotated[Matrix, Field(description="Mean squared cosine of the principal angles.")]
    baseline: Annotated[ChanceGrid, Field(description="Of random subspaces of the same ranks.")]


class AnglesAnswer(TypedDict):
    """Principal angles of two write subspaces."""

    heads: Annotated[
        list[int], Field(min_length=2, max_length=2, description="Places in the answer's heads.")
    ]
    degrees: Annotated[Numbers1, Field(description="Smallest first.")]


class ComparedMatrix(TypedDict):
    """A matrix that the heads are compared with."""

    block: Annotated[int, Field(description="Its block.")]
    matrix: Annotated[
        Literal["W_Q", "W_K", "W_V", "W_in", "W_gate", "W_out"], Field(description="Which.")
    ]
    head: Annotated[int | None, Field(description="Of W_Q: its query head.")]
    kv_head: Annotated[int | None, Field(description="Of W_Q, W_K and W_V: the key/value head.")]
    rank: Annotated[int, Field(description="Dimension of what it reads, or of what it writes.")]


class WeightedAnswer(TypedDict):
    """‖W_O M‖ / (‖W_O‖ ‖M‖): overlap weighted by how strongly each direction is used."""

    score: Annotated[Matrix, Field(description="A row for each head, a column for each matrix.")]
    baseline: Annotated[list[ChanceAnswer], Field(description="One for each column.")]


class MetAnswer(TypedDict):
    """Heads, in rows, against matrices, in columns; null where a matrix cannot read the head."""

    columns: Annotated[list[ComparedMatrix], Field(description="The matrices.")]
    overlap: Annotated[OverlapAnswer, Field(description="Of the subspaces.")]
    weighted: Annotated[WeightedAnswer, Field(description="Of the matrices themselves.")]


class ReadsAnswer(MetAnswer):
    """What later matrices read of what heads write."""

    degrees: NotRequired[
        Annotated[
            list[list[Row | None]],
            Field(
                description="With angles: the principal angles of each head and each W_Q, W_K and "
                "W_V of a later block; columns of networks are left out."
            ),
        ]
    ]


class ComposedHeads(TypedDict):
    """Two heads that compose."""

    writer: Annotated[NamedHead, Field(description="The earlier head.")]
    reader: Annotated[NamedHead, Field(description="The later head.")]
    score: Annotated[float, Field(description="Their score.")]


class KindAnswer(TypedDict):
    """One kind of composition."""

    score: Annotated[
        Matrix,
        Field(description="A row for each head, a column for each reader; null: no later block."),
    ]
    baseline: Annotated[ChanceAnswer, Field(description="What chance gives.")]
    largest: Annotated[list[ComposedHeads], Field(description="At most ten, the largest first.")]


class CompositionAnswer(TypedDict):
    """How much a later head reads of what an earlier one writes."""

    readers: Annotated[list[ReaderHead], Field(description="The columns.")]
    q: Annotated[KindAnswer, Field(description="By its queries.")]
    k: Annotated[KindAnswer, Field(description="By its keys.")]
    v: Annotated[KindAnswer, Field(description="By its values.")]


class RowToken(TypedDict):
    """A token of the vocabulary."""

    id: Annotated[int, Field(description="Its id.")]
    text: Annotated[str | None, Field(description="As text, where the model has a tokenizer.")]


class SubspacesAnswer(TypedDict):
    """Write subspaces, circuits and composition, from the weights alone."""

    model: Annotated[ModelAnswer, Field(description="The model.")]
    fold_norm: Annotated[bool, Field(description="Whether norms were folded into reads.")]
    heads: Annotated[list[WritingHead], Field(description="In the order asked for.")]
    tokens: NotRequired[Annotated[list[RowToken], Field(description="As asked for.")]]
    overlap: NotRequired[
        Annotated[OverlapAnswer, Field(description="Of each two heads' write subspaces.")]
    ]
    angles: NotRequired[
        Annotated[list[AnglesAnswer], Field(description="Of each two heads' write subspaces.")]
    ]
    reads: NotRequired[
        Annotated[ReadsAnswer, Field(description="Heads against what later matrices read.")]
    ]
    ffn: NotRequired[
        Annotated[MetAnswer, Field(description="Heads against what the networks write.")]
    ]
    composition: NotRequired[
        Annotated[CompositionAnswer, Field(description="Earlier heads against later ones.")]
    ]
    notes: Annotated[list[str], Field(description="What this model has that the weights hide.")]
