"""How many bytes a build of puzzles takes on disk, by its config and the sizes of its sources.

Nothing is read: a build says so before it begins. See also `gristmill.publish.disk_space`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig

_ARC_CELLS: Final = 900
_ARC_PAIR: Final = 1000
"""Bytes of a pair in a JSON file, about; ARC-1 has 1,080, and ConceptARC 460."""
_SUDOKU_CELLS: Final = 81
_DOMINO_TOKENS: Final = 72
_SYMMETRIES: Final = 8
_ITEMSIZE: Final = {"int32": 4, "uint8": 1}
_OTHER: Final = 40
"""Bytes of an example beside its tokens: origins, in the part and in the dataset, and indices."""


def space(config: object, files: Sequence[tuple[str, int]]) -> int:
    """About the most bytes that a build has on disk at one time, 0 for a config that is not known.

    config: of the builder. files: path and size of each source file.

    The parts, whose tokens are uint8, and the dataset are there together at the end.
    """
    total = sum(size for _, size in files)
    if isinstance(config, ArcConfig):
        pairs = total // _ARC_PAIR
        return pairs * (1 + config.num_aug) * _example(2 * _ARC_CELLS, config)
    if isinstance(config, SudokuConfig):
        return _sudoku(config, files)
    if isinstance(config, MazeConfig):
        # A file has a byte for each token, and the tokens are kept while parts are made.
        examples = _SYMMETRIES if config.aug else 1
        return total + total * examples * (1 + _itemsize(config))
    if isinstance(config, GridConfig):
        # A row has two bytes at least for each cell, and is padded to the largest grid.
        examples = _SYMMETRIES if config.dihedral else 1
        return total + total * examples * (4 + _itemsize(config))
    if isinstance(config, DominoConfig):
        trained = min(config.num_games, config.subsample_size or config.num_games)
        rows = trained * (1 + config.num_aug) + config.num_games
        return rows * _example(2 * _DOMINO_TOKENS, config)
    return 0


def _sudoku(config: SudokuConfig, files: Sequence[tuple[str, int]]) -> int:
    """A line of a CSV file has two boards at least, one of a bank has one."""
    lines = {path: size // _line(path) for path, size in files}
    tested = sum(
        count for path, count in lines.items() if PurePath(path).name.lower() == "test.csv"
    )
    trained = sum(lines.values()) - tested
    taken = min(trained, config.subsample_size or trained)
    rows = taken * (1 + config.num_aug) + tested
    boards = 2 * _SUDOKU_CELLS * sum(lines.values())
    return boards + rows * _example(2 * _SUDOKU_CELLS, config)


def _line(path: str) -> int:
    return 2 * _SUDOKU_CELLS if path.lower().endswith(".csv") else _SUDOKU_CELLS


def _example(tokens: int, config: Any) -> int:
    """Bytes of an example in its part and in the dataset."""
    return tokens * (1 + _itemsize(config)) + _OTHER


def _itemsize(config: Any) -> int:
    """Bytes of a token in the dataset."""
    return _ITEMSIZE[config.dtype]
