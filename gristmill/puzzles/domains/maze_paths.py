"""Compiled rules of mazes, and which are the same. Source: docs/formats/puzzles.md#maze."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.grid import GOAL, OPEN, PATH, START, WALL, index_maps, side_of
from gristmill.puzzles.format.dataset import Integers
from gristmill.run.kernels import kernel

RULES: Final = {
    "not_square": "the maze is not square",
    "token_of_no_cell": "a token is not 1 to 5",
    "path_in_input": "the input has a cell of the path",
    "one_start": "the input does not have exactly one start",
    "one_goal": "the input does not have exactly one goal",
    "label_changes_cell": "the label differs from the input in more than open cells on the path",
    "goal_not_reachable": "no way leads from the start to the goal",
    "path_not_connected": "the path does not lead from the start to the goal in one piece",
    "path_not_shortest": "the path has more cells than the shortest way from the start to the goal",
}
"""What a row may break, with a sentence for the user; the order is that of the bits."""

_KEY_BYTES: Final = 16
_SQUARE, _TOKEN, _INPUT, _START, _GOAL, _LABEL, _UNREACHABLE, _CONNECTED, _SHORTEST = (
    1 << bit for bit in range(len(RULES))
)


def findings(inputs: Integers, labels: Integers) -> npt.NDArray[np.uint32]:
    """The rules that each row breaks, uint32 [rows]: bit k is rule k of `RULES`; paths last."""
    found = np.zeros(len(inputs), np.uint32)
    side = side_of(inputs.shape[1])
    if side is None:
        return found + np.uint32(_SQUARE)
    _look(
        np.ascontiguousarray(inputs, np.int32), np.ascontiguousarray(labels, np.int32), side, found
    )
    return found


def rule_names(broken: int) -> list[str]:
    """The names of the rules whose bits are set, in the order of `RULES`."""
    return [name for bit, name in enumerate(RULES) if broken >> bit & 1]


def canonical(inputs: Integers) -> list[bytes]:
    """A key of 16 bytes for each square maze, equal for the same cells up to symmetry."""
    side = side_of(inputs.shape[1])
    if side is None:
        raise ValueError(f"{inputs.shape[1]} tokens are not a square maze")
    least = np.empty(inputs.shape, np.uint8)
    _least(np.ascontiguousarray(inputs, np.uint8), index_maps(side), least)
    return [hashlib.sha256(form).digest()[:_KEY_BYTES] for form in least]


@njit
def _cells(tokens, label):
    """Findings of the cells, and the places of start and goal."""
    found, starts, goals, start, goal = 0, 0, 0, 0, 0
    for place in range(tokens.shape[0]):
        token, answer = tokens[place], label[place]
        if token < WALL or token > PATH or answer < WALL or answer > PATH:
            return _TOKEN, 0, 0
        if token == PATH:
            found |= _INPUT
        if token == START:
            starts += 1
            start = place
        if token == GOAL:
            goals += 1
            goal = place
        if answer != token and not (token == OPEN and answer == PATH):
            found |= _LABEL
    if starts != 1:
        found |= _START
    if goals != 1:
        found |= _GOAL
    return found, start, goal


@njit
def _reach(cells, wide, start, goal, stops, queue):
    """Set cells that are reached to 0; returns how many, and the steps to the goal, or -1."""
    cells[start] = 0
    queue[0] = start
    read, written = 0, 1
    steps, end, to_goal = 1, 1, -1
    while read < written:
        if read == end:
            steps, end = steps + 1, written
        cell = queue[read]
        read += 1
        for after in (cell - wide, cell - 1, cell + 1, cell + wide):
            place = np.uint64(after)  # such an index is not looked at for being below 0
            if cells[place]:
                cells[place] = 0
                queue[written] = after
                written += 1
                if after == goal:
                    to_goal = steps
                    if stops:
                        return written, to_goal
    return written, to_goal


@njit
def _bordered(tokens, side, least, cells):
    """Set the cells whose token is at least `least`, within a border, to 1; returns how many."""
    count = 0
    for row in range(side):
        for column in range(side):
            is_open = tokens[row * side + column] >= least
            cells[(row + 1) * (side + 2) + column + 1] = is_open
            count += is_open
    return count


@njit
def _path(tokens, label, side, start, goal, cells, queue):
    wide = side + 2
    start = (start // side + 1) * wide + start % side + 1
    goal = (goal // side + 1) * wide + goal % side + 1
    _bordered(tokens, side, OPEN, cells)
    _, shortest = _reach(cells, wide, start, goal, True, queue)
    if shortest < 0:
        return _UNREACHABLE
    # Start, goal and path are the tokens from START on; all of these cells but one are a step.
    count = _bordered(label, side, START, cells)
    reached, steps = _reach(cells, wide, start, goal, False, queue)
    if steps < 0 or reached != count:
        return _CONNECTED
    return _SHORTEST if count - 1 != shortest else 0


@kernel("void(i4[:,::1], i4[:,::1], i8, u4[::1])", nogil=True)
def _look(inputs, labels, side, found):
    size = (side + 2) * (side + 2)
    cells, queue = np.zeros(size, np.uint8), np.empty(size, np.int32)
    for row in range(inputs.shape[0]):
        broken, start, goal = _cells(inputs[row], labels[row])
        if broken == 0:
            broken = _path(inputs[row], labels[row], side, start, goal, cells, queue)
        found[row] = broken


@kernel("void(u1[:,::1], i4[:,::1], u1[:,::1])", nogil=True)
def _least(inputs, maps, least):
    """The least transform of each maze, compared cell by cell."""
    for row in range(inputs.shape[0]):
        tokens, best = inputs[row], 0
        for symmetry in range(1, maps.shape[0]):
            for cell in range(tokens.shape[0]):
                one, other = tokens[maps[symmetry, cell]], tokens[maps[best, cell]]
                if one != other:
                    if one < other:
                        best = symmetry
                    break
        for cell in range(tokens.shape[0]):
            least[row, cell] = tokens[maps[best, cell]]
