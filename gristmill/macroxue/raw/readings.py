"""How another program counts cells and directions. Source: docs/formats/macroxue.md#readings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import permutations, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import MOVES
from gristmill.settings.fields import shown

_ORDERS: Final = tuple(permutations(MOVES))
_ACROSS: Final = ("right", "left")
_ALLOWED: Final[Mapping[str, tuple[Sequence[Any], str]]] = {
    "first_cell": (("high", "low"), '"high" or "low"'),
    "directions": (_ORDERS, "up, down, left and right, in the order of the program"),
    "cells": (
        [pair for pair in permutations(MOVES, 2) if (pair[0] in _ACROSS) != (pair[1] in _ACROSS)],
        'the directions of cells and of lines, as ["right", "down"]',
    ),
}


@dataclass(frozen=True)
class Reading:
    """How boards and directions of a drop of steps are read; the defaults are those of a pack.

    first_cell: the nibble of a 64-bit board that has the first cell, the highest or the lowest.
    directions: what the numbers 0 to 3 of moves mean, which is the order of values and their bits.
    cells: the direction in which cells follow one another, and that of the lines of four.
    """

    first_cell: str = "high"
    directions: tuple[str, ...] = MOVES
    cells: tuple[str, ...] = ("right", "down")

    @staticmethod
    def of(path: Path, table: Mapping[str, Any]) -> Reading:
        """What a steps.toml says. Raises BadInput for a value that is not one of the allowed."""
        stated = {}
        for key in KEYS & table.keys():
            value = tuple(table[key]) if isinstance(table[key], list) else table[key]
            if value not in _ALLOWED[key][0]:
                raise BadInput(path, f"{key} = {shown(table[key])}: needs {_ALLOWED[key][1]}")
            stated[key] = value
        return Reading(**stated)

    @staticmethod
    def every() -> list[Reading]:
        """All readings, 384."""
        return [Reading(*each) for each in product(*(each for each, _ in _ALLOWED.values()))]

    @cached_property
    def moves(self) -> npt.NDArray[np.uint8]:
        """The move that each number means: uint8 [4]."""
        return np.array([MOVES.index(name) for name in self.directions], np.uint8)

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """The cell in the file that each cell of the board comes from: int64 [16]."""
        line, at = np.divmod(np.arange(16), 4)
        at = at if self.cells[0] in ("right", "down") else 3 - at
        line = line if self.cells[1] in ("right", "down") else 3 - line
        return np.argsort(4 * line + at if self.cells[0] in _ACROSS else 4 * at + line)

    def changed(self, other: Reading) -> dict[str, str]:
        """The lines of steps.toml that make another reading of this one, by their keys."""
        both = {key: (getattr(self, key), getattr(other, key)) for key in _ALLOWED}
        return {key: f"{key} = {json.dumps(new)}" for key, (old, new) in both.items() if old != new}


KEYS: Final = {field.name for field in fields(Reading)}
"""The keys of a steps.toml that say how it is read."""
