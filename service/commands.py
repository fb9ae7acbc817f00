"""What the commands of the command line do. `cli` reads the words; this reads everything else."""

import argparse
import errno
import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import TextIO

import uvicorn
from pydantic import ValidationError
from pydantic_settings import SettingsError

from schemas.sizing.request import SizingRequest
from schemas.trace import TraceRequest
from service import (
    calls,
    errors,
    listings,
    middleware,
    problems,
    sizing_command,
    state,
    traces,
    wrong_settings,
)
from service.app import create_app
from service.bodies import Sent
from service.protocol import protocol
from service.questions import sizing
from service.settings import PREFIX, Settings, reason_not_to_listen
from service.storage import roots
from service.storage.store import Store

_LOG = "%(asctime)s %(levelname)s %(name)s %(message)s"
_DRAIN_SECONDS = 5
_YOUNG = 50_000
"""New objects until the youngest are looked through."""

_UNREAD = 128 + signal.SIGPIPE
"""The status that a shell gives a tool whose reader has gone."""

_NO_FOLDER = (
    'this is a folder. A file is due that holds a request as JSON, {"model": {"name": …}, '
    '"input": …}, or - for standard input; GLASSBLOCK_MODELS names the folder of a model.'
)

Command = Callable[[argparse.Namespace, Settings], int]


class Server(uvicorn.Server):
    """Uvicorn, saying by /readyz that it is about to stop."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no more work, then stop."""
        self._stopping()
        super().handle_exit(sig, frame)


def run(asked: argparse.Namespace) -> int:
    """Run the command that was asked for; the exit status."""
    given = {name: getattr(asked, name, None) for name in ("host", "port")}
    given["uploads"] = _own_uploads()
    try:
        settings = Settings(**{name: word for name, word in given.items() if word is not None})
    except (ValidationError, SettingsError) as error:
        lines = [str(error)] if isinstance(error, SettingsError) else wrong_settings.told(error)
        print(*(f"glassblock: {line}" for line in lines), sep="\n", file=sys.stderr)
        return 2
    logging.basicConfig(level=settings.log_level.upper(), format=_LOG, stream=sys.stderr)
    for line in wrong_settings.unknown(os.environ):
        middleware.log.warning(line)
    return COMMANDS[asked.command](asked, settings)


def _own_uploads() -> Path | None:
    """In a checkout every command keeps uploads, and finds them, in one folder there.

    Unless the environment says where; or that there are none, by an empty word.
    """
    said = f"{PREFIX}UPLOADS" in map(str.upper, os.environ)
    here = roots.checkout()
    return None if said or here is None else here / ".uploads"


def serve(asked: argparse.Namespace, settings: Settings) -> int:
    """Answer requests until a signal comes."""
    reason = reason_not_to_listen(settings)
    if reason is not None:
        print(f"glassblock: {reason}", file=sys.stderr)
        return 2
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    # Uvicorn stops, then raises the signal again: a stop that was asked for is a success.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settle()
    try:
        Server(config, app.state.glassblock.admission.drain).run()
    except KeyboardInterrupt:
        return 130
    return 0


def trace(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the answer of POST /v1/trace, or its problem on standard error.

    What goes to a terminal is a picture, what goes elsewhere is JSON, unless asked otherwise.
    """
    try:
        body, here = _body(asked.file, settings.body_bytes), state.make(settings)
        pieces = calls.answer(Sent(body), TraceRequest, traces.work, here, lambda: None).pieces
        if _is_read(asked, sys.stdout):
            _screen().show_answer(pieces, sys.stdout, _token_of(here.store))
        else:
            sys.stdout.buffer.writelines([*pieces, b"\n"])
    except errors.HANDLED as error:
        return _refused(error, settings, is_read=_is_read(asked, sys.stderr))
    return 0


def _refused(error: Exception, settings: Settings, *, is_read: bool) -> int:
    """Print an error as a problem on standard error; the exit status."""
    refusal = errors.refusal_of(error)
    problem = problems.problem(refusal, settings.faults)
    if is_read:
        _screen().show_problem(problem, sys.stderr)
    else:
        sys.stderr.buffer.write(problems.encode(problem) + b"\n")
    return 2 if refusal.status < 500 else 1


def size(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the answer of POST /v1/sizing: a table, or as JSON; or its problem."""
    try:
        here = state.make(settings)
        is_file = asked.model == "-" or asked.model.endswith(".json")
        if is_file and sizing_command.said(asked):
            raise OSError("a request in a file says all of it: leave the other words out")
        body = (
            _body(asked.model, settings.body_bytes) if is_file else sizing_command.body(asked, here)
        )
        pieces = calls.answer(Sent(body), SizingRequest, sizing.work, here, lambda: None).pieces
    except errors.HANDLED as error:
        return _refused(error, settings, is_read=not asked.json)
    if asked.json:
        sys.stdout.buffer.writelines(pieces)
    else:
        _screen().show_sizing(pieces, sys.stdout, partial(sizing_command.notes, asked))
    return 0


def _screen() -> ModuleType:
    """What draws in a terminal; a service never does, and starts without it."""
    from service.picture import screen  # noqa: PLC0415

    return screen


def settle() -> None:
    """Spare what the start has made from garbage collections, and look less often: each took 0.1 s
    of some request, and what requests make is freed without them."""
    gc.freeze()
    gc.set_threshold(_YOUNG)


def _token_of(store: Store) -> Callable[[str, int], str]:
    """From a model's name and a token id to its text, empty where there is none."""

    def token(model: str, token_id: int) -> str:
        text = store.get(model).text
        return "" if text is None else text.piece(token_id) or ""

    return token


def _is_read(asked: argparse.Namespace, stream: TextIO) -> bool:
    """Whether someone reads this stream: asked for, or a terminal."""
    return asked.picture or (stream.isatty() and not asked.json)


def printed(command: Command) -> Command:
    """A command whose output may end early: its reader has gone, or a disk is full."""

    def run_whole(asked: argparse.Namespace, settings: Settings) -> int:
        try:
            return _flushed(command, asked, settings)
        except BrokenPipeError:
            _drop_what_is_unread()
            return _UNREAD

    return run_whole


def _flushed(command: Command, asked: argparse.Namespace, settings: Settings) -> int:
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        for stream in _streams():
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what its encoding lacks is a question mark
        status = command(asked, settings)
        for stream in _streams():
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        told = error if error.filename is None else f"{error.filename}: {error.strerror}"
        print(f"glassblock: {told}", file=sys.stderr)
        return 2
    return status


def _drop_what_is_unread() -> None:
    """Send the rest of a stream without a reader nowhere, so that no flush at the exit fails."""
    for stream in _streams():
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _streams() -> Iterator[TextIO]:
    """Where a command prints, as far as it is open."""
    return filter(None, (sys.stdout, sys.stderr))


COMMANDS: Mapping[str, Command] = {
    "serve": serve,
    "trace": printed(trace),
    "size": printed(size),
    "stages": printed(listings.list_stages),
    "models": printed(listings.list_models),
    "presets": printed(listings.list_presets),
    "devices": printed(listings.list_devices),
}


def _body(file: str, most: int) -> bytes:
    """A file's bytes, one more than the limit at most, so that the limit can refuse them."""
    if file == "-" and sys.stdin is None:
        raise OSError("standard input is closed")
    if Path(file).is_dir():
        raise IsADirectoryError(errno.EISDIR, _NO_FOLDER, file)
    if file == "-":
        body = sys.stdin.buffer.read(most + 1)
    else:
        with Path(file).open("rb") as opened:
            body = opened.read(most + 1)
    if len(body) > most:
        raise errors.BodyTooLarge(most)
    return body
