"""The encoding of a kind: other numbers in the metadata and named puzzles are found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.config import DominoConfig
from gristmill.puzzles.laws.domino import domino_laws


@pytest.fixture(scope="module")
def dominoes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dominoes") / "out"
    build_domino(out, DominoConfig(num_games=20))
    return out


@pytest.mark.parametrize(
    ("key", "value"),
    [("ignore_label_id", 3), ("ignore_label_id", None), ("pad_id", 1), ("vocab_size", 13)],
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_number_of_another_kind_is_found(
    split: str, key: str, value: int | None, dominoes: Path
) -> None:
    assert list(domino_laws(dominoes)) == []
    path = dominoes / split / "dataset.json"
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), key: value}))
    try:
        (found,) = domino_laws(dominoes)
    finally:
        path.write_text(whole)
    assert (found.law, found.where) == ("encoding", f"{split}/dataset.json")
    assert found.found.startswith(f"{key} is {value}, must be ")


@pytest.mark.parametrize("value", [1, -1])
def test_a_named_puzzle_is_found(value: int, dominoes: Path) -> None:
    path = dominoes / "test/all__puzzle_identifiers.npy"
    whole = np.load(path)
    named = whole.copy()
    named[5] = value
    np.save(path, named)
    try:
        (found,) = domino_laws(dominoes)
    finally:
        np.save(path, whole)
    assert (found.law, found.where.rpartition("/")[2]) == (
        "identifier",
        "all__puzzle_identifiers.npy entry 5",
    )
    names = dominoes / "identifiers.json"
    names.write_text('["<blank>", "one"]')
    try:
        assert [each.law for each in domino_laws(dominoes)] == ["identifier"]
    finally:
        names.write_text('["<blank>"]')
