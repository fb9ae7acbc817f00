"""An answer model as a response."""

from fastapi import Response

from schemas.base import Answered


def json(answer: Answered, status: int = 200) -> Response:
    """The answer as JSON, in UTF-8."""
    return Response(answer.model_dump_json(), status, media_type="application/json")
