"""The models there are, and one of them."""

from typing import Annotated

from pydantic import Field

from schemas.answers import Sha256
from schemas.base import Answered
from schemas.resolved import ConfigAnswer


class ModelLine(Answered):
    """A model of the store."""

    name: str
    d_model: int
    n_layers: int
    vocab: int | None
    parameters: int


class Models(Answered):
    """The models there are, by name."""

    models: list[ModelLine]
    broken: Annotated[
        dict[str, str], Field(description="Folders that are no model: name and why not.")
    ]


class Parameters(Answered):
    """Numbers held, by part."""

    total: int
    embedding: int
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

    name: str
    digest: Sha256
    config: ConfigAnswer
    parameters: Parameters
    tensors: Annotated[dict[str, list[int]], Field(description="Name -> shape.")]
    tokenizer: Tokenizer
    stages: Annotated[
        list[str], Field(description="The stages it has, for token input, without block prefix.")
    ]
    card: Annotated[str, Field(description="Task, training, measured accuracy, licence: Markdown.")]
