"""Bodies that are not JSON, and JSON whose outermost value is no object."""

import gzip

from door.case import GOOD, MARK, NUMBER, encoded, text

_GOOD = encoded(GOOD)
_WORDS = _GOOD.decode()


def _instead(what: str, by: str) -> str:
    """The good request with a piece of its text replaced once."""
    assert what in _WORDS
    return _WORDS.replace(what, by, 1)


NOT_JSON = [
    text("nothing at all", "", "empty"),
    text("spaces and newlines alone", "  \n\t\r\n ", "empty"),
    text("cut off in an object", _GOOD[:-1], "line 1"),
    text("cut off in a list", '{"input": {"tensor": [[1, 2', "line 1"),
    text("cut off in a string", f'{{"model": {{"name": "{MARK}', "line 1"),
    text("cut off in a key", f'{{"{MARK}', "line 1"),
    text("cut off in a number", '{"seed": -', "line 1"),
    text("cut off in a word", '{"identities": tru', "line 1"),
    text("cut off after a colon", '{"model":', "line 1"),
    text("comma before the end of an object", _instead("}}}", "}},}"), "line 1"),
    text("comma before the end of a list", _instead("8]]", "8],]"), "line 1"),
    text("comma at the start", "{,}", "column 2"),
    text("two commas", "[1,,2]", "column 4"),
    text("no comma", '{"a": 1 "b": 2}', "column 9"),
    text("no colon", '{"model" {}}', "column 10"),
    text("no key", "{: 1}", "column 2"),
    text("bracket of another kind", "[1, 2}", "column 6"),
    text("bracket too many", _WORDS + "}", "line 1"),
    text("single quotes", "{'model': {'name': 'letter-sort'}}", "column 2"),
    text("key without quotes", f"{{{MARK}: 1}}", "column 2"),
    text("text without quotes", f'{{"name": {MARK}}}', "column 10"),
    text("number as a key", '{1: "a"}', "column 2"),
    text("comment of a line", "{// model\n}", "line 1"),
    text("comment between stars", "{/* model */}", "column 2"),
    text("comment with a hash", "# a request\n{}", "line 1"),
    text("fault on a later line", '{\n  "a": 1,\n  "b": x\n}', "line 3, column 8"),
    *(
        text(f"{word} as a number", _instead(str(NUMBER), word), "line 1")
        for word in ("NaN", "nan", "Infinity", "-Infinity", "inf", "undefined", "None", "True")
    ),
    *(
        text(f"{number} as a number", _instead("[5, 6", f"[5, {number}"), "line 1")
        for number in (
            "01",
            "-01",
            "+1",
            ".5",
            "1.",
            "1e",
            "1e+",
            "--1",
            "-",
            "0x10",
            "1_000",
            "1,5e",
            "1 000",
            "1f",
            "½",
            "١",
            "1e5.5",
            "0b1",
            "1n",
        )
    ),
    text("byte order mark", b"\xef\xbb\xbf" + _GOOD, "byte order mark"),
    text("UTF-16 with its mark", _WORDS.encode("utf-16"), "UTF-8"),
    text("UTF-16, little end first", _WORDS.encode("utf-16-le")),
    text("UTF-16, big end first", _WORDS.encode("utf-16-be")),
    text("UTF-32", _WORDS.encode("utf-32")),
    text("Latin-1", '{"model": {"name": "café"}}'.encode("latin-1"), "byte 23"),
    text("byte that begins no character", b'{"\xff": 1}', "byte 2"),
    text("character of two bytes cut short", b'{"\xc3": 1}', "byte 2"),
    text("zero written as two bytes", b'{"\xc0\x80": 1}', "byte 2"),
    text("half of a pair written in UTF-8", b'{"\xed\xa0\x80": 1}', "byte 2"),
    text("character beyond Unicode", b'{"\xf4\x90\x80\x80": 1}', "byte 2"),
    text("UTF-8 that ends early", b'{"a": "\xe2\x82', "byte 7"),
    text("first half of a pair alone", r'{"name": "\ud800"}', "column"),
    text("second half of a pair alone", r'{"name": "\udc00"}', "column"),
    text("halves the wrong way round", r'{"name": "\udc00\ud800"}', "column"),
    text("half of a pair in a key", r'{"\ud800": 1}', "column"),
    text("escape of an unknown letter", r'{"name": "\x41"}', "column"),
    text("escape of too few digits", r'{"name": "\u12"}', "column"),
    text("escape of other letters", r'{"name": "\uzzzz"}', "column"),
    text("newline inside a string", f'{{"name": "{MARK}\n"}}', "line"),
    text("tab inside a string", f'{{"name": "{MARK}\t"}}', "column"),
    text("NUL inside a string", f'{{"name": "{MARK}\0"}}', "column"),
    text("NUL after the end", _WORDS + "\0", "line 1"),
    text("NUL alone", "\0", "column 1"),
    text("space that is none to JSON", "{\u00a0}", "column"),
    text("two documents", _WORDS + _WORDS, "line 1"),
    text("two documents on two lines", f"{_WORDS}\n{_WORDS}", "line 2, column 1"),
    text("text after the end", f"{_WORDS} {MARK}", "line 1"),
    text("text before the start", f")]}}',\n{_WORDS}", "column 1"),
    text("form fields", f"model={MARK}&input=1", "column 1"),
    text("XML", f"<model>{MARK}</model>", "column 1"),
    text("YAML", f"model:\n  name: {MARK}\n", "column 1"),
    text("parts of a form", f"--x\r\nContent-Disposition: form-data\r\n\r\n{MARK}", "line 1"),
    text("Python", "dict(model=1)", "column 1"),
    text("gzip without its header", gzip.compress(_GOOD), "byte 1"),
    text("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "byte 0"),
    text("MessagePack", b"\x82\xa5model\x80\xa5input\x80", "byte 0"),
    text("tensor of 500 lists in a list", _instead("6,", "[" * 500 + "]" * 500 + ","), "too deep"),
    text("100,000 lists inside each other", "[" * 100_000),
    text("100,000 lists, closed", "[" * 100_000 + "]" * 100_000),
    text("100,000 objects inside each other", '{"a":' * 100_000),
    text("100,000 objects, closed", '{"a":' * 100_000 + "1" + "}" * 100_000),
    text("lists and objects in turn", '[{"a":' * 50_000),
    text("5,000 lists in a tensor", _instead("6,", "[" * 5_000 + "]" * 5_000 + ",")),
]

NO_OBJECT = [
    text(f"{name} alone", body, says, "invalid-request", faults=(("", code),))
    for name, body, says, code in [
        ("null", "null", "An object is due here.", "model_type"),
        ("true", "true", "Its keys: model, input", "model_type"),
        ("number", "17", "An object is due here.", "model_type"),
        ("fraction", "1.5", "An object is due here.", "model_type"),
        ("string", f'"{MARK}"', "An object is due here.", "model_type"),
        ("request inside a string", '"{\\"model\\": {}}"', "An object is due", "model_type"),
        ("empty list", "[]", "An object is due here.", "model_type"),
        ("request inside a list", f"[{_WORDS}]", "An object is due here.", "model_type"),
        ("list of words", f'["{MARK}"]', "An object is due here.", "model_type"),
        ("list of pairs", '[["model", 1]]', "An object is due here.", "model_type"),
    ]
]
