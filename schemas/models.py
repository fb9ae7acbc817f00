"""The models there are, and one of them."""

from typing import Annotated

from pydantic import Field

from schemas.answers import Sha256
from schemas.base import Answered
from schemas.resolved import ConfigAnswer


class ModelLine(Answered):
    """A model of the store."""

    name: Annotated[str, Field(description="What a request calls it.")]
    d_model: Annotated[int, Field(description="Width of the stream.")]
    n_layers: Annotated[int, Field(description="Blocks.")]
    vocab: Annotated[int | None, Field(description="Tokens; null: none.")]
    parameters: Annotated[int, Field(description="Numbers it holds.")]


class Models(Answered):
    """The models there are, by name."""

    models: Annotated[list[ModelLine], Field(description="A line each, by name.")]
    broken: Annotated[
        dict[str, str], Field(description="Folders that are no model: name and why not.")
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

    vocabulary: Annotated[int, Field(description="How many tokens it has.")]
    tokens: Annotated[list[str], Field(description="The first of them, by id.")]


class ModelDetail(Answered):
    """A model of the store, whole but for its tensors' values."""

    name: Annotated[str, Field(description="What a request calls it.")]
    digest: Annotated[
        Sha256, Field(description="Of its content and config: as in a trace's answer.")
    ]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]
    parameters: Annotated[Parameters, Field(description="How many numbers it holds, by part.")]
    tensors: Annotated[dict[str, list[int]], Field(description="Name -> shape.")]
    tokenizer: Annotated[Tokenizer, Field(description="How text becomes tokens.")]
    stages: Annotated[
        list[str], Field(description="The stages it has, for token input, without block prefix.")
    ]
    card: Annotated[str, Field(description="Task, training, measured accuracy, licence: Markdown.")]
