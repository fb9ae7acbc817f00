"""An answer model as a response."""

from fastapi import Response

from schemas.base import Answered


def json(answer: Answered) -> Response:
    """The answer as JSON, in UTF-8."""
    return Response(answer.model_dump_json(), media_type="application/json")
