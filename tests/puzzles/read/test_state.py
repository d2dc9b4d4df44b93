"""Passes of the reader: what the iteration counter counts, and which iterator moves the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.puzzles.read.dataset import Position, Progress, PuzzleDataset, PuzzleDatasetConfig
from tests.puzzles.read.folders import taken, write_set, write_split
from tests.puzzles.read.plain_reader import PlainReader


def reader(root: Path, size: int = 8, test: bool = False, rank: int = 0, ranks: int = 1) -> Any:
    return PuzzleDataset(PuzzleDatasetConfig(5, root, size, test, 1, rank, ranks))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three sets: the second and the last have no full batch of 8 examples."""
    root = write_split(tmp_path / "train", sets=("a", "b", "c", "d"), groups=20)
    for name in ("b", "d"):
        write_set(root / "train", name, seed=1, puzzles=[2, 1, 3], examples=[1] * 6)
    return root


def test_a_set_without_a_full_batch_counts_as_an_iteration(root: Path) -> None:
    data = reader(root)
    plain = PlainReader(root, "train", seed=5, size=8, test=False)
    for number in range(1, 4):
        expected = list(plain)
        assert taken(data) == taken(expected) and {item[0] for item in expected} == {"a", "c"}
        assert data.state_dict()["iteration"] == plain.iterations == 4 * number


@pytest.mark.filterwarnings("ignore:no batch")
def test_a_pass_without_any_batch_is_followed_by_another_order(tmp_path: Path) -> None:
    root = write_split(tmp_path / "train", groups=3, most_puzzles=2)
    # Puzzles of one and of seven examples: whether a batch of 8 is full, the draws decide.
    write_set(root / "train", "all", seed=0, puzzles=[2, 2], examples=[1, 7, 1, 7])
    data, plain = reader(root), PlainReader(root, "train", seed=5, size=8, test=False)
    counts = [(len(taken(data)), len(list(plain))) for _ in range(12)]
    assert {ours for ours, _ in counts} == {0, 1}
    assert all(ours == theirs for ours, theirs in counts)
    assert data.state_dict()["iteration"] == 12


def test_testing_counts_no_iteration(root: Path) -> None:
    data = reader(root, test=True)
    for _ in range(2):
        assert {name for name, _, _ in data} == {"a", "b", "c", "d"}
        assert data.state_dict()["iteration"] == 0


def test_a_state_in_any_set_continues_with_the_counter_of_the_original(root: Path) -> None:
    data = reader(root)
    whole, states = [], []
    for _ in range(2):
        for item in data:
            whole += taken([item])
            states.append(data.state_dict())
    for used, state in enumerate(states, 1):
        other = reader(root)
        other.load_state_dict(state)
        rest = taken(other)
        assert other.state_dict()["iteration"] == (4 if state["iteration"] <= 4 else 8)
        while len(rest) < len(whole) - used:
            rest += taken(other)
        assert rest == whole[used:]


def test_after_the_last_batch_the_rest_of_the_pass_is_empty(root: Path) -> None:
    data = reader(root)
    batches = iter(data)
    for _ in range(len(taken(reader(root)))):
        next(batches)
    other = reader(root)
    other.load_state_dict(data.state_dict())
    assert taken(other) == []
    assert taken(batches) == []
    assert taken(other) == taken(data) != []


def test_an_older_iterator_does_not_move_the_state_of_the_newest_pass(root: Path) -> None:
    data, plain = reader(root), reader(root)
    first, second, third = ([*taken(plain)] for _ in range(3))
    # A pass of four sets that was begun alone counts one iteration until its second set.
    older = iter(data)
    begun = [next(older)]
    newer = iter(data)
    held = [next(newer)]
    state = data.state_dict()
    assert state["iteration"] == 2
    begun.append(next(older))
    assert data.state_dict() == state, "the older iterator is not what the state describes"
    held += list(newer)
    assert data.state_dict()["iteration"] == 5
    begun += list(older)
    assert data.state_dict()["iteration"] == 5, "the counter never goes back"
    assert taken(begun) == first
    following = taken(data)
    assert following != taken(held) and following not in (first, second, third)


def test_an_iterator_that_is_in_use_does_not_move_a_loaded_state(root: Path) -> None:
    data = reader(root)
    batches = iter(data)
    next(batches)
    state = data.state_dict()
    rest = taken(batches)
    list(data)
    other = iter(data)
    next(other)
    data.load_state_dict(state)
    next(other)
    assert data.state_dict() == state
    list(other)
    assert data.state_dict() == state
    assert taken(data) == rest


@pytest.mark.parametrize("change", [{"iteration": 0}, {"set": 2, "iteration": 2}])
def test_a_counter_below_the_sets_of_the_pass_is_refused(
    root: Path, change: dict[str, int]
) -> None:
    data = reader(root)
    next(iter(data))
    with pytest.raises(GristmillError, match="damaged: there is no Position"):
        data.load_state_dict({**data.state_dict(), **change})
    data.load_state_dict({**data.state_dict(), "set": 2, "iteration": 3})


def test_less_than_no_batch_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="batches -1: must be 0 or more"):
        reader(root).state_dict(-1)


def test_states_of_all_ranks_are_equal_after_every_batch(root: Path) -> None:
    ranks = [reader(root, rank=rank, ranks=4) for rank in range(4)]
    for _ in range(2):
        for _ in zip(*ranks, strict=True):
            states = [data.state_dict() for data in ranks]
            assert states == states[:1] * 4
    assert ranks[0].state_dict() == ranks[3].state_dict()


# The position, as a worker and the process that uses its batches share it


def ends_at(begin: Position) -> int:
    return begin.iteration + 3


def progress() -> Progress:
    return Progress(np.zeros(Progress.NUMBERS, np.int64))


@pytest.mark.parametrize("read", [0, 1, 2])
def test_a_pass_of_a_worker_that_is_left_counts_whole_however_far_it_read(read: int) -> None:
    shared = progress()
    number, begin = shared.begun(True, ends_at)
    assert begin == Position()
    for iteration in range(1, read + 1):
        shared.move(number, Position(iteration, iteration - 1, 7))
    assert shared.begun(True, ends_at) == (2, Position(3))
    assert shared.now == shared.begin == Position(3) and shared.ahead


def test_a_pass_that_ended_or_was_read_without_a_worker_counts_what_it_began() -> None:
    shared = progress()
    number, _ = shared.begun(True, ends_at)
    shared.move(number, Position(1, 0, 7))
    shared.move(number, Position(3))
    assert shared.now == Position(3)
    number, begin = shared.begun(False, ends_at)
    assert begin == Position(3) and not shared.ahead
    shared.move(number, Position(4, 0, 7))
    assert shared.begun(False, ends_at)[1] == Position(4)


def test_only_the_pass_that_was_begun_last_moves() -> None:
    shared = progress()
    first, _ = shared.begun(False, ends_at)
    second, _ = shared.begun(False, ends_at)
    shared.move(first, Position(9, 0, 9))
    shared.move(first, Position(9))
    assert shared.now == Position()
    shared.move(second, Position(1, 0, 2))
    assert shared.now == Position(1, 0, 2)
    shared.move(second, Position(1))
    assert shared.now == Position(1)


def test_a_loaded_position_stays_whatever_a_worker_still_writes() -> None:
    shared = progress()
    number, _ = shared.begun(True, ends_at)
    shared.load(Position(5, 1, 2))
    assert not shared.ahead and shared.begin == Position(5, 1, 2)
    shared.move(number, Position(6, 0, 1))
    shared.move(number, Position(6))
    shared.now = Position(7, 0, 1)  # written after the worker had seen its own pass as the last one
    assert shared.now == Position(5, 1, 2)
    assert shared.begun(False, ends_at)[1] == Position(5, 1, 2) == shared.now
    assert shared.begun(False, ends_at)[1] == Position(5), "a position is loaded for one pass"
