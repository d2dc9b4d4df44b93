"""Every column that a recipe does not read is named: as a fact of its row, or by an example."""

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.look.finding import look

ASKED = "Which town had the {n}th market, and why?"


def notes(tmp_path: Path, **columns: Any) -> str:
    """The notes of a look at rows with a question, an answer and other columns."""
    row = {"question": ASKED, "answer": "Town {n}", **columns}
    texts = (json.dumps(row).replace("{n}", str(number)) for number in range(12))
    (tmp_path / "train.jsonl").write_text("\n".join(texts))
    return "\n".join(look(tmp_path).notes)


def test_what_nothing_reads_is_named_with_an_example_and_facts_with_what_they_are(tmp_path):
    said = notes(tmp_path, old_text="x = {n}", url="https://a.example/{n}", kind="a")
    assert 'not read: old_text (as "x = 0"), kind (as "a")' in said
    assert "facts of the rows, not read: url (address)" in said
    assert "read: question (question), answer (answer)" in said


@pytest.mark.parametrize(
    ("wrong", "right", "equals"),
    [
        (0, 1, "1"),
        ("no", "yes", '"yes"'),
        (False, True, "true"),
        ("Incorrect", "Correct", '"Correct"'),
    ],
)
def test_two_values_that_may_say_which_rows_are_right_are_named_with_a_rule(
    tmp_path, wrong, right, equals
):
    rows = [
        {"question": ASKED, "answer": f"Town {n}", "verdict_of": (wrong, right)[n % 2]}
        for n in range(6)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = "\n".join(look(tmp_path).notes)
    assert f'keep = [{{ column = "verdict_of", equals = {equals} }}]' in said


def test_a_column_of_one_value_or_three_is_no_verdict(tmp_path):
    assert "keep = " not in notes(tmp_path, flag=1, level="{n}")
