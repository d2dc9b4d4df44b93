"""ARC: grids as 900 tokens with EOS on the border alone, augmentations and their ids, and votes.

Source: docs/formats/puzzles.md#arc, docs/formats/puzzles.md#arc-augmentation
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.grid import INVERSE, transform
from gristmill.puzzles.format.dataset import Encoding

Grid = npt.NDArray[np.uint8]

SIDE: Final = 30
SEQ_LEN: Final = SIDE * SIDE
PAD: Final = 0
EOS: Final = 1
FIRST_COLOUR: Final = 2
"""The token of colour 0; colour c is c + 2."""
COLOURS: Final = 10
VOCAB_SIZE: Final = FIRST_COLOUR + COLOURS
ENCODING: Final = Encoding(seq_len=SEQ_LEN, vocab_size=VOCAB_SIZE, pad_id=PAD)


class Placed(NamedTuple):
    """A grid, uint8 [height, width], and where it is in its sequence."""

    grid: Grid
    row: int
    column: int


def checked_grid(grid: npt.ArrayLike) -> Grid:
    """Return a grid as uint8 [height, width]. grid: integers 0 to 9, sides 1 to 30; lists count."""
    try:
        cells = np.asarray(grid)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"is not a grid: {error}") from error
    if cells.dtype.kind not in "iu" or cells.ndim != 2 or min(cells.shape) == 0:
        raise ValueError(
            f"is not a grid: {cells.dtype} {cells.shape}: it needs two dimensions and integers"
        )
    if max(cells.shape) > SIDE:
        raise ValueError(f"is not a grid: {cells.shape}: it has at most {SIDE} x {SIDE} cells")
    if cells.min() < 0 or cells.max() >= COLOURS:
        raise ValueError(
            f"is not a grid: has {cells.min()} to {cells.max()}: colours are 0 to {COLOURS - 1}"
        )
    return cells.astype(np.uint8)


def encode(grid: Grid, row: int = 0, column: int = 0) -> Grid:
    """Return the tokens of a grid at a place, uint8 [900]: EOS is below and right of it."""
    grid = checked_grid(grid)
    bottom, right = row + grid.shape[0], column + grid.shape[1]
    if row < 0 or column < 0 or bottom > SIDE or right > SIDE:
        raise ValueError(f"a grid of {grid.shape} at {(row, column)} is not within 30 x 30 cells")
    tokens = np.full((SIDE, SIDE), PAD, np.uint8)
    tokens[row:bottom, column:right] = grid + FIRST_COLOUR
    if bottom < SIDE:
        tokens[bottom, column:right] = EOS
    if right < SIDE:
        tokens[row:bottom, right] = EOS
    return tokens.reshape(-1)


def decode(tokens: npt.NDArray[np.integer]) -> Placed:
    """Return the grid of a sequence and its place; ValueError says why there is not one."""
    cells = _cells(tokens)
    if cells.min() < PAD or cells.max() >= VOCAB_SIZE:
        raise ValueError(f"a token is not one of 0 to {VOCAB_SIZE - 1}")
    rows = np.flatnonzero((cells >= FIRST_COLOUR).any(axis=1))
    columns = np.flatnonzero((cells >= FIRST_COLOUR).any(axis=0))
    if not len(rows):
        raise ValueError("no cell has a colour")
    row, column = int(rows[0]), int(columns[0])
    found = cells[row : rows[-1] + 1, column : columns[-1] + 1]
    if found.min() < FIRST_COLOUR:
        raise ValueError("the cells with a colour are not a rectangle")
    grid = (found - FIRST_COLOUR).astype(np.uint8)
    if not np.array_equal(encode(grid, row, column), cells.reshape(-1)):
        raise ValueError("EOS is not on the border of the grid alone")
    return Placed(grid, row, column)


def read_answer(tokens: npt.NDArray[np.integer], row: int = 0, column: int = 0) -> Grid | None:
    """Return the grid that a model predicts, None where it predicts none.

    tokens: integers [900]; what is predicted where the label is PAD does not count.
    row, column: where the grid begins: the place of the input, from `decode`. Default (0, 0).

    It is the largest rectangle of colours that begins there; of several that are equally large the
    one with the fewest rows, as in the original.
    Raises ValueError for other tokens than 900 integers, and a place outside of 30 x 30 cells.
    """
    if not (0 <= row < SIDE and 0 <= column < SIDE):
        raise ValueError(f"{(row, column)} is not within 30 x 30 cells")
    cells = _cells(tokens)[row:, column:]
    coloured = (cells >= FIRST_COLOUR) & (cells < VOCAB_SIZE)
    width, best = coloured.shape[1], (0, 0, 0)
    for height, line in enumerate(coloured, 1):
        width = min(width, len(line) if line.all() else int(line.argmin()))
        if height * width > best[0]:
            best = height * width, height, width
    area, height, width = best
    return (cells[:height, :width] - FIRST_COLOUR).astype(np.uint8) if area else None


def _cells(tokens: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    found = np.asarray(tokens)
    if found.shape != (SEQ_LEN,) or found.dtype.kind not in "iu":
        raise ValueError(f"tokens {found.dtype} {found.shape}, expected integers ({SEQ_LEN},)")
    return found.reshape(SIDE, SIDE)


KIND: Final = "arc"
"""The kind of draw: `source_key(seed, KIND, base)` is the key of a task's augmentations."""
TRANSLATION: Final = "arc:translation"
"""The kind of draw of the translations."""
MOST_BASE: Final = 255
"""Letters of the id of a task: what a file's name may have."""
_SHOWN: Final = 80
_ID = re.compile(r"([^_]+)(?:_t([0-7])_(0[1-9]{9}))?")
TRM_MARK: Final = "|||"
"""What separates the parts of an id in the datasets of TRM."""
_TRM_ID = re.compile(r"(.+?)\|\|\|t([0-7])\|\|\|(0[1-9]{9})")


class Augmentation(NamedTuple):
    """One augmentation. colours: ten digits; digit i is the new colour of i, the first is 0."""

    symmetry: int = 0
    colours: str = "0123456789"

    def apply(self, grid: Grid) -> Grid:
        """Return a grid after the augmentation, uint8 [height, width] or turned."""
        colours = np.array(list(self.colours), np.uint8)
        return transform(colours[grid], self.symmetry)

    def undo(self, grid: Grid) -> Grid:
        """Return a grid as it was before the augmentation."""
        before = np.argsort(np.array(list(self.colours), np.uint8)).astype(np.uint8)
        return before[transform(grid, INVERSE[self.symmetry])]


def is_task_id(text: str) -> bool:
    """Whether a text can be a task id: 1 to 255 printable letters, not as `<a`, `a|` or `a|||b`."""
    is_named = 0 < len(text) <= MOST_BASE and text.isprintable()
    return is_named and TRM_MARK not in text and text[0] != "<" and text[-1] != "|"


def base_of(task: str) -> str:
    """The id of a task in the ids of its augmentations: `-` in place of each `_`."""
    return task.replace("_", "-")


def aug_id(base: str, augmentation: Augmentation) -> str:
    """Return the id of an augmented puzzle: `<base>_t<symmetry>_<colours>`.

    base: id of the task, without `_`.

    Raises GristmillError for a base or an augmentation whose id could not be parsed.
    """
    made = f"{base}_t{augmentation.symmetry}_{augmentation.colours}"
    parse_id(made)
    return made


def parse_id(identifier: str) -> tuple[str, Augmentation | None]:
    """Return the task's id, and the augmentation, if any. identifier: of HRM's form or TRM's."""
    found = None
    if isinstance(identifier, str):
        found = _TRM_ID.fullmatch(identifier) or _ID.fullmatch(identifier)
    is_puzzle = found is not None and is_task_id(found[1])
    if found is None or not is_puzzle or (found[3] and len(set(found[3])) != len(found[3])):
        raise GristmillError(
            f"{repr(identifier)[:_SHOWN]} is not an id of an ARC puzzle: expected the id of a task"
            " without '_', and for an augmentation _t, 0 to 7, _ and the new colours of 0 to 9"
            " behind it"
        )
    return found[1], None if found[2] is None else Augmentation(int(found[2]), found[3])


class FlatTask(NamedTuple):
    """The cells of the grids of a task; grid 2k is the input of pair k, 2k + 1 its output."""

    cells: Grid
    starts: npt.NDArray[np.int64]
    shapes: npt.NDArray[np.int64]


def flat(pairs: Sequence[tuple[Grid, Grid]]) -> FlatTask:
    """Return the arrays of a task. pairs: input and output of each, uint8 [height, width]."""
    grids = [grid for pair in pairs for grid in pair]
    sizes = np.array([grid.size for grid in grids], np.int64)
    return FlatTask(
        np.concatenate([grid.reshape(-1) for grid in grids]),
        np.cumsum(sizes) - sizes,
        np.array([grid.shape for grid in grids], np.int64),
    )


def task_hash(pairs: Iterable[tuple[Grid, Grid]]) -> str:
    """Return the hash of a puzzle, which the order of its pairs does not change, in hex.

    pairs: input and output of each pair, uint8 [height, width].
    """
    texts = sorted(f"{_grid_hash(before)}|{_grid_hash(after)}" for before, after in pairs)
    return hashlib.sha256("|".join(texts).encode()).hexdigest()


def _grid_hash(grid: Grid) -> str:
    return hashlib.sha256(bytes(grid.shape) + grid.astype(np.uint8).tobytes()).hexdigest()


def inverse(identifier: str, grid: Grid) -> Grid:
    """Return a grid of an augmented puzzle as it is in the task itself.

    identifier: of the puzzle, as `identifiers.json` has it.
    grid: uint8 [height, width], colours 0 to 9; from tokens: `arc_grid.decode` for those of a
        dataset, `arc_grid.read_answer` for those that a model predicts.

    Raises GristmillError for a text that is no id of a puzzle, and for what is not a grid: other
    colours, no integers, another number of dimensions, no cell, or more than 30 x 30.
    """
    augmentation = parse_id(identifier)[1] or Augmentation()
    try:
        return augmentation.undo(checked_grid(grid))
    except ValueError as error:
        raise GristmillError(f"the answer to {identifier} {error}") from error


def arc_vote(answers: Iterable[tuple[str, Grid | None]]) -> list[tuple[Grid, int]]:
    """Count the answers to one test pair in the frame of the task, most votes first.

    answers: id of the puzzle and predicted grid, integers [height, width], for the task and its
        augmentations. None, as `arc_grid.read_answer` gives it where no grid is predicted, is no
        vote. Several answers to one puzzle are as many votes.

    Returns grids, uint8, with their votes. Of equally many votes the smaller grid is first, by
    height, width, and cells; the order of the answers changes nothing.
    Raises GristmillError for answers of several tasks, and as `inverse`.
    """
    votes: Counter[tuple[tuple[int, ...], bytes]] = Counter()
    tasks = set()
    for identifier, grid in answers:
        tasks.add(parse_id(identifier)[0])
        if grid is None:
            continue
        before = inverse(identifier, grid)
        votes[before.shape, before.tobytes()] += 1
    if len(tasks) > 1:
        named = ", ".join(sorted(tasks)[:10])
        raise GristmillError(f"answers of several tasks: {named}; vote on one task at a time")
    ranked = sorted(votes.items(), key=lambda entry: (-entry[1], *entry[0]))
    return [(np.frombuffer(cells, np.uint8).reshape(shape), n) for (shape, cells), n in ranked]
