"""The router that each file of routes makes."""

from fastapi import APIRouter
from fastapi.routing import APIRoute


def router(tag: str, prefix: str = "/v1") -> APIRouter:
    """A router whose routes share a tag; an operation is called as its function is."""
    return APIRouter(prefix=prefix, tags=[tag], generate_unique_id_function=_name)


def _name(route: APIRoute) -> str:
    return route.name
