"""The command `glassblock`: serve, trace, size, stages, models, presets, devices."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_LISTS = {
    "stages": "list the tensors of a trace",
    "models": "list the models",
    "presets": "list the shapes that have a name",
    "devices": "list the devices that have a name",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    asked = parser().parse_args(arguments)
    for name, value in _ONE_BLAS_THREAD.items():
        os.environ.setdefault(name, value)
    try:
        status: int = _commands().run(asked)
        return status
    except KeyboardInterrupt:
        return 130


def _commands() -> ModuleType:
    """The commands, imported now: NumPy reads the environment when it is imported, and never
    again. All of it stays: garbage collections would find nothing in it, and take long."""
    gc.disable()
    try:
        from service import commands  # noqa: PLC0415

        gc.freeze()
    finally:
        gc.enable()
    return commands


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    command = argparse.ArgumentParser(
        prog="glassblock",
        description="A transformer block you can see through. Settings come from the environment: "
        "GLASSBLOCK_HOST, GLASSBLOCK_PORT, and the others in docs/settings.md.",
    )
    commands = command.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="answer HTTP requests until stopped")
    serve.add_argument("--host", help="address to listen on (default: the setting, 127.0.0.1)")
    serve.add_argument("--port", type=int, help="port to listen on (default: the setting, 8000)")
    trace = commands.add_parser("trace", help="answer one trace request without a server")
    trace.add_argument("file", help="the request as JSON, or - for standard input")
    form = trace.add_mutually_exclusive_group()
    form.add_argument("--picture", action="store_true", help="to be read, even when piped")
    form.add_argument("--json", action="store_true", help="as the service answers it")
    _add_size(commands.add_parser("size", help="what a model holds, computes and takes"))
    for name, words in _LISTS.items():
        listing = commands.add_parser(name, help=words)
        listing.add_argument("--json", action="store_true", help="as the service answers it")
    return command


def _add_size(size: argparse.ArgumentParser) -> None:
    size.add_argument("model", help="a preset, a model, or a file of a sizing request (- : input)")
    size.add_argument("--context", type=int, metavar="N", help="positions of a sequence")
    size.add_argument("--batch", type=int, metavar="B", help="sequences (default: 1)")
    size.add_argument("--dtype", help="what numbers are stored in: bf16, fp16, fp32, int8, q4_0, …")
    size.add_argument("--device", help="one of `glassblock devices`: times on it")
    size.add_argument("--json", action="store_true", help="as the service answers it")


if __name__ == "__main__":
    sys.exit(main())
