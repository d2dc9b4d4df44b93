"""Examples by number: the rows of the files, and the raw row of each."""

from __future__ import annotations

import csv

import numpy as np

from gristmill.loading import Loader, Plan
from gristmill.puzzles import PuzzleExamples
from tests.sample_root import SampleRoot


def test_examples_of_a_batch_lead_to_their_raw_rows(sample_root: SampleRoot) -> None:
    data = PuzzleExamples(sample_root.data / "puzzles/sudoku-sample")
    source = data.source()
    batch = next(iter(Loader(Plan(source, seed=5), 8, form="numpy")))
    for name, column in data.batch(batch["number"]).items():
        assert np.array_equal(batch[name], column)
    for row, number in enumerate(batch["number"].tolist()):
        (trace,) = source.origin(number)
        facts = trace.facts()
        begin, end = map(int, str(facts["raw_row_bytes"]).split("-"))
        raw = (sample_root.data / str(facts["raw_file"])).read_bytes()[begin:end].decode()
        ((_, question, answer, *_),) = csv.reader([raw])
        given = sum(cell in "123456789" for cell in question)
        assert np.count_nonzero(batch["inputs"][row] > 1) == given
        if not facts["augmentation"]:
            assert (batch["labels"][row] - 1).tolist() == [int(cell) for cell in answer]


def test_one_example_of_each_group_an_epoch(sample_root: SampleRoot) -> None:
    data = PuzzleExamples(sample_root.data / "puzzles/arc-sample")
    source = data.source(groups=True)
    ends = np.cumsum([made.examples for made in data.held.sets])
    groups = sum(len(made.group_indices) - 1 for made in data.held.sets)
    assert int(source.cuts[-1]) == groups < int(ends[-1])
    (batch,) = Loader(Plan(source, seed=5), groups, form="numpy")
    found = {
        next(iter(source.origin(number))).facts()["group"] for number in batch["number"].tolist()
    }
    assert found == set(range(groups))
