"""A sizing answer as tables that a person reads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.picture import words

Answer = Mapping[str, Any]
Row = tuple[str, str, str, str]

_LEAST_SHARE = 0.0005
"""Parts below so much of the total are summed up in one row."""

_UNITS = {"FLOP": "FLOP", "MAC": "MAC", "bytes": "bytes", "parameters": "", "elements": ""}
_SHORT = ((10**18, "E"), (10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))


def page(answer: Answer, notes: Sequence[str]) -> Iterator[RenderableType]:
    """Head, one table for each section that was asked for, and what does not apply."""
    yield words.text(_head(answer), words.STRONG)
    yield words.text(_workload(answer), words.DIM)
    for note in notes:
        yield words.prose(f"note: {note}")
    for name, told in _SECTIONS.items():
        if answer.get(name) is not None:
            yield from told(answer[name])
    yield Text()
    yield from (words.prose(f"{name}: {why}", words.DIM) for name, why in answer["absent"].items())
    yield words.text("every part, formula and exclusion: --json, or POST /v1/sizing", words.DIM)


def _head(answer: Answer) -> str:
    model, config = answer["model"], answer["model"]["config"]
    attention, name = config["attention"], answer["model"]["preset"] or answer["model"]["name"]
    sizes = [f"{config['n_layers']} blocks", f"d_model {config['d_model']}"]
    if attention["kind"] != "none":
        shared = attention["n_kv_heads"]
        grouped = "" if shared == attention["n_heads"] else f" on {shared} of keys and values"
        sizes.append(f"{attention['n_heads']} heads of {attention['d_head']}{grouped}")
    if config["vocab"]:
        sizes.append(f"vocab {config['vocab']:,}")
    changed = f" (changed: {', '.join(model['overrides'])})" if model["overrides"] else ""
    return " · ".join([f"{name or 'config'}{changed}", *sizes])


def _workload(answer: Answer) -> str:
    said = answer["workload"]
    words_of = [f"tokens {said['tokens']:,}", f"batch {said['batch']:,}", said["dtype"]]
    for key in ("cached", "source_tokens", "new_tokens"):
        if said[key]:
            words_of.insert(1, f"{key} {said[key]:,}")
    return " · ".join(words_of)


def _parameters(told: Answer) -> Iterator[RenderableType]:
    yield from _table("parameters", told)
    counts = [
        f"{name} {view['total']['value']:,}"
        for name, view in told["views"].items()
        if view["total"]["value"] != told["total"]["value"]
    ]
    if counts:
        yield words.prose("  by another count: " + "; ".join(counts), words.DIM)
    article = told["article"]
    yield words.prose(
        f"  the article's {article['formula'].rpartition(' = ')[2]} = {article['substituted']} = "
        f"{article['total']['value']:,}; gap {article['gap']['value']:,}",
        words.DIM,
    )


def _flops(told: Answer) -> Iterator[RenderableType]:
    yield from _table("FLOPs of a pass", told["forward"])
    rows = [("one training step", told["train"]["hardware"])]
    for name in ("decode", "generation"):
        if told[name] is not None:
            title = {"decode": "one cached step more", "generation": "generation"}[name]
            rows.insert(0, (title, told[name]["total"]))
    yield _amounts(rows)


def _kv_cache(told: Answer) -> Iterator[RenderableType]:
    yield from _table("KV cache", told["allocation"])
    rows = [("a token", told["per_token"])]
    if told["lower_bound"]["total"] != told["allocation"]["total"]:
        rows.append(("at least, windows capped", told["lower_bound"]["total"]))
    yield _amounts(rows)


def _weights(told: Answer) -> Iterator[RenderableType]:
    yield from _table(f"weights in {told['dtype']}", told)


def _activations(told: Answer) -> Iterator[RenderableType]:
    yield from _titled("activations")
    moment = told["inference"]["moment"]
    rows = [(f"a pass, nothing kept; most at {moment}", told["inference"]["total"])]
    if told["decode"] is not None:
        rows.append(("one cached step more", told["decode"]["total"]))
    rows.append((f"training, {told['recompute']} recomputed", told["training"]["total"]))
    yield _amounts(rows)


def _trace(told: Answer) -> Iterator[RenderableType]:
    yield from _titled(f"a trace of this service, {told['dtype']}")
    rows = [("numbers", told["elements"]["total"]), ("as JSON", told["json_bytes"])]
    yield _amounts([*rows, ("memory", told["memory"])])
    if not told["fits"]:
        names = ", ".join(limit["name"] for limit in told["limits"])
        yield words.prose(f"  beyond this service's limits: {names}", words.DIM)


def _training(told: Answer) -> Iterator[RenderableType]:
    each = told["bytes_per_parameter"]
    parts = " + ".join(str(size) for name, size in each.items() if name != "total" and size)
    yield from _titled(f"training's state, {parts} = {each['total']} bytes a parameter")
    yield _amounts([("all of it on one rank", told["all_ranks"])])


def _roofline(told: Answer) -> Iterator[RenderableType]:
    name, memory = told["device"]["name"] or "the device", told["memory"]
    yield from _titled(f"on {name}: times at least, speeds at most")
    if memory["fits"] is False:
        needed = _amount(memory["needed"])
        yield words.prose(f"  does not fit: weights and cache take {needed}", words.STRONG)
    lines: list[Row] = []
    for name in ("prefill", "decode"):
        if told[name] is None:
            continue
        found, phase = told[name]["per_operator"], {"prefill": "a pass", "decode": "a step"}[name]
        speed = f"{found['tokens_per_second']:,.0f} tokens/s of all sequences"
        row = (phase, f"{1000 * found['seconds']:,.3f} ms", speed, f"bound by {found['bound']}")
        lines.append(row)
    yield from _lines(lines)


def _crossovers(told: Answer) -> Iterator[RenderableType]:
    yield from _titled("from where on")
    lines: list[Row] = []
    for name, found in told.items():
        if found["value"] is not None:
            row = (_CROSSED[name], f"{found['value']:,} {found['unit']}", "", "")
            lines.append(row)
    yield from _lines(lines)


_CROSSED = {
    "attention_full": "attention takes as much as products, all pairs",
    "attention_exact": "the same, visible pairs",
    "kv_cache": "the caches are as large as the weights",
    "kv_cache_windowed": "the same, windows capped",
    "decode_batch": "a step is bound by computing",
}


def _sensitivity(told: Answer) -> Iterator[RenderableType]:
    yield from _titled("one per cent more of a field")
    lines: list[Row] = []
    for found in told["fields"]:
        moved = {"parameters": "parameters", "flops": "FLOP", "kv_bytes_per_token": "cache"}
        row = [
            f"{found[key]['elasticity']:+.3f} % {word}"
            for key, word in moved.items()
            if found[key] is not None and found[key]["elasticity"] is not None
        ]
        cells = (found["field"], f"{found['value']:,}", "", ", ".join(row))
        lines.append(cells)
    yield from _lines(lines)


def _titled(title: str) -> Iterator[RenderableType]:
    yield Text()
    yield words.text(title, words.STRONG)


def _table(title: str, ledger: Answer) -> Iterator[RenderableType]:
    """A total and its larger parts with their formulas."""
    yield from _titled(f"{title}  {_amount(ledger['total'])}")
    lines: list[Row] = []
    small = [part for part in ledger["parts"] if abs(part["share"]) < _LEAST_SHARE]
    for part in ledger["parts"]:
        if len(small) > 1 and part in small:
            continue
        lines.append(_row(part))
    if len(small) > 1:
        value = sum(part["value"] for part in small)
        share = f"{100 * sum(part['share'] for part in small):.2f} %"
        lines.append((f"{len(small)} small parts", f"{value:,}", share, ""))
    yield from _lines(lines)


def _row(part: Answer) -> tuple[str, str, str, str]:
    formula = part["formula"]
    if formula != part["substituted"]:
        formula = f"{formula} = {part['substituted']}"
    return part["id"], _exact(part["exact"]), f"{100 * part['share']:.2f} %", formula


def _amounts(rows: Sequence[tuple[str, Answer]]) -> RenderableType:
    lines: list[Row] = []
    for title, amount in rows:
        lines.append((title, _amount(amount), "", ""))
    return Group(*_lines(lines))


def _lines(rows: Sequence[Row]) -> Iterator[Text]:
    """Rows of four cells: a name at the left, two numbers at the right, and words."""
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    for name, first, second, rest in rows:
        cells = (name.ljust(widths[0]), first.rjust(widths[1]), second.rjust(widths[2]), rest)
        told = "  ".join(cell for cell, width in zip(cells, widths, strict=True) if width)
        yield words.text(f"  {told.rstrip()}")


def _exact(digits: str) -> str:
    """Every digit, in groups of three."""
    return f"{int(digits):,}" if digits.lstrip("-").isdecimal() else digits


def _amount(amount: Answer) -> str:
    """`124,439,808`, `251,658,240 bytes (240.0 MiB)`, `291,648,307,200 FLOP (291.6 G)`."""
    unit = _UNITS.get(amount["unit"], amount["unit"])
    kind = "" if amount["kind"] == "exact" else f", {amount['kind'].replace('_', ' ')}"
    return f"{_exact(amount['exact'])} {unit}".strip() + _shortly(amount) + kind


def _shortly(amount: Answer) -> str:
    value = float(amount["value"])
    if amount["unit"] == "bytes":
        gib = value / (1 << 30)
        return f" ({gib:.3f} GiB)" if gib >= 1 else f" ({value / (1 << 20):.3f} MiB)"
    near = next(((size, letter) for size, letter in _SHORT if value >= size), None)
    if near is None or amount["unit"] == "parameters":
        return ""
    return f" ({value / near[0]:.2f} {near[1]}{_UNITS.get(amount['unit'], '')})"


_SECTIONS: Mapping[str, Callable[[Answer], Iterator[RenderableType]]] = {
    "parameters": _parameters,
    "flops": _flops,
    "kv_cache": _kv_cache,
    "weights": _weights,
    "activations": _activations,
    "trace": _trace,
    "training": _training,
    "roofline": _roofline,
    "crossovers": _crossovers,
    "sensitivity": _sensitivity,
}
