"""What a JSON file is by its beginning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format.corpora import corpus_of_table
from gristmill.reasoning.raw.json_files import held_under, one_or_lines
from gristmill.reasoning.raw.rows import rows
from gristmill.untrusted.limits import LIMITS, Limits

ROWS = [{"question": "q", "answer": "a"}]


def _kind(value: bytes, limits: Limits = LIMITS) -> bool:
    """Whether the text is one value; its parts come a byte at a time, and come back whole."""
    parts = (value[at : at + 1] for at in range(len(value)))
    is_whole, texts = one_or_lines(parts, Path("gsm8k.json"), limits)
    assert b"".join(texts) == value
    return is_whole


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("value", "named", "command"),
    [
        ({"train": ROWS, "test": ROWS}, "the splits train, test", ".train[]' gsm8k.json > train"),
        ({"Dev": {"7": ROWS[0]}}, "the splits Dev", ".Dev[]' gsm8k.json > validation"),
        (
            {"test": [], "dev": [], "train": ROWS, "more": 1},
            "the splits test, dev, train",
            ".test[]' gsm8k.json > test",
        ),
    ],
)
def test_splits_as_keys_are_named_with_what_to_write(
    value: Any, named: str, command: str, indent: int | None
) -> None:
    with pytest.raises(BadInput) as error:
        _kind(json.dumps(value, indent=indent).encode())
    assert str(error.value) == (
        f"gsm8k.json: holds {named} under their names: write a file for each split, as with "
        f"`jq -c '{command}.jsonl`"
    )


def test_of_several_lists_the_longest_has_the_rows() -> None:
    row = {"features": [{"name": "question"}], "rows": [{"row": each} for each in ROWS * 2]}
    assert "in a list under 'rows'" in (held_under(row, ("question",)) or "")


def test_a_split_that_is_too_large_for_a_row_is_named_too() -> None:
    text = json.dumps({"train": ROWS * 99, "test": ROWS}).encode()
    with pytest.raises(BadInput, match=r"holds splits under their names: .*train"):
        _kind(text, Limits(line_bytes=1000))


@pytest.mark.parametrize(
    "value",
    [
        b'{"test": ["assert f"], "prompt": "p"}\n',
        b'{"test": "t", "train": []}',
        b'{"test": [], "train": 1}',
        b'{"train": []}\n{"train": []}\n',
        b'{"train": [}\n',
        b'{"train": [',
        b'{"questions": []}',
    ],
)
def test_rows_with_the_column_of_a_split_stay_lines(value: bytes) -> None:
    assert not _kind(value)


@pytest.mark.parametrize("value", [b"[]", b' [{"train": []}]', b'{"0": {"train": []}}'])
def test_one_value_is_no_lines(value: bytes) -> None:
    assert _kind(value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"version": "1", "data": [{"q": 1}]}, r"a list under 'data'.*jq -c '\.\[\"data\"\]\[\]'"),
        ({f"id{n}": {"q": n} for n in range(3)}, "holds a row under each of its keys"),
    ],
)
def test_rows_below_the_keys_of_one_object_are_named(
    tmp_path: Path, value: dict[str, Any], rule: str
) -> None:
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a"}
    corpus, path = corpus_of_table(table), tmp_path / "x.json"
    path.write_text(json.dumps(value))
    with pytest.raises(BadInput, match=rule):
        list(rows(path, corpus))
    path.write_text(json.dumps(value | {"q": 1}))
    assert len(list(rows(path, corpus))) == 1
    path.write_text(json.dumps({"other": 1}))
    assert len(list(rows(path, corpus))) == 1
