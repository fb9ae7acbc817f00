"""/docs: Swagger UI from an installed package; the page loads nothing from elsewhere."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Request, Response

from service import errors, openapi

router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OWN = Path(__file__).parent / "_assets"
_PACKAGE = "fastapi_offline"
_MEDIA_TYPES = {
    "docs.html": "text/html; charset=utf-8",
    "init.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon.png": "image/png",
}


@router.get("/openapi.json")
def description(request: Request) -> Response:
    """The OpenAPI document; in a thread, since the first request makes it."""
    return Response(openapi.encoded(request.app), media_type="application/json")


@router.get("/docs")
async def page() -> Response:
    """The page that draws it."""
    return _served("docs.html")


@router.get("/docs/{name}")
async def asset(name: str) -> Response:
    """A part of the page."""
    return _served(name)


def _served(name: str) -> Response:
    if name not in _MEDIA_TYPES:
        raise errors.NotFound
    headers = {
        "Content-Security-Policy": POLICY,
        "Content-Type": _MEDIA_TYPES[name],
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(_read(name), headers=headers)


@lru_cache(maxsize=len(_MEDIA_TYPES))
def _read(name: str) -> bytes:
    own = _OWN / name
    return (own if own.exists() else _packaged() / name).read_bytes()


def _packaged() -> Path:
    """Where the package keeps Swagger UI; found without running any of its code."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(_PACKAGE)
    return Path(spec.submodule_search_locations[0]) / "static"
