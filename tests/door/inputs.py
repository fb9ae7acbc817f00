"""Token ids, texts, position ids and masks that no model, or not this one, can read."""

from functools import partial

from door.case import LETTERS, MARK, TOKENS, Raw, asked

_IDS, _TEXT = "/input/token_ids", "/input/text"
_ids = partial(asked, base=TOKENS, faults="wrong_type", says="A whole number is due here.")
IDS = [
    *(_ids(f"token id {shown} at {at}", {f"{_IDS}/{at}": wrong})
      for shown, wrong in [("1.5", 1.5), ("1.0", 1.0), ("1e0", Raw("1e0")), ("true", True),
                           ("null", None), ("text", MARK), ("'1'", "1"), ("an object", {})]
      for at in (0, 1, 2)),
    *(_ids(f"token id {wrong}", {f"{_IDS}/1": wrong}, faults="out_of_range",
           says="from 0 to 2^53")
      for wrong in (-1, -(1 << 40), (1 << 53) + 1, (1 << 63) - 1, 1 << 64, 10**30)),
    *(_ids(f"token id {wrong} of a vocabulary of 5", {f"{_IDS}/2": wrong},
           faults="out_of_vocabulary", problem="invalid-input", says="from 0 to 4")
      for wrong in (5, 6, 50257, 1 << 53)),
    _ids("two ids out of the vocabulary", {_IDS: [[5, 1], [2, 9]]},
         faults={f"{_IDS}/0/0": "out_of_vocabulary", f"{_IDS}/1/1": "out_of_vocabulary"},
         problem="invalid-input", says=""),
    _ids("token ids are a number", {_IDS: 1}, faults="rank_mismatch", says="nested 1 or 2 deep"),
    _ids("token ids three deep", {_IDS: [[[1]]]}, faults="rank_mismatch", says="1 or 2 deep"),
    _ids("token ids are text", {_IDS: MARK}, faults="rank_mismatch", says=""),
    _ids("no token ids", {_IDS: []}, faults="empty", says="empty"),
    _ids("batch of no token ids", {_IDS: [[], []]}, faults={
         f"{_IDS}/0": "empty", f"{_IDS}/1": "empty"}, says="empty"),
    _ids("batch of unequal token ids", {_IDS: [[1, 2], [3]]}, faults={f"{_IDS}/1": "ragged"},
         says="2 entries"),
    _ids("token id beside a list", {_IDS: [[1, 2], 3]}, faults={f"{_IDS}/1": "wrong_type"},
         says="A list is due"),
    asked("token ids without a vocab", {"/input": {"token_ids": [0, 1]}},
          {_IDS: "no_vocab"}, "invalid-input", says="has no vocab"),
]  # fmt: skip

_text = partial(asked, base=LETTERS, problem="invalid-input")
TEXTS = [
    asked("text for a config", {"/input": {"text": MARK}}, {_TEXT: "no_tokenizer"},
          "invalid-input", says="Only a named model"),
    asked("texts for a config", {"/input": {"text": [MARK, "A"]}}, {_TEXT: "no_tokenizer"},
          "invalid-input"),
    *(_text(f"letters the tokenizer lacks: {name}", {_TEXT: text}, "out_of_vocabulary")
      for name, text in [("X", "CAX"), ("lower case", "cab"), ("a space", "A B"), (MARK, MARK),
                         ("NUL", "A\0"), ("a newline", "AB\n"), ("an accent", "A\u0301"),
                         ("emoji", "A\U0001f600"), ("Greek", "\u0391"), ("wide", "\uff21"),
                         ("a joiner", "A\u200d"), ("last of Unicode", "\U0010ffff")]),
    _text("unknown letter in the second text", {_TEXT: ["AB", f"A{MARK}"]},
          {f"{_TEXT}/1": "out_of_vocabulary"}),
    _text("empty text", {_TEXT: ""}, "no_tokens", says="no tokens"),
    _text("empty text in a list", {_TEXT: ["A", ""]}, {f"{_TEXT}/1": "no_tokens"}),
    _text("texts all empty", {_TEXT: ["", ""]},
          {f"{_TEXT}/0": "no_tokens", f"{_TEXT}/1": "no_tokens"}),
    _text("text longer than the table of positions", {_TEXT: "A" * 12}, "out_of_positions",
          says="0 to 10"),
    _text("text as long as may be", {_TEXT: "A" * 65536}, {_TEXT: "beyond_limit"},
          problem="beyond-limit", says="positions"),
    _text("65 texts", {_TEXT: ["A"] * 65}, {_TEXT: "beyond_limit"}, problem="beyond-limit",
          says="batch"),
    _text("word the toy lacks", {"/model/name": "eiffel-toy", _TEXT: "the Louvre"},
          "out_of_vocabulary"),
    _text("words of the toy in capitals", {"/model/name": "eiffel-toy", _TEXT: "THE TOWER"},
          "out_of_vocabulary"),
    _text("spaces for the toy", {"/model/name": "eiffel-toy", _TEXT: "   "}, "no_tokens"),
]  # fmt: skip

_LEARNED = {"/model/config/position": {"kind": "learned", "n_positions": 2}}
_AT = "/input/position_ids"
_place = partial(asked, faults="shape_mismatch", problem="invalid-input")
POSITIONS = [
    *(_place(f"position_ids of shape {list(shape)}", {_AT: ids}, says="[2]")
      for shape, ids in [((1,), [0]), ((3,), [0, 1, 2]), ((1, 2), [[0, 1]]), ((2, 1), [[0], [1]])]),
    _place("position ids of another batch", {"/input/tensor": [[[1, 2, 3, 4]]] * 2,
                                             _AT: [[0], [0], [0]]}, says="[2, 1]"),
    *(asked(f"position id {shown}", {_AT: [0, wrong]}, {f"{_AT}/1": code})
      for shown, wrong, code in [("1.0", 1.0, "wrong_type"), ("true", True, "wrong_type"),
                                 ("null", None, "wrong_type"), ("text", MARK, "wrong_type"),
                                 ("-1", -1, "out_of_range"), ("2^53+1", 2**53 + 1, "out_of_range"),
                                 ("10^30", 10**30, "out_of_range")]),
    asked("position ids are a number", {_AT: 0}, "rank_mismatch"),
    asked("position ids are empty", {_AT: []}, "empty"),
    asked("position ids unequal", {_AT: [[0, 1], [0]]}, {f"{_AT}/1": "ragged"}),
    asked("position id beyond the table", {**_LEARNED, _AT: [0, 2]},
          {f"{_AT}/1": "out_of_positions"}, "invalid-input", says="0 to 1"),
    asked("position id far beyond the table", {**_LEARNED, _AT: [1 << 53, 0]},
          {f"{_AT}/0": "out_of_positions"}, "invalid-input"),
    asked("more positions than the table has",
          {**_LEARNED, "/input/tensor": [[1, 2, 3, 4]] * 3}, "out_of_positions", "invalid-input",
          says="rows 0 to 1"),
    asked("more ids than the table has",
          {**_LEARNED, "/model/config/vocab": 5, "/input": {"token_ids": [0, 1, 2]}},
          {_IDS: "out_of_positions"}, "invalid-input"),
]  # fmt: skip

_KEYS, _PAIRS = "/input/key_mask", "/input/attention_mask"
_mask = partial(asked, faults="wrong_type", says="True or false is due here.")
MASKS = [
    *(_mask(f"{shown} in key_mask", {_KEYS: [True, wrong]}, faults={f"{_KEYS}/1": "wrong_type"})
      for shown, wrong in [("1", 1), ("0", 0), ("1.0", 1.0), ("null", None), ("'true'", "true"),
                           ("text", MARK), ("an object", {})]),
    *(_mask(f"{shown} in attention_mask", {_PAIRS: [[True, True], [wrong, True]]},
            faults={f"{_PAIRS}/1/0": "wrong_type"})
      for shown, wrong in [("1", 1), ("0", 0), ("-inf", "-inf"), ("null", None), ("-1e9", -1e9)]),
    asked("key_mask is true", {_KEYS: True}, "rank_mismatch"),
    asked("key_mask is text", {_KEYS: MARK}, "rank_mismatch"),
    asked("key_mask is empty", {_KEYS: []}, "empty"),
    asked("key_mask three deep", {_KEYS: [[[True]]]}, "rank_mismatch"),
    asked("key_mask unequal", {_KEYS: [[True, True], [True]]}, {f"{_KEYS}/1": "ragged"}),
    asked("attention_mask one deep", {_PAIRS: [True, True]}, "rank_mismatch"),
    asked("attention_mask four deep", {_PAIRS: [[[[True]]]]}, "rank_mismatch"),
    asked("attention_mask unequal", {_PAIRS: [[True, True], [True]]}, {f"{_PAIRS}/1": "ragged"}),
    *(asked(f"key_mask of shape {shown}", {_KEYS: mask}, "shape_mismatch", "invalid-input",
            says="[2]")
      for shown, mask in [("[1]", [True]), ("[3]", [True] * 3), ("[1, 2]", [[True, True]]),
                          ("[2, 2]", [[True] * 2] * 2)]),
    *(asked(f"attention_mask of shape {shown}", {_PAIRS: mask}, "shape_mismatch", "invalid-input",
            says="[2, 2]")
      for shown, mask in [("[2, 3]", [[True] * 3] * 2), ("[3, 3]", [[True] * 3] * 3),
                          ("[1, 2]", [[True] * 2]), ("[1, 2, 2]", [[[True] * 2] * 2])]),
    asked("key_mask that does not fit the text", {_KEYS: [True]}, "shape_mismatch",
          "invalid-input", base=LETTERS, says="[3]"),
    asked("key_mask that does not fit the texts",
          {_TEXT: ["AB", "C"], _KEYS: [[True], [True]]}, "shape_mismatch",
          "invalid-input", base=LETTERS, says="[2, 2]"),
    asked("everything beside the input does not fit",
          {"/input/position_ids": [0], _KEYS: [True], _PAIRS: [[True]]},
          {"/input/position_ids": "shape_mismatch", _KEYS: "shape_mismatch",
           _PAIRS: "shape_mismatch"}, "invalid-input"),
]  # fmt: skip

_TYPES, _MEMORY = "/input/token_types", "/input/memory"
_TYPED = {"/model/config/token_types": 2}
TYPES = [
    asked("types for a config without", {_TYPES: [0, 1]}, "no_token_types", "invalid-input"),
    asked("type beyond the table", {**_TYPED, _TYPES: [0, 2]},
          {f"{_TYPES}/1": "out_of_token_types"}, "invalid-input"),
    asked("types of another shape", {**_TYPED, _TYPES: [0]}, "shape_mismatch", "invalid-input"),
    asked("type that is no number", {**_TYPED, _TYPES: [0, MARK]}, {f"{_TYPES}/1": "wrong_type"}),
    asked("types three deep", {**_TYPED, _TYPES: [[[0]]]}, "rank_mismatch"),
]  # fmt: skip

_CROSSED = {"/model/config/cross_attention": True}
_READER = {"/model/config/encoder": {"attention": {"n_heads": 2}}, "/model/config/vocab": 5}
_ROWS = [[1, 2, 3, 4]]
_one = partial(asked, faults={_MEMORY: "exactly_one"}, says="Give exactly one of")
MEMORY = [
    asked("memory that is text", {_MEMORY: MARK}, "model_type"),
    asked("unknown key of a memory", {_MEMORY: {"tensor": _ROWS, MARK: 1}},
          {f"{_MEMORY}/{MARK}": "extra_forbidden"}),
    asked("memory of a memory", {_MEMORY: {"tensor": _ROWS, "memory": {"tensor": _ROWS}}},
          {f"{_MEMORY}/memory": "extra_forbidden"}),
    _one("nothing in a memory", {_MEMORY: {}}),
    _one("ids and rows in a memory", {_MEMORY: {"tensor": _ROWS, "token_ids": [1]}}),
    asked("special tokens of rows of a memory",
          {_MEMORY: {"tensor": _ROWS, "special_tokens": True}}, "special_tokens"),
    asked("memory that nothing reads", {_MEMORY: {"tensor": _ROWS}}, "no_cross_attention",
          "invalid-input"),
    asked("no memory to read", _CROSSED, {_MEMORY: "missing"}, "invalid-input"),
    asked("memory of another width", {**_CROSSED, _MEMORY: {"tensor": [[1, 2]]}},
          {f"{_MEMORY}/tensor": "shape_mismatch"}, "invalid-input"),
    asked("ids in a memory without an encoder",
          {**_CROSSED, "/model/config/vocab": 5, _MEMORY: {"token_ids": [1]}},
          {f"{_MEMORY}/token_ids": "no_encoder"}, "invalid-input"),
    asked("memory of another batch",
          {**_CROSSED, "/input/tensor": [_ROWS, _ROWS], _MEMORY: {"tensor": [_ROWS] * 3}},
          "shape_mismatch", "invalid-input"),
    asked("ids of a memory beyond the vocabulary", {**_READER, _MEMORY: {"token_ids": [4, 5]}},
          {f"{_MEMORY}/token_ids/1": "out_of_vocabulary"}, "invalid-input"),
    asked("text in the memory of a config", {**_READER, _MEMORY: {"text": MARK}},
          {f"{_MEMORY}/text": "no_tokenizer"}, "invalid-input", says="Only a named model"),
    asked("key_mask that does not fit the memory",
          {**_CROSSED, _MEMORY: {"tensor": _ROWS, "key_mask": [True, True]}},
          {f"{_MEMORY}/key_mask": "shape_mismatch"}, "invalid-input"),
    asked("number in a memory that overflows", {**_CROSSED, _MEMORY: {"tensor": [[1e39, 2, 3, 4]]}},
          {f"{_MEMORY}/tensor/0/0": "overflow"}, "invalid-input"),
    asked("4,097 rows of a memory", {**_CROSSED, _MEMORY: {"tensor": _ROWS * 4097}},
          {f"{_MEMORY}/tensor": "beyond_limit"}, "beyond-limit", says="positions"),
    asked("65 texts in a memory", {**_READER, _MEMORY: {"text": ["A"] * 65}},
          {f"{_MEMORY}/text": "beyond_limit"}, "beyond-limit", says="batch"),
]  # fmt: skip
