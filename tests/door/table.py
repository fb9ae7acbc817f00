"""The whole table: kind -> bad requests. Those of megabytes are in `floods`."""

from collections.abc import Iterator, Mapping, Sequence

from door import (
    configs,
    duplicates,
    edits,
    http_level,
    inputs,
    json_texts,
    keys,
    limits,
    models,
    packed,
    presets,
    selections,
    tensors,
    values,
)
from door.case import Case

TABLE: Mapping[str, Sequence[Case]] = {
    "not JSON": json_texts.NOT_JSON,
    "keys twice": duplicates.CASES,
    "no object": json_texts.NO_OBJECT,
    "media types": http_level.MEDIA,
    "addresses": http_level.ADDRESSES,
    "names in addresses": http_level.MODEL_NAMES,
    "lengths": http_level.LENGTHS,
    "unknown keys": keys.UNKNOWN,
    "missing keys": keys.MISSING,
    "one of several": keys.ONE_OF,
    "wrong kinds": values.KINDS,
    "nulls": values.NULLS,
    "bounds": values.BOUNDS,
    "words": values.WORDS,
    "forms of tensors": tensors.FORMS,
    "entries of tensors": tensors.ENTRIES,
    "overflows": tensors.OVERFLOWS,
    "widths": tensors.WIDTHS,
    "names and shapes of weights": tensors.NAMES,
    "base64, its form": packed.FORMS,
    "base64, its length": packed.LENGTHS,
    "base64, its alphabet": packed.ALPHABET,
    "base64, its numbers": packed.ENTRIES,
    "base64, its fit": packed.SHAPES,
    "base64 ids": packed.IDS,
    "base64 masks": packed.MASKS,
    "token ids": inputs.IDS,
    "texts": inputs.TEXTS,
    "position ids": inputs.POSITIONS,
    "masks": inputs.MASKS,
    "token types": inputs.TYPES,
    "memory": inputs.MEMORY,
    "heads": configs.HEADS,
    "positions": configs.ROTARY,
    "fields of another kind": configs.OF_ANOTHER_KIND,
    "readout": configs.READOUT,
    "arrangements": configs.ARRANGED,
    "experts": configs.EXPERTS,
    "scaling": configs.SCALING,
    "layers": configs.LAYERS,
    "encoders": configs.ENCODERS,
    "unknown stages": selections.UNKNOWN,
    "absent stages": selections.ABSENT,
    "slices": selections.SLICES,
    "selected twice": selections.TWICE,
    "edited tensors": edits.TENSORS,
    "edited axes": edits.AXES,
    "values of edits": edits.VALUES,
    "models": models.NAMES,
    "presets": presets.NAMES,
    "changes of presets": presets.CHANGES,
    "what a preset takes": presets.FIT,
    "weights of models": models.WEIGHTS,
    "changes of models": models.CHANGES,
    "sizes": limits.SIZES,
    "work": limits.WORK,
    "counts": limits.COUNTS,
}


def cases() -> Iterator[tuple[str, Case]]:
    """Every case with the name of its kind before its own."""
    for kind, listed in TABLE.items():
        for case in listed:
            yield f"{kind}: {case.name}", case
