"""Rows of an alignment: the steps of one example. Source: `docs/formats/reasoning.md#alignment`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orjson import dumps, loads

from gristmill.contract import BadInput
from gristmill.reasoning.format.shards import mistyped

PENDING: Final = "pending manual audit"
VERIFIED: Final = "verified"
WRONG: Final = "found wrong by manual audit"
HEURISTIC: Final = "heuristic"
"""Kind of rule, which the notes begin with; the confidence is below `UNSURE` then."""
UNSURE: Final = 0.9
"""Confidence of guesses is below."""


@dataclass(frozen=True, slots=True)
class AlignRow:
    """One row of an alignment, with the seed's eight keys in its order.

    sequence_index, shard_path: row and shard of the example's first token, as in the index.
    text_offset_ranges: of each step its characters in the rendered text, half-open.
    token_offset_ranges: of each step its tokens in the example's own tokenisation, half-open.
    confidence: of the least certain step, from 0 to 1; 0 where there is none.
    notes: `<rule>; <state of the audit>`.
    """

    example_id: str
    sequence_index: int
    shard_path: str
    text_offset_ranges: list[list[int]]
    token_offset_ranges: list[list[int]]
    step_labels: list[str]
    confidence: float
    notes: str

    @property
    def rule(self) -> str:
        """Name of the rule that found the steps."""
        return self.notes.partition(";")[0]


_TYPES: Final = {
    "example_id": str,
    "sequence_index": int,
    "shard_path": str,
    "text_offset_ranges": list,
    "token_offset_ranges": list,
    "step_labels": list,
    "confidence": float,
    "notes": str,
}
KEYS: Final = tuple(_TYPES)


_NOTHING: Final = (
    b'"text_offset_ranges": [], "token_offset_ranges": [], "step_labels": [], "confidence": 0.0, '
    b'"notes": "no-steps"}'
)
_NO_STEPS: Final = b'{"example_id": %b, "sequence_index": %d, "shard_path": %b, ' + _NOTHING + b"\n"
OF_INDEX: Final = rb"\1, \3, \2, " + _NOTHING
"""The line of an example without a step, by the groups id, shard and sequence of a pattern."""


def notes(rule: str, verdict: str | None) -> str:
    """The notes of a row.

    rule: that found the steps.
    verdict: of the audit, "right" or "wrong"; None where nobody has looked.
    """
    state = {None: PENDING, "right": VERIFIED, "wrong": WRONG}[verdict]
    return f"{rule}; {state}"


def line(row: AlignRow) -> bytes:
    """A row as a line of the file."""
    values = {name: getattr(row, name) for name in KEYS}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


def no_steps(example: Mapping[str, Any]) -> bytes:
    """The line of an example without a step; an audit of it had nothing to look at.

    example: its row of the index.
    """
    place = (dumps(example["example_id"]), example["sequence_index"], dumps(example["shard_path"]))
    return _NO_STEPS % place


def parsed(data: bytes, file: Path, number: int) -> AlignRow:
    """The row in a line of a file.

    Raises BadInput where the line is no object with exactly the eight keys, or a value has
    another type. Whether ranges make sense is a question for the laws.
    """
    try:
        value = loads(data)
    except ValueError as error:
        raise BadInput(file, f"is not JSON: {error}: build the alignment again", number) from error
    if (wrong := _wrong(value)) is not None:
        raise BadInput(file, f"{wrong}: build the alignment again", number)
    return AlignRow(*value.values())


def rows(path: Path) -> Iterator[AlignRow]:
    """Yield the rows of an alignment in the order of the file.

    path: `<corpus>/<split>.align.jsonl`.

    Memory does not grow with the file. Raises BadInput as `parsed`, and where the file is not
    there.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise BadInput(path, "is not there: build reasoning/alignment") from error
    with file:
        for number, data in enumerate(file, 1):
            yield parsed(data, path, number)


def _wrong(value: Any) -> str | None:
    """What is wrong with the value of a line, None if it is a row."""
    if problem := mistyped(value, _TYPES):
        return problem
    for name in ("text_offset_ranges", "token_offset_ranges"):
        if value[name] and not all(
            type(pair) is list and [*map(type, pair)] == [int, int] for pair in value[name]
        ):
            return f"{name} holds something else than pairs of whole numbers"
    if not all(isinstance(label, str) for label in value["step_labels"]):
        return "step_labels holds something else than texts"
    return None
