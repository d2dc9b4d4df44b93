"""Every column that a recipe does not read is named: as a fact of its row, or by an example."""

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.corpora.account import fact_of
from gristmill.look.finding import look

ASKED = "Which town had the {n}th market, and why?"


def notes(tmp_path: Path, **columns: Any) -> str:
    """The notes of a look at rows with a question, an answer and other columns."""
    row = {"question": ASKED, "answer": "Town {n}", **columns}
    texts = (json.dumps(row).replace("{n}", str(number)) for number in range(12))
    (tmp_path / "train.jsonl").write_text("\n".join(texts))
    return "\n".join(look(tmp_path).notes)


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (["https://a.example/1", "https://a.example/2"], "address"),
        (["2024-01-02", "2024-01-03 10:00:00"], "time"),
        (["a1" * 16, "b2" * 16], "hash"),
        (["123e4567-e89b-12d3-a456-426614174000"], "hash"),
        (["MIT", "Apache-2.0"], "licence"),
        (["row-1", "row-2", "row-3"], "id"),
        ([7, 8, 9], "number of the row"),
        ([1700000000, 1700000500, 1700000100], "time"),
        (["one two", "three"], ""),
        (["row-1", "row-1", "row-3"], ""),
        ([4, 1, 4], ""),
        ([0.5, 1.5, 2.5], ""),
    ],
)
def test_what_values_say_of_their_rows(values: list[Any], fact: str) -> None:
    assert fact_of("column", values, []) == fact


def test_a_number_that_is_the_length_of_another_column_is_a_fact(tmp_path: Path) -> None:
    rows = [{"text": "so " * n, "n": 3 * n, "words": n} for n in (2, 5, 3)]
    for name in ("n", "words"):
        assert fact_of(name, [row[name] for row in rows], rows) == "length"
    rows[1]["n"] = 2
    assert fact_of("n", [row["n"] for row in rows], rows) == ""


def test_what_nothing_reads_is_named_with_an_example_and_facts_with_what_they_are(
    tmp_path: Path,
) -> None:
    said = notes(tmp_path, old_text="x = {n}", url="https://a.example/{n}", kind="a")
    assert 'not read: old_text (as "x = 0"), kind (as "a")' in said
    assert "facts of the rows, not read: url (address)" in said
    assert "read: question (question), answer (answer)" in said


def test_places_in_objects_are_accounted_for_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        "\n".join(
            json.dumps({"document": {"text": "A story. " * 9, "kind": "x"}, "seen": {"b": [n]}})
            for n in range(9)
        )
    )
    said = "\n".join(look(tmp_path).notes)
    assert 'document.kind (as "x")' in said and "seen (as " in said
    assert "read: document.text (texts)" in said and "seen.b" not in said


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
    tmp_path: Path, wrong: Any, right: Any, equals: str
) -> None:
    rows = [
        {"question": ASKED, "answer": f"Town {n}", "verdict_of": (wrong, right)[n % 2]}
        for n in range(6)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = "\n".join(look(tmp_path).notes)
    assert f'keep = [{{ column = "verdict_of", equals = {equals} }}]' in said


def test_a_column_of_one_value_or_three_is_no_verdict(tmp_path: Path) -> None:
    assert "keep = " not in notes(tmp_path, flag=1, level="{n}")
