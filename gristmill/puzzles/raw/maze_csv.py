"""Mazes of a rated CSV file: tokens of questions and answers, with the lines that they stand on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.domains.maze_grid import CHARSET, encoded, side_of
from gristmill.puzzles.domains.maze_paths import RULES, findings, rule_names
from gristmill.puzzles.raw.rated_csv import CSV_LIMITS, RatedRows, read_rows
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.limits import Limits

_KNOWN: Final = ", ".join(repr(character) for character in CHARSET)


@dataclass(frozen=True)
class MazeRows:
    """Some mazes of a file.

    inputs, labels: tokens 1 to 5, uint8 [rows, side * side].
    lines: of the rows in the file, from 1, int64 [rows].
    """

    inputs: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int64]


def read_mazes(
    path: Path,
    *,
    length: int | None = None,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = CSV_LIMITS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[MazeRows]:
    """Yield the mazes of a file in batches.

    length: cells of every maze; None (default): those of the first one.
    """
    for rows in read_rows(path, length=length, links=links, limits=limits, see=see):
        cells = rows.questions.shape[1]
        if side_of(cells) is None:
            rule = f"a maze of {cells} cells is not square: it needs as many lines as columns"
            raise BadInput(path, rule, int(rows.lines[0]))
        inputs = _tokens(rows, "question", rows.questions)
        labels = _tokens(rows, "answer", rows.answers)
        broken = findings(inputs, labels)
        for row in np.flatnonzero(broken)[:1].tolist():
            rule = RULES[rule_names(int(broken[row]))[0]]
            raise BadInput(path, f"{rule}: correct or remove the line", int(rows.lines[row]))
        yield MazeRows(inputs, labels, rows.lines)


def _tokens(rows: RatedRows, name: str, characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    tokens = encoded(characters)
    is_unknown = tokens == 0
    if is_unknown.any():
        row = int(np.flatnonzero(is_unknown.any(axis=1))[0])
        character = chr(characters[row][is_unknown[row]][0])
        rule = f"the {name} has the character {character!r}: a cell is one of {_KNOWN}"
        raise BadInput(rows.path, rule, int(rows.lines[row]))
    return tokens
