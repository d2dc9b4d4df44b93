"""Numbers of the records of a normalised file, with and without gaps."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format.index import Numbers, numbers_path, write_numbers


def test_numbers_are_the_places_that_nothing_else_takes(tmp_path: Path) -> None:
    jsonl, draw = tmp_path / "train.jsonl", random.Random(1)
    for records in (*range(1, 20), 400):
        taken = draw.sample(range(2 * records), draw.randrange(records + 1))
        left = [number for number in range(3 * records) if number not in taken][:records]
        numbers_path(jsonl).unlink(missing_ok=True)
        has_gaps = left != [*range(records)]
        assert write_numbers(jsonl, taken, records) == numbers_path(jsonl).exists() == has_gaps
        numbers = Numbers(jsonl)
        numbers.check(records)
        assert [numbers.of(at) for at in range(records + 2)] == [*left, left[-1] + 1, left[-1] + 2]
        assert [numbers.place(number) for number in left] == [*range(records)]
        assert numbers.between(1, records).tolist() == left[1:]
        if has_gaps:
            assert {numbers.place(each) for each in taken if each < left[-1]} <= {None}
            assert np.load(numbers_path(jsonl)).tolist() == left


def test_numbers_of_other_records_are_refused(tmp_path: Path) -> None:
    jsonl = tmp_path / "train.jsonl"
    assert not write_numbers(jsonl, [0, 1], 0)
    assert write_numbers(jsonl, [0], 3)
    assert numbers_path(jsonl).name == "train.numbers.npy"
    with pytest.raises(BadInput, match=r"has 3 numbers of 4 records: build the partition again"):
        Numbers(jsonl).check(4)
    np.save(numbers_path(jsonl), np.zeros((3, 2), np.int64))
    with pytest.raises(BadInput, match=r"expected int64 \[records\]"):
        Numbers(jsonl)
