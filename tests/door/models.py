"""Names of models there are not, and what a named model does not take."""

from functools import partial

from door.case import LETTERS, MARK, NUMBER, asked

_NAME = "/model/name"
_unknown = partial(asked, base=LETTERS, faults="unknown_model", problem="unknown-model",
                   says="There is no model of this name.")  # fmt: skip
NAMES = [
    _unknown(f"model {name[:40]!r}", {_NAME: name})
    for name in (
        MARK, "letter", "letter-sorted", "Letter-Sort", "letter_sort", "letter-sort ",
        " letter-sort", "letter-sort\0", "letter-sort\n", "letter-sort/", "letter-sort/config.json",
        "./letter-sort", ".", "..", "/", "\\", "../models/letter-sort", "../../etc/passwd",
        "/etc/passwd", "..\\..\\x", "C:\\x", "%2e%2e%2f", "\uff0e\uff0e/", "file:///etc/passwd",
        "~", "*", "?",
        "letter-sort;ls", "$(id)", "{0}", "%s", "None", "null", "0", "l\u0435tter-sort",
        "letter\u2010sort", "\u202eletter-sort", "\U0001f600", "x" * 128,
    )
]  # fmt: skip

_weights = partial(asked, base=LETTERS, faults={"/model": "init_with_name"},
                   says="A named model brings its weights: leave init and seed out.")  # fmt: skip
WEIGHTS = [
    *(_weights(f"name and init {word}", {"/model/weights/init": word})
      for word in ("seeded", "identity", "zeros")),
    *(_weights(f"name and seed {seed}", {"/model/weights/seed": seed}) for seed in (0, 7)),
    _weights("name, init and seed", {"/model/weights": {"init": "seeded", "seed": 1}}),
    *(asked(f"seed of init {word}", {"/model/weights": {"init": word, "seed": 0}},
            {"/model/weights": "seed_unused"}, says="seed belongs to init = seeded.")
      for word in ("identity", "zeros")),
    asked("name and config", {"/model/name": MARK}, {"/model": "exactly_one"}),
    asked("tensor a named model does not have", {"/model/weights/tensors": {MARK: [NUMBER]}},
          {f"/model/weights/tensors/{MARK}": "unknown_tensor"}, "shape-mismatch", base=LETTERS),
]  # fmt: skip
