"""dataset.json: its text, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata, read_metadata

METADATA = PuzzleDatasetMetadata(0, 0, 0, 6, 900, 1, 1000, 1, ("all",))
TEXT = (
    '{"pad_id": 0, "ignore_label_id": 0, "blank_identifier_id": 0, "vocab_size": 6, '
    '"seq_len": 900, "num_puzzle_identifiers": 1, "total_groups": 1000, '
    '"mean_puzzle_examples": 1.0, "sets": ["all"]}'
)


def test_the_text_is_that_of_the_original() -> None:
    assert METADATA.text() == TEXT


def test_the_puzzles_stand_behind_the_keys_of_the_original(tmp_path: Path) -> None:
    path = tmp_path / "dataset.json"
    path.write_text(replace(METADATA, total_puzzles=4000).text())
    assert path.read_text() == TEXT[:-1] + ', "total_puzzles": 4000}'
    assert read_metadata(path).total_puzzles == 4000


def test_what_was_written_is_read_again_and_unknown_keys_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({**json.loads(TEXT), "ignore_label_id": None, "extra": 1}))
    assert read_metadata(path) == PuzzleDatasetMetadata(0, None, 0, 6, 900, 1, 1000, 1.0, ("all",))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"seq_len": 0}, "at least 1"),
        ({"vocab_size": 0}, "at least 1"),
        ({"pad_id": -1}, "pad_id"),
        ({"pad_id": True}, "pad_id"),
        ({"total_groups": 2**31}, "total_groups"),
        ({"total_puzzles": None}, "total_puzzles"),
        ({"ignore_label_id": "0"}, "ignore_label_id"),
        ({"ignore_label_id": 2**31}, "ignore_label_id"),
        ({"mean_puzzle_examples": float("nan")}, "mean_puzzle_examples"),
        ({"mean_puzzle_examples": -1}, "mean_puzzle_examples"),
        ({"mean_puzzle_examples": 10**400}, "mean_puzzle_examples"),
        ({"sets": []}, "at least one"),
        ({"sets": ["a", "a"]}, "none twice"),
        ({"sets": ["../a"]}, "sets"),
        ({"sets": "all"}, "sets"),
        ({"sets": [["a"]]}, "sets"),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    change: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({**json.loads(TEXT), **change}))
    with pytest.raises(BadInput, match=rule):
        read_metadata(path)


def test_a_missing_key_and_text_that_is_no_object_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "dataset.json"
    for text, rule in (("{}", "lacks the keys pad_id"), ("[]", "object"), ("{", "not JSON")):
        path.write_text(text)
        with pytest.raises(BadInput, match=rule):
            read_metadata(path)
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="larger than"):
        read_metadata(path)
