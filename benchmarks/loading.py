"""The first answer of a large checkpoint over NumPy's time to read the block it needs.

    python benchmarks/loading.py [--rounds 9] [--positions 4]

A checkpoint of about 500 MB, its file in the page cache, in bfloat16, float16 and float32. Ours: a
service that has never seen it answers a POST of hidden states with block 0's `resid_post`: the
folder is opened, checked and hashed, the block read, packed and run, the answer printed. NumPy:
`fromfile` of the same block's tensors, and their conversion to float32. Each time is of a process
of its own, in fresh memory, with one BLAS thread; the order is shuffled; the ratio is the median
of the rounds' ratios. The products, which NumPy's side does not do, read every weight once more.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import settled

LIMIT = 1.5
"""For what is converted, bfloat16 and float16; float32 is shown beside them."""


def main(asked: argparse.Namespace) -> int:
    """Print a line for each dtype; exit 1 where a converted one is above the limit."""
    with tempfile.TemporaryDirectory() as folder:
        ratios = {kind: _ratio(Path(folder) / kind, kind, asked) for kind in ("BF16", "F16", "F32")}
    return int(any(ratios[kind] > LIMIT for kind in ("BF16", "F16")))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--positions", type=int, default=4)
    parser.add_argument("--side", nargs=3, metavar=("NAME", "FOLDER", "KIND"), help="time one")
    return parser.parse_args()


def _ratio(folder: Path, kind: str, asked: argparse.Namespace) -> float:
    from benchmarks import large_checkpoint  # noqa: PLC0415 - after the settings

    large_checkpoint.write(folder / "large", kind)
    times: dict[str, list[float]] = {"ours": [], "numpy": []}
    for at in range(asked.rounds + 1):
        for name in random.sample(list(times), len(times)):
            seconds = _in_a_process(name, folder, kind, asked.positions)
            if at:  # the first round fills the page cache
                times[name].append(seconds)
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times["numpy"], strict=True))
    told = (f"{1e3 * statistics.median(times[name]):6.1f} ms" for name in ("numpy", "ours"))
    print(f"{kind:>4}: NumPy {next(told)}, first answer {next(told)}, ratio {ratio:.2f}")
    (folder / "large" / "model.safetensors").unlink()
    return ratio


def _in_a_process(name: str, folder: Path, kind: str, positions: int) -> float:
    command = [sys.executable, __file__, "--positions", str(positions)]
    command += ["--side", name, str(folder), kind]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(told)


def _side(name: str, folder: Path, kind: str, positions: int) -> float:
    """Seconds that one side takes, its imports and its service made before."""
    side = _first_answer(folder, positions) if name == "ours" else _numpy(folder, kind)
    start = time.perf_counter()
    kept = side()
    seconds = time.perf_counter() - start
    del kept
    return seconds


def _numpy(folder: Path, kind: str) -> Callable[[], object]:
    from benchmarks import large_checkpoint  # noqa: PLC0415 - after the settings

    file = large_checkpoint.found(folder / "large", kind)
    return lambda: large_checkpoint.read_and_convert(file)


def _first_answer(models: Path, positions: int) -> Callable[[], object]:
    """A service that has the folder and has answered for another model, and a POST to it."""
    import numpy as np  # noqa: PLC0415 - after the settings
    from fastapi.testclient import TestClient  # noqa: PLC0415

    from service.app import create_app  # noqa: PLC0415
    from service.settings import Settings  # noqa: PLC0415

    client = TestClient(create_app(Settings(models=(models,))))
    rows = np.random.default_rng(0).standard_normal((positions, 2048)).round(4).tolist()
    select = ["blocks.0.resid_post"]
    other = {"model": {"name": "letter-sort"}, "input": {"token_ids": [1]}, "select": select}
    client.post("/v1/trace", json=other)
    body = {"model": {"name": "large"}, "input": {"tensor": rows}, "select": select}

    def post() -> object:
        answer = client.post("/v1/trace", json=body)
        if answer.status_code != 200:
            raise SystemExit(answer.text)
        return answer

    return post


if __name__ == "__main__":
    settled.restart()
    asked = _arguments()
    if asked.side:
        name, folder, kind = asked.side
        print(_side(name, Path(folder), kind, asked.positions))
        raise SystemExit
    raise SystemExit(main(asked))
