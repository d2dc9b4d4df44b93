"""The public form of reveal: one row for each step of an answer.

Source: `docs/formats/reasoning.md#forms-of-reveal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import BETWEEN, Unfit, flattened, text
from gristmill.reasoning.raw.shapes import PUBLIC

COLUMNS: Final = ("answer_id", "step_idx")
"""Columns that a row of this form has."""
_SEED: Final = "rationale"
MOST_BYTES: Final = 256 << 20
"""Bytes of the texts of one split, at most; the public release has a few million."""
_CITATIONS: Final = ("citation", "http_link", "evidence_link")
_ROW_BYTES: Final = 500
READ: Final = (*COLUMNS, "step", "question", "answer", "evidence", *_CITATIONS)
"""Columns that are read of a row."""


@dataclass
class _Answer:
    """What the rows of one answer have in common, and its steps.

    place: of its first row: file number from 0, row from 1.
    evidence, citations: texts with the number of their step.
    """

    place: tuple[int, int]
    question: str
    answer: str
    steps: dict[int, str] = field(default_factory=dict)
    evidence: dict[tuple[int, str], None] = field(default_factory=dict)
    citations: dict[tuple[int, str], None] = field(default_factory=dict)

    def record(self) -> Record:
        """The record of the answer."""
        steps = [self.steps[number] for number in sorted(self.steps)]
        extras = (_joined(self.evidence), _joined(self.citations))
        cot = BETWEEN.join(steps) or None
        return Record(self.question, self.answer, cot, extras, steps or None, PUBLIC)


def fits(row: Mapping[str, Any]) -> bool:
    """Whether a row is a step of an answer, and not a whole answer in the seed's columns."""
    return all(column in row for column in COLUMNS) and _SEED not in row


class Answers:
    """The rows of a split by answer. Rows of one answer may be anywhere in the split.

    Memory: the texts of the split, at most `MOST_BYTES`.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._answers: dict[str, _Answer] = {}
        self._left = most_bytes

    def add(self, row: Mapping[str, Any], place: tuple[int, int]) -> None:
        """Take a row.

        row: with `answer_id`, `step_idx`, `question` and `step`; `answer`, `evidence` and a
            citation where there is one.
        place: file number from 0, row from 1.

        Raises Unfit for a row without an id, step or number, GristmillError where the rows of
        the split are too large together.
        """
        key, number = text(row["answer_id"]).strip(), _number(row["step_idx"])
        if not key:
            raise Unfit("answer_id", "its answer_id is empty")
        step = text(row.get("step")).strip()
        if not step:
            raise Unfit("step", "its step is empty")
        evidence = text(row.get("evidence")).strip()
        citation = next((found for name in _CITATIONS if (found := flattened(row.get(name)))), "")
        question, answer = text(row.get("question")), text(row.get("answer"))
        self._left -= _ROW_BYTES + sum(map(len, (key, step, evidence, citation, question, answer)))
        if self._left < 0:
            raise GristmillError(
                f"the rows of one split of reveal have more than {MOST_BYTES:,} bytes of text: "
                "give the columns of the seed, or divide the files by split"
            )
        held = self._answers.setdefault(key, _Answer(place, question, answer))
        # A step has a row for each of its evidences.
        held.steps.setdefault(number, step)
        for texts, found in ((held.evidence, evidence), (held.citations, citation.strip())):
            if found:
                texts[number, found] = None

    def records(self) -> Iterator[tuple[tuple[int, int], Record]]:
        """The record of each answer with the place of its first row, in the order of these."""
        for held in self._answers.values():
            yield held.place, held.record()


def _joined(texts: Iterable[tuple[int, str]]) -> str | None:
    """The texts in the order of their steps, each once."""
    ordered = sorted(texts, key=lambda numbered: numbered[0])
    return BETWEEN.join(dict.fromkeys(text for _, text in ordered)) or None


def _number(value: Any) -> int:
    try:
        if isinstance(value, str) and len(value) < 20:
            return int(value)
        if isinstance(value, int | float) and value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise Unfit("step_idx", f"step_idx {str(value)[:40]!r} is no whole number")
