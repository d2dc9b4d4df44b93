"""Batches against the reader of the specification as a Python loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.read import dataset as batches
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig, TrainBatches
from gristmill.puzzles.read.rows import MappedSet
from tests.paths import REAL_DATA
from tests.puzzles.format.test_batch import METADATA
from tests.puzzles.read.folders import write_split
from tests.puzzles.read.plain_reader import PlainReader

REAL = REAL_DATA / "puzzles/maze_hrm_built"


def same(ours: Any, plain: Any) -> None:
    """Both yield the same items."""
    count = 0
    for (name, batch, size), (expected_name, expected, expected_size) in zip(
        ours, plain, strict=True
    ):
        assert (name, size) == (expected_name, expected_size)
        assert list(batch) == ["inputs", "labels", "puzzle_identifiers"]
        for field, column in batch.items():
            found = np.asarray(column)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected[field], field)
        count += 1
    assert count


def both(
    root: Path, split: str, size: int, test: bool, epochs: int = 1, rank: int = 0, ranks: int = 1
) -> tuple[PuzzleDataset, PlainReader]:
    config = PuzzleDatasetConfig(11, root, size, test, epochs, rank, ranks)
    plain = PlainReader(
        root, split, seed=11, size=size, test=test, epochs=epochs, rank=rank, ranks=ranks
    )
    return PuzzleDataset(config, split), plain


@pytest.mark.parametrize("ignored", [0, 3, None])
def test_training_batches_are_those_of_the_plain_reader(
    tmp_path: Path, ignored: int | None
) -> None:
    root = write_split(
        tmp_path / "train", groups=50, most_puzzles=7, sets=("a", "b"), ignore_label_id=ignored
    )
    ours, plain = both(root, "train", 12, False, epochs=3)
    for _ in range(3):  # passes
        same(ours, plain)


def test_draws_beyond_one_window_are_those_of_the_plain_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_DRAWN_AT_ONCE", 7)
    root = write_split(tmp_path / "train", groups=40, most_puzzles=300)
    same(*both(root, "train", 16, False, epochs=2))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", ">i4", "int16"])
@pytest.mark.parametrize("test", [False, True])
def test_tokens_of_any_integer_type_are_read_as_int32(
    tmp_path: Path, dtype: str, test: bool
) -> None:
    index = {"uint8": "int32", ">i4": ">i4"}.get(dtype, "int64")
    root = write_split(tmp_path / "train", dtype=dtype, index_dtype=index)
    same(*both(root, "train", 8, test))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_rank_reads_its_part_of_every_batch(tmp_path: Path, ranks: int) -> None:
    root = write_split(tmp_path / "train", sets=("all", "more"))
    for rank in range(ranks):
        same(*both(root, "train", 8, False, rank=rank, ranks=ranks))


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("size", [10, 20, 1000])
def test_testing_gives_every_example_once_and_pads_the_last_batch(
    tmp_path: Path, ranks: int, size: int
) -> None:
    root = write_split(
        tmp_path / "test",
        sets=("all", "more"),
        most_examples=5,
        pad_id=7,
        blank_identifier_id=4,
        ignore_label_id=2,
    )
    for rank in range(ranks):
        ours, plain = both(root, "test", size, True, rank=rank, ranks=ranks)
        same(ours, plain)
        same(ours, plain)


def _numbered(tmp_path: Path, puzzles: int, examples: int) -> Path:
    """One puzzle a group; the tokens of an example are its number."""
    root = write_split(tmp_path / "train", groups=puzzles, most_puzzles=1)
    count = puzzles * examples
    numbers = np.repeat(np.arange(count, dtype=np.int32)[:, None], 6, 1)
    for field in ("inputs", "labels"):
        np.save(root / f"train/all__{field}.npy", numbers)
    np.save(
        root / "train/all__puzzle_indices.npy",
        np.arange(0, count + 1, examples, dtype=np.int32),
    )
    np.save(root / "train/all__puzzle_identifiers.npy", np.arange(puzzles, dtype=np.int32) % 5)
    np.save(root / "train/all__group_indices.npy", np.arange(puzzles + 1, dtype=np.int32))
    return root


def _examples(root: Path, size: int, seed: int = 11, epochs: int = 1) -> Iterator[list[int]]:
    data = PuzzleDataset(PuzzleDatasetConfig(seed, root, size, False, epochs, 0, 1))
    for _, batch, _ in data:
        yield np.asarray(batch["inputs"])[:, 0].tolist()


def test_all_examples_of_a_puzzle_that_fits_are_taken_together(tmp_path: Path) -> None:
    root = _numbered(tmp_path, puzzles=30, examples=4)
    shuffled = 0
    for rows in _examples(root, 12):
        for first in range(0, 12, 4):
            puzzle = rows[first : first + 4]
            assert {row // 4 for row in puzzle} == {puzzle[0] // 4}
            assert len(set(puzzle)) == 4
            shuffled += puzzle != sorted(puzzle)
    assert shuffled > 15


def test_a_puzzle_is_cut_at_the_end_of_a_batch_and_its_rest_is_dropped(tmp_path: Path) -> None:
    root = _numbered(tmp_path, puzzles=40, examples=4)
    cut = [0] * 4
    seen: set[int] = set()
    for rows in _examples(root, 10):
        puzzles = [row // 4 for row in rows]
        assert [puzzles.count(puzzle) for puzzle in dict.fromkeys(puzzles)] == [4, 4, 2]
        assert len(set(rows)) == 10
        assert not seen & set(puzzles)
        seen |= set(puzzles)
        for row in rows[8:]:
            cut[row % 4] += 1
    assert min(cut) >= 2, "the examples of a cut puzzle are drawn from all of its examples"


def test_every_order_of_the_examples_of_a_puzzle_is_equally_likely(tmp_path: Path) -> None:
    root = _numbered(tmp_path, puzzles=60, examples=3)
    counts: dict[tuple[int, ...], int] = {}
    for rows in _examples(root, 3, epochs=100):
        order = tuple(row % 3 for row in rows)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and sum(counts.values()) == 6000
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_examples_are_in_another_order_in_every_pass_and_the_same_for_every_reader(
    tmp_path: Path,
) -> None:
    root = _numbered(tmp_path, puzzles=9, examples=5)
    data, other = (
        PuzzleDataset(PuzzleDatasetConfig(0, root, 15, False, 1, 0, 1)) for _ in range(2)
    )
    np.random.seed(1)
    first = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in data]
    np.random.seed(2)
    again = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in other]
    second = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in data]
    assert first == again != second


def test_ranks_read_the_same_examples_of_puzzles_with_several(tmp_path: Path) -> None:
    root = _numbered(tmp_path, puzzles=20, examples=5)
    whole = list(_examples(root, 12))
    ranks = [
        [
            np.asarray(batch["inputs"])[:, 0].tolist()
            for _, batch, _ in PuzzleDataset(PuzzleDatasetConfig(11, root, 12, False, 1, rank, 3))
        ]
        for rank in range(3)
    ]
    assert [[*one, *two, *three] for one, two, three in zip(*ranks, strict=True)] == whole


def _set(tmp_path: Path, **indices: list[int]) -> MappedSet:
    arrays = {name: np.array(values, np.int32) for name, values in indices.items()}
    tokens = np.zeros((3, 2), np.uint8)
    for array in (*arrays.values(), tokens):
        array.setflags(write=False)  # as mapped arrays, which kernels are compiled for
    paths = {name: tmp_path / f"{name}.npy" for name in arrays}
    return MappedSet("all", tokens, tokens, np.zeros(3, np.int32), **arrays, paths=paths)


@pytest.mark.parametrize("values", [[0, 0, 0, 0], [1, 2, 3, 3], [9, 9, 9, 9]])
def test_indices_that_are_overwritten_while_rows_are_read_in_order_are_no_crash(
    tmp_path: Path, values: list[int]
) -> None:
    made = _set(tmp_path, puzzle_indices=values, group_indices=[0, 1, 2, 3])
    (chosen,) = batches.batches_in_order(made, 3, 0, 1, 0)
    with pytest.raises(BadInput, match=r"puzzle_indices.npy: was changed after it was opened"):
        batches.batch_of(made, METADATA, chosen.rows, chosen.owners, 3)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("puzzle_indices", [0, 5, 9, 12]),
        ("puzzle_indices", [0, -4, 2, 3]),
        ("puzzle_indices", [0, 0, 0, 0]),
        ("puzzle_indices", [3, 2, 1, 0]),
        ("group_indices", [0, 9, 10, 11]),
        ("group_indices", [0, 0, 0, 0]),
        ("group_indices", [-9, -8, -7, -6]),
    ],
)
def test_indices_that_are_overwritten_while_training_reads_are_no_crash(
    tmp_path: Path, field: str, values: list[int]
) -> None:
    right = {"puzzle_indices": [0, 1, 2, 3], "group_indices": [0, 1, 2, 3]}
    made = _set(tmp_path, **{**right, field: values})
    with pytest.raises(BadInput, match=r"_indices.npy: was changed after it was opened"):
        list(TrainBatches(made, 0, 1, 50, 3).chosen())


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data at {REAL}")
def test_a_dataset_of_the_original_builder_is_read_as_the_original_reads_it() -> None:
    same(*both(REAL, "train", 96, False, epochs=2))
    same(*both(REAL, "test", 96, True, rank=1, ranks=2))
