"""The commands that list what there is: stages, models, presets."""

import argparse
import sys
from collections.abc import Sequence

from compute import stages
from schemas.presets import PresetLine
from schemas.sizing.devices import DeviceLine
from service import state
from service.routes import devices, models, presets
from service.routes.stages import encoded as catalogue
from service.settings import Settings

Row = tuple[str, ...]


def list_stages(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the catalogue of stages."""
    if asked.json:
        print(catalogue().decode())
        return 0
    rows: list[Row] = [("stage", "symbol", "axes", "meaning")]
    for stage in stages.STAGES:
        prefix = "blocks.{l}." if stage.level == "block" else ""
        rows.append((prefix + stage.name, stage.symbol or "", " ".join(stage.axes), stage.meaning))
    _print_table(rows)
    print("\naxes: " + ", ".join(f"{letter} {word}" for letter, word in stages.GLOSSARY.items()))
    return 0


def list_models(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the models there are."""
    found = models.listed(state.make(settings).store)
    if asked.json:
        print(found.model_dump_json())
        return 0
    rows: list[Row] = [("model", "blocks", "d_model", "vocab", "parameters")]
    for line in found.models:
        sizes = (line.n_layers, line.d_model, line.vocab or "", f"{line.parameters:,}")
        rows.append((line.name, *map(str, sizes)))
    _print_table(rows)
    for name, reason in found.broken.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 0


def list_presets(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the shapes that have a name."""
    if asked.json:
        print(presets.encoded().decode())
        return 0
    heads = ("preset", "blocks", "d_model", "heads", "vocab", "parameters", "runs", "meaning")
    _print_table([heads, *map(_of_preset, presets.listed().presets)])
    return 0


def _of_preset(line: PresetLine) -> Row:
    """What a preset is, in one sentence; --json has all of it."""
    config = line.config
    heads = config["attention"].get("n_heads", "")
    sizes = (config["n_layers"], config["d_model"], heads, config["vocab"] or "")
    runs = "yes" if line.runs else "no"
    return (line.name, *map(str, sizes), f"{line.parameters:,}", runs, _first(line.meaning))


def _first(text: str) -> str:
    """The first sentence of a text, its full stop left out."""
    return text.partition(". ")[0].removesuffix(".")


def list_devices(asked: argparse.Namespace, settings: Settings) -> int:
    """Print the devices that have a name."""
    if asked.json:
        print(devices.encoded().decode())
        return 0
    heads = ("device", "TFLOP/s", "GB/s", "memory", "FLOP/byte", "title")
    _print_table([heads, *map(_of_device, devices.listed().devices)])
    return 0


def _of_device(line: DeviceLine) -> Row:
    rates = (line.flops_per_second / 10**12, line.bytes_per_second / 10**9)
    memory = f"{line.memory} {line.memory_unit}"
    return (line.name, *(f"{x:g}" for x in rates), memory, f"{line.ridge:.1f}", line.title)


def _print_table(rows: Sequence[Row]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (word.ljust(width) for word, width in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())
