"""TRM opens every kind of puzzle, several datasets together, and its evaluator counts all votes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.consumers.puzzle_builds import AUGMENTATIONS, KINDS, arc, built, wrong
from tests.consumers.trm import TRM
from tests.consumers.trm.evaluator import score
from tests.consumers.trm.reader import TrmReader


def answered(folder: Path, share: float = 0.0) -> Iterator[tuple[dict[str, Any], Any]]:
    """The batches of a test split with answers, of which a share is wrong."""
    reader = TrmReader([folder], "test", seed=0, size=8, test=True)
    for number, (_, batch, _) in enumerate(reader):
        yield batch, wrong(batch["labels"], share, number)


@TRM.opens(*(f"puzzles/{kind}" for kind in KINDS), how="`data_paths`: the folder")
@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_of_trm_opens_the_datasets(kind, tmp_path):
    folder = built(kind, tmp_path)
    reader = TrmReader([folder], "train", seed=0, size=2, test=False)
    puzzles = len(np.load(folder / "train/all__puzzle_identifiers.npy"))
    assert reader.metadata["total_puzzles"] == puzzles
    name, batch, _ = next(iter(reader))
    assert name == "all" and batch["labels"].shape == (2, reader.metadata["seq_len"])


@TRM.opens("puzzles/arc", how="`data_paths_test` and the evaluator: `trm/` in the folder")
def test_the_evaluator_of_trm_counts_every_vote(tmp_path):
    folder = arc(tmp_path, first_identifier=4) / "trm"
    assert score(folder, answered(folder)) == (1.0, AUGMENTATIONS + 1)
    assert score(folder, answered(folder, 0.3)) == (1.0, AUGMENTATIONS + 1)
    assert score(folder, answered(folder, 1.0))[0] == 0.0


def test_the_evaluator_of_trm_misreads_the_names_of_hrm(tmp_path):
    folder = arc(tmp_path)
    for name in ("test_puzzles.json",):
        (folder / name).write_bytes((folder / "trm" / name).read_bytes())
    assert score(folder, answered(folder))[1] <= 1, "augmentations are tasks of their own"


@TRM.opens("puzzles/arc", how="`data_paths`: several folders")
def test_datasets_open_together_where_they_state_one_number_of_identifiers(tmp_path):
    one = arc(tmp_path / "one", num_puzzle_identifiers=60)
    two = arc(tmp_path / "two", 2, first_identifier=30, num_puzzle_identifiers=60)
    reader = TrmReader([one, two], "train", seed=0, size=2, test=False)
    assert reader.metadata["num_puzzle_identifiers"] == 120
    found: dict[str, set[int]] = {"all": set(), "all1": set()}
    for _ in range(20):
        for name, batch, _ in reader:
            found[name] |= set(batch["puzzle_identifiers"].tolist())
    assert max(found["all"]) < 30 <= min(found["all1"]) and max(found["all1"]) < 60
    other = arc(tmp_path / "three", 2, first_identifier=30)
    with pytest.raises(AssertionError, match="num_puzzle_identifiers"):
        TrmReader([one, other], "train", seed=0, size=2, test=False)


def test_a_dataset_without_the_key_of_trm_does_not_open(tmp_path):
    folder = built("domino", tmp_path)
    path = folder / "train/dataset.json"
    described = json.loads(path.read_text())
    del described["total_puzzles"]
    path.write_text(json.dumps(described))
    with pytest.raises(AssertionError, match="total_puzzles: Field required"):
        TrmReader([folder], "train", seed=0, size=2, test=False)
