"""Small datasets of each kind, written without a builder: what tests of pictures and pages read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.puzzles import format as names
from gristmill.puzzles.format.dataset import PuzzleDatasetMetadata, SourceFile, Sources

Tokens = npt.NDArray[np.uint8]

QUESTION = "...1.7.9.........672...84.1.8...5.474.....18...7.84.39.....69..5.63.1....7.5...6."
ANSWER = "648157293915432876723698451382915647459763182167284539234876915596341728871529364"
"""`generated_sudoku(5006)`."""


@dataclass(frozen=True)
class Small:
    """A set to write. origins None: without a trace."""

    kind: str
    inputs: Tokens
    labels: Tokens
    vocab_size: int
    identifiers: Sequence[int]
    examples: Sequence[int]
    puzzles: Sequence[int]
    names: Sequence[str] = (names.BLANK,)
    origins: Sequence[tuple[int, int, int]] | None = ()
    files: Sequence[str] = ()
    config: Mapping[str, Any] | None = None


def write(folder: Path, small: Small, test: Small | None = None, dtype: str = "uint8") -> Path:
    """Write a dataset whose splits are `small` and `test` (default: the same); returns `folder`."""
    for split, each in (("train", small), ("test", test or small)):
        (folder / split).mkdir(parents=True)
        (folder / "trace" / split).mkdir(parents=True)
        arrays = {
            "inputs": each.inputs.astype(dtype),
            "labels": each.labels.astype(dtype),
            "puzzle_identifiers": np.array(each.identifiers, np.int32),
            "puzzle_indices": _offsets(each.examples),
            "group_indices": _offsets(each.puzzles),
        }
        for field, array in arrays.items():
            np.save(folder / names.array(split, names.SET, field), array)
        if each.origins is not None:
            np.save(folder / names.origins(split, names.SET), np.array(each.origins, np.int32))
        metadata = PuzzleDatasetMetadata(
            pad_id=0,
            ignore_label_id=0,
            blank_identifier_id=0,
            vocab_size=each.vocab_size,
            seq_len=each.inputs.shape[1],
            num_puzzle_identifiers=len(small.names),
            total_groups=len(each.puzzles),
            mean_puzzle_examples=len(each.inputs) / len(each.examples),
            sets=(names.SET,),
            total_puzzles=len(each.examples),
        )
        (folder / names.metadata(split)).write_text(metadata.text())
    (folder / names.IDENTIFIERS).write_text(json.dumps(list(small.names)))
    if small.origins is not None:
        files = [SourceFile(path, f"{number:064x}") for number, path in enumerate(small.files)]
        sources = Sources(small.kind, small.config or {}, files)
        (folder / names.SOURCES).write_text(sources.text())
    return folder


def _offsets(counts: Sequence[int]) -> npt.NDArray[np.int32]:
    return np.cumsum([0, *counts]).astype(np.int32)


def arc_tokens(grid: Sequence[Sequence[int]], row: int = 0, column: int = 0) -> Tokens:
    """The tokens of a grid whose first cell is at (row, column)."""
    cells = np.zeros((30, 30), np.uint8)
    colours = np.array(grid, np.uint8)
    tall, wide = colours.shape
    cells[row : row + tall, column : column + wide] = colours + 2
    cells[row + tall : row + tall + 1, column : column + wide] = 1
    cells[row : row + tall, column + wide : column + wide + 1] = 1
    return cells.reshape(-1)


def arc(name: str = "1a2b3c4d") -> Small:
    """One task of two pairs, and an augmentation of it that is moved by (2, 5)."""
    colours = [2, 1, 0], [3, 3, 4]
    mirrored = [0, 1, 3], [4, 2, 2]
    pairs = [
        (arc_tokens(colours), arc_tokens([[9]])),
        (arc_tokens([[5]]), arc_tokens(colours)),
        (arc_tokens(mirrored, 2, 5), arc_tokens([[9]], 2, 5)),
        (arc_tokens([[5]]), arc_tokens(mirrored)),
    ]
    return Small(
        kind="arc",
        inputs=np.stack([before for before, _ in pairs]),
        labels=np.stack([after for _, after in pairs]),
        vocab_size=12,
        identifiers=(1, 2),
        examples=(2, 2),
        puzzles=(2,),
        names=(names.BLANK, name, f"{name}_t4_0132456789"),
        origins=[(0, 0, 0), (0, 1, 0), (0, 0, 3), (0, 1, 3)],
        files=[f"arc/training/{name}.json"],
        config={"num_aug": 1, "seed": 42},
    )


def sudoku() -> Small:
    """One Sudoku."""
    given = np.array([int(cell.replace(".", "0")) + 1 for cell in QUESTION], np.uint8)
    solution = np.array([int(cell) + 1 for cell in ANSWER], np.uint8)
    return Small(
        kind="sudoku",
        inputs=given[None],
        labels=solution[None],
        vocab_size=11,
        identifiers=(0,),
        examples=(1,),
        puzzles=(1,),
        origins=[(0, 2, 0)],
        files=["bank/train.csv"],
        config={"num_aug": 0, "seed": 42},
    )


def maze() -> Small:
    """A maze of 4 x 4 cells, as it is and mirrored."""
    rows = "S#  ", " # G", "  o#", "####"
    solved = "S#  ", "o#oG", "ooo#", "####"
    start = np.array([["# SGo".index(cell) + 1 for cell in row] for row in rows], np.uint8)
    start[start == 5] = 2
    path = np.array([["# SGo".index(cell) + 1 for cell in row] for row in solved], np.uint8)
    return Small(
        kind="maze",
        inputs=np.stack([start.reshape(-1), start[:, ::-1].reshape(-1)]),
        labels=np.stack([path.reshape(-1), path[:, ::-1].reshape(-1)]),
        vocab_size=6,
        identifiers=(0, 0),
        examples=(1, 1),
        puzzles=(2,),
        origins=[(0, 2, 0), (0, 2, 4)],
        files=["mazes/train.csv"],
        config={"aug": True, "seed": 42},
    )


def domino_tokens(
    table: Sequence[tuple[int, int]],
    hand: Sequence[tuple[int, int]],
    ends: tuple[int, int],
    played: tuple[int, int, int],
) -> tuple[Tokens, Tokens]:
    """Input and label; ends: -1 for none; played: the tile and the position."""
    given, wanted = np.zeros(72, np.uint8), np.zeros(72, np.uint8)
    for first, tiles in ((0, table), (56, hand)):
        halves = [half + 1 for tile in tiles for half in tile]
        given[first : first + len(halves)] = halves
    given[70:72] = [end + 1 for end in ends]
    wanted[:3] = played[0] + 1, played[1] + 1, played[2]
    return given, wanted


def domino() -> Small:
    """Two games: three tiles on the table, and an empty table."""
    first = domino_tokens(
        [(1, 5), (1, 3), (3, 3)], [(0, 0), (5, 6), (2, 4), (3, 6)], (5, 3), (5, 6, 1)
    )
    hand = [(0, 0), (5, 6), (2, 4), (3, 6), (1, 1), (1, 2), (4, 4)]
    second = domino_tokens([], hand, (-1, -1), (5, 6, 3))
    return Small(
        kind="domino",
        inputs=np.stack([first[0], second[0]]),
        labels=np.stack([first[1], second[1]]),
        vocab_size=8,
        identifiers=(0, 0),
        examples=(1, 1),
        puzzles=(1, 1),
        origins=[(-1, 0, 0), (-1, 1, 0)],
        config={"seed": 42, "augmentation": "reversal"},
    )


def other(seq_len: int = 7) -> Small:
    """A kind that has no picture."""
    tokens = np.arange(2 * seq_len, dtype=np.uint8).reshape(2, seq_len) % 9
    return Small(
        kind="towers",
        inputs=tokens,
        labels=tokens[:, ::-1].copy(),
        vocab_size=9,
        identifiers=(0, 0),
        examples=(1, 1),
        puzzles=(1, 1),
        origins=[(-1, 0, 0), (-1, 1, 0)],
        config={"seed": 1},
    )


SMALL = {"arc": arc, "sudoku": sudoku, "maze": maze, "domino": domino, "towers": other}
"""The small datasets by kind."""


def broken(small: Small, row: int, at: int, token: int) -> Small:
    """The same with another token in a label."""
    labels = small.labels.copy()
    labels[row, at] = token
    return replace(small, labels=labels)
