"""The models there are, and one of them."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.answers import Sha256
from schemas.base import Answered
from schemas.resolved import ConfigAnswer

Family = Annotated[
    str, Field(description="How its config and tensors are named: glassblock is our own form.")
]
Origin = Literal["shipped", "folder", "uploaded"]
"""Where a model came from."""

Came = Annotated[
    Origin, Field(description="With the service, in a folder of GLASSBLOCK_MODELS, or by PUT.")
]


class ModelLine(Answered):
    """A model of the store."""

    name: Annotated[str, Field(description="What a request calls it.")]
    family: Family
    origin: Came
    d_model: Annotated[int, Field(description="Width of the stream.")]
    n_layers: Annotated[int, Field(description="Blocks.")]
    vocab: Annotated[int | None, Field(description="Tokens; null: none.")]
    parameters: Annotated[int, Field(description="Numbers it holds.")]


class Models(Answered):
    """The models there are, by name."""

    models: Annotated[list[ModelLine], Field(description="A line each, by name.")]
    broken: Annotated[
        dict[str, str],
        Field(
            description="Folders and files that are no model that a request can name: name and "
            "why not."
        ),
    ]


class Parameters(Answered):
    """Numbers held, by part."""

    total: Annotated[int, Field(description="The sum of the parts.")]
    embedding: Annotated[int, Field(description="Tables of tokens and positions.")]
    matrices: Annotated[int, Field(description="Of attention and ffn, in all blocks.")]
    biases: Annotated[int, Field(description="Of attention and ffn, in all blocks.")]
    norms: Annotated[int, Field(description="Gains and biases, the final norm's too.")]
    readout: Annotated[int, Field(description="0 where it is tied to the embedding.")]


class Tokenizer(Answered):
    """What there is to say of a tokenizer."""

    type: Annotated[str, Field(description="BPE, WordPiece, Unigram or WordLevel.")]
    vocabulary: Annotated[int, Field(description="How many tokens it has.")]
    special: Annotated[
        dict[str, int], Field(description="Special tokens, 100 at most: token -> id.")
    ]
    tokens: Annotated[list[str], Field(description="The first of them, by id.")]


class ModelDetail(Answered):
    """A model of the store, whole but for its tensors' values."""

    name: Annotated[str, Field(description="What a request calls it.")]
    family: Family
    origin: Came
    digest: Annotated[
        Sha256, Field(description="Of its content and config: as in a trace's answer.")
    ]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]
    parameters: Annotated[Parameters, Field(description="How many numbers it holds, by part.")]
    dtypes: Annotated[list[str], Field(description="What its weights are stored as, by name.")]
    tensors: Annotated[dict[str, list[int]], Field(description="Name -> shape.")]
    left_out: Annotated[
        dict[str, str],
        Field(
            description="Tensors of its files that are not read, 100 at most: name -> which of it "
            "is not, `whole` or some of its rows."
        ),
    ]
    left_out_total: Annotated[int, Field(description="How many there are.")]
    tokenizer: Annotated[
        Tokenizer | None, Field(description="How text becomes tokens; null: text is refused.")
    ]
    stages: Annotated[
        list[str],
        Field(
            description="The stages it has, for token input, without block prefix; an encoder's "
            "begin with `encoder.`."
        ),
    ]
    card: Annotated[
        str, Field(description="What its makers say of it: Markdown, empty where nothing.")
    ]
