"""Rows of steps become one record for each answer."""

from __future__ import annotations

from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.forms.groups import Group
from gristmill.reasoning.raw.forms.reader import Reader
from gristmill.reasoning.raw.forms.values import Names
from tests.reasoning.drops import unfit


def _row(key: str, step: Any, text: str, evidence: Any = None, **more: Any) -> dict[str, Any]:
    row = {"answer_id": key, "step_idx": step, "step": text, "evidence": evidence}
    return row | {"question": f"q{key}"} | more


def _records(rows: list[dict[str, Any]]) -> list[tuple[tuple[int, int], Record]]:
    reader = Reader(CORPORA["reveal"])
    for number, row in enumerate(rows, 1):
        assert reader.read(row, (0, number)) is None
    return list(reader.rest())


def test_rows_of_one_answer_may_be_apart_and_in_any_order() -> None:
    found = _records(
        [
            _row("a", "10", "last", "e9", http_link="u1"),
            _row("b", 0, "only"),
            _row("a", "2", "second", "e1", http_link="u1"),
            _row("a", " 1", "first\r\nline", "e2 "),
            _row("a", "2", "another text", "e3"),
        ]
    )
    assert [place for place, _ in found] == [(0, 1), (0, 2)]
    assert found[0][1] == Record(
        "qa",
        "",
        "first\nline\nsecond\nlast",
        ("e2\ne1\ne3\ne9", "u1"),
        ["first\nline", "second", "last"],
        "public",
    )
    assert found[1][1] == Record("qb", "", "only", (None, None), ["only"], "public")


def test_an_answer_and_a_citation_are_taken_where_they_are() -> None:
    ((_, record),) = _records([_row("a", 1.0, "x", answer="yes", citation="c", http_link="u")])
    assert (record.answer, record.extras) == ("yes", (None, "c"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (_row(" ", "1", "x"), "answer_id"),
        (_row("a", "x", "x"), "step_idx"),
        (_row("a", None, "x"), "step_idx"),
        (_row("a", 1.5, "x"), "step_idx"),
        (_row("a", float("inf"), "x"), "step_idx"),
        (_row("a", "9" * 5000, "x"), "step_idx"),
        (_row("a", "1", " "), "step"),
    ],
)
def test_a_row_that_is_no_step_is_refused(row: dict[str, Any], reason: str) -> None:
    with unfit(reason):
        _records([row])


def test_the_rows_of_a_split_are_bounded() -> None:
    answers = Group(CORPORA["reveal"], CORPORA["reveal"].forms[0], Names(), most_bytes=3000)
    with pytest.raises(GristmillError, match="bytes of text: give one row a record"):
        for number in range(100):
            answers.add(_row(str(number % 3), number, "x" * 100), (0, number + 1))
    assert number == 4
