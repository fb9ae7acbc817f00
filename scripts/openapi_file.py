"""Print docs/openapi.json: the description of the interface, so that a change of it is seen."""

import sys

import orjson

from service.app import create_app
from service.openapi import document
from service.settings import Settings


def main() -> None:
    """The document of an application with the default settings, keys in order."""
    found = document(create_app(Settings(_env_file=None)))
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    sys.stdout.buffer.write(orjson.dumps(found, option=options))


if __name__ == "__main__":
    main()
