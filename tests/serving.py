"""An application behind a server's socket, in a thread of the tests."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from service.protocol import protocol
from service.settings import Settings

STEP = 0.005
PATIENCE = 10


@contextmanager
def served(app: FastAPI, is_quiet: Callable[[], bool]) -> Iterator[int]:
    """The port of a server that runs the application; afterwards it becomes quiet, and stops."""
    config = uvicorn.Config(
        app, port=0, http=protocol(Settings()), ws="none", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
            until(is_quiet)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive()


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition, and fail where it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(STEP)
