"""Keeps the store in order: at the start, and now and then for as long as the service runs."""

import logging

import anyio
from anyio import to_thread

from service.storage.store import Store

SECONDS = 60.0
_log = logging.getLogger("glassblock")


async def keep_tidy(store: Store) -> None:
    """Let go of models that changed or are gone; remove what ended uploads left on disk."""
    while True:
        try:
            await to_thread.run_sync(store.tidy)
        except OSError:
            _log.exception("The folder of uploads cannot be put in order.")
        await anyio.sleep(SECONDS)
