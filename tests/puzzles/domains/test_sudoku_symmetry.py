"""Symmetries: drawn as the page says, and applied alike one by one and by the kernel."""

import hashlib
import random
from itertools import permutations

import numpy as np
import pytest

from gristmill.puzzles.domains import randomness
from gristmill.puzzles.domains.grid import text_of
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.domains.sudoku_checks import solutions_of
from gristmill.puzzles.domains.sudoku_symmetry import (
    augmentation,
    canonical_forms,
    groups,
    invariants,
    key_of,
)
from gristmill.run.kernels import kernel
from tests.puzzles import sudoku
from tests.puzzles.plain_draws import Stream
from tests.puzzles.sudoku import applied, board_of

PAIRS = sudoku.pairs(0, 6)


def test_draw_zero_is_the_source_and_repeated_augmentations_are_passed_over() -> None:
    for seed, (question, answer) in zip((0, 42, 2**63 - 1), PAIRS[:3], strict=True):
        for number in (1, 2, 3, 1000):
            symmetry = augmentation(seed, question, number)
            found = [text_of(applied(symmetry, board_of(board))) for board in (question, answer)]
            assert found == sudoku.augmented(seed, question, (question, answer), number)
    board = board_of(PAIRS[0][0])
    assert (applied(augmentation(42, PAIRS[0][0], 0), board) == board).all()
    # Every symmetry keeps a blank board, so that its group has one example.
    blank = np.zeros((2, 81), np.uint8)
    inputs, labels, draws, sizes = groups(blank, blank, KEYS[:2], 9)
    assert (inputs.shape, labels.shape) == ((2, 81), (2, 81))
    assert sizes.tolist() == [1, 1] and draws.tolist() == [0, 0]
    # One clue has 81 places and nine digits: some of 400 draws repeat an earlier one.
    clue = blank.copy()
    clue[:, 40] = 5
    inputs, _, draws, sizes = groups(clue, blank, KEYS[:2], 400)
    assert sizes[0] == 401 and draws[400] > 400
    assert len(np.unique(inputs[:401], axis=0)) == 401
    assert (np.diff(draws[:401]) > 0).all()


def test_a_symmetry_keeps_rules_and_a_group_is_the_source_and_its_draws() -> None:
    for symmetry in [augmentation(k % 3, PAIRS[k % 3][0], k + 1) for k in range(12)]:
        for question, answer in PAIRS:
            asked, solved = (applied(symmetry, board_of(each)) for each in (question, answer))
            given, label = (asked + 1).tolist(), (solved + 1).tolist()
            assert sudoku.findings(given, label) == set()
            assert np.count_nonzero(asked) == 81 - question.count("0")
            found, counts, _ = solutions_of(asked[None])
            assert counts.tolist() == [1] and (found[0] == solved).all()
    inputs, labels, draws, sizes = groups(QUESTIONS, ANSWERS, KEYS, 5)
    assert sizes.tolist() == [6] * 4 and draws.tolist() == [0, 1, 2, 3, 4, 5] * 4
    for row, (given, label) in enumerate(zip(inputs, labels, strict=True)):
        question, answer = FOUR[row // 6]
        boards = [question, answer]
        if row % 6:
            boards = sudoku.augmented(42, question, boards, row % 6)
        assert (np.array([given, label]) == sudoku.tokens(boards)).all()


FOUR = sudoku.pairs(0, 4)
QUESTIONS, ANSWERS = (np.array([board_of(pair[k]) for pair in FOUR]) for k in (0, 1))
KEYS = np.array([key_of(42, question) for question, _ in FOUR], np.uint64)


def _boards() -> dict[str, np.ndarray]:
    boards = {f"puzzle {k}": board_of(question) for k, (question, _) in enumerate(PAIRS)}
    boards["answer"] = board_of(PAIRS[0][1])
    boards["blank"] = np.zeros(81, np.uint8)
    boards["one clue"] = np.eye(81, dtype=np.uint8)[13]
    boards["diagonal"] = np.eye(9, dtype=np.uint8).reshape(81)
    boards["column"] = np.tile(np.array([3, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8), 9)
    boards["one box"] = board_of("120000000340000000" + "0" * 63)
    return boards


BOARDS = _boards()


@pytest.mark.parametrize("name", BOARDS)
def test_symmetries_keep_invariant_and_form(name: str) -> None:
    board = BOARDS[name]
    twins = [applied(augmentation(7, PAIRS[0][0], k), board) for k in range(8)]
    marks, forms = invariants(np.array(twins)), canonical_forms(np.array(twins))
    assert len(set(marks.tolist())) == 1
    assert len(np.unique(forms, axis=0)) == 1


@pytest.mark.parametrize("name", BOARDS)
def test_a_form_is_itself_a_twin(name: str) -> None:
    board = BOARDS[name]
    (form,) = canonical_forms(board[None])
    assert np.count_nonzero(form) == np.count_nonzero(board)
    counts = [sorted(np.unique(each[each > 0], return_counts=True)[1]) for each in (form, board)]
    assert counts[0] == counts[1]
    assert (canonical_forms(form[None]) == form).all()
    assert invariants(form[None]) == invariants(board[None])
    assert text_of(form) <= text_of(board)


def test_no_twin_is_less_than_the_form() -> None:
    dice = random.Random(4)
    lines = [
        [3 * band + line for band, a in zip(bands, inners, strict=True) for line in a]
        for bands in permutations(range(3))
        for inners in [
            (p, q, r)
            for p in permutations(range(3))
            for q in permutations(range(3))
            for r in permutations(range(3))
        ]
    ]
    for _ in range(3):
        board = np.zeros(81, np.uint8)
        for cell in dice.sample(range(81), 3):
            board[cell] = dice.randrange(1, 3)
        least = min(
            _relabelled(grid[np.ix_(rows, columns)].reshape(81))
            for grid in (board.reshape(9, 9), board.reshape(9, 9).T)
            for rows in dice.sample(lines, 25)
            for columns in dice.sample(lines, 25)
        )
        assert text_of(canonical_forms(board[None])[0]) <= least


def _relabelled(board: np.ndarray) -> str:
    labels = {0: 0}
    return "".join(str(labels.setdefault(int(cell), len(labels))) for cell in board)


def test_two_boards_with_one_different_cell_differ() -> None:
    board = BOARDS["puzzle 0"]
    changed = [board]
    for cell in range(81):
        other = board.copy()
        other[cell] = 0 if board[cell] else 1 + cell % 9
        changed.append(other)
    marks = invariants(np.array(changed))
    forms = canonical_forms(np.array(changed))
    assert len(np.unique(forms, axis=0)) == len(np.unique(marks)) > 75


@kernel()
def _drawn(key, number, bounds, order):  # type: ignore[no-untyped-def]
    state = np.empty(1, np.uint64)
    randomness.start(state, key, number)
    found = np.empty_like(bounds)
    for place in range(bounds.shape[0]):
        found[place] = randomness.below(state, bounds[place])
    randomness.shuffle(state, order)
    return found


def test_draws_are_those_of_the_docs_and_each_order_of_a_shuffle_is_as_likely() -> None:
    for number in (0, 1, 2, 1_000_000):
        key = source_key(number, "sudoku", "4.")
        bounds = np.array([1, 2, 9, 2**62 + 1, 2**31, 7])
        order = np.arange(9)
        found = _drawn(np.uint64(key), number, bounds, order)
        stream = Stream(key, number)
        assert found.tolist() == [stream.below(bound) for bound in bounds.tolist()]
        expected = list(range(9))
        stream.shuffle(expected)
        assert order.tolist() == expected
    counts: dict[tuple[int, ...], int] = {}
    for number in range(6000):
        order = np.arange(3)
        _drawn(np.uint64(5), number, np.array([2]), order)
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 150 for count in counts.values())
    digest = hashlib.sha256(b"42:arc:007bbfb7").digest()
    assert source_key(42, "arc", "007bbfb7") == int.from_bytes(digest[:8], "little")
