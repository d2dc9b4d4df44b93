"""What must hold of spans of arithmetic. Source: `docs/formats/reasoning.md#spans`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gristmill.contract import GristmillError, Violation
from gristmill.families import Subject
from gristmill.laws import Few
from gristmill.reasoning.builders.exports.controls import CALIBRATION, EVALUATION
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.render.annotations import rows_of

_WITHIN: Final = ("expression", "result", "inner_eq")
_UNITS: Final = ("characters", "bytes", "tokens")


def span_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what rows break by themselves.

    The laws: `readable` (the form of a row), `order` (annotations of a record count from 0),
    `ranges` (of each unit, within the annotation), `parts` (all rows of a trace are in one part).
    """
    keys = [subject.partition] if subject.partition else splits_in(subject.folder, _FILE)
    if not keys:
        yield Violation("files", ".", "there is no <corpus>/<split>.spans.jsonl")
    for key in keys:
        where = names.spans(*key.split("__"))
        few, before = Few(where), ("", -1, "")
        try:
            for number, row in enumerate(rows_of(subject.folder / where), 1):
                for law, what in _broken(row, before):
                    few.add(law, f"{where}:{number}", what)
                before = (row["example_id"], row["ann_idx"], row["part"])
        except GristmillError as error:
            few.add("readable", where, str(error))
        yield from few.added()


_FILE: Final = "{split}.spans.jsonl"


def _broken(row: dict[str, Any], before: tuple[str, int, str]) -> Iterator[tuple[str, str]]:
    example, index, part = before
    is_same = row["example_id"] == example
    if row["example_id"] < example or row["ann_idx"] != (index + 1 if is_same else 0):
        yield "order", f"{row['example_id']} {row['ann_idx']} comes after {example} {index}"
    if row["part"] not in (CALIBRATION, EVALUATION) or (is_same and row["part"] != part):
        yield "parts", f"{row['part']!r} of {row['trace_id']}"
    for unit in _UNITS:
        ranges = row[unit]
        begin, end = ranges["whole"]
        inside = [ranges[name] for name in _WITHIN] + ranges["operands"] + ranges["operators"]
        if not all(begin <= first <= last <= end for first, last in inside):
            yield "ranges", f"{unit}: {ranges} are not within {begin} to {end}"
    begin, end = row["tokens"]["result"]
    if row["result_token_count"] != end - begin:
        yield "ranges", f"result_token_count is {row['result_token_count']}, not {end - begin}"
