"""What the augmentation of an example did, by the kind of its puzzle.

ARC says it in the identifier. Mazes number their symmetries. Sudoku and Domino draw it once more
from the seed, the source and the number of the draw.
Source: `docs/formats/puzzles.md#trace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.puzzles.format.sources import Sources
from gristmill.puzzles.read.example import Example

Parameters = dict[str, object]

SYMMETRIES: Final = (
    "as it is",
    "rotated by 90° counter-clockwise",
    "rotated by 180°",
    "rotated by 270° counter-clockwise",
    "mirrored left and right",
    "mirrored up and down",
    "transposed",
    "transposed along the other diagonal",
)
"""What the symmetries 0 to 7 do, in words."""


def parameters(
    sources: Sources, found: Example, first: npt.NDArray[np.integer] | None = None
) -> Parameters:
    """The parameters of an example's augmentation, in words; empty where there are none.

    sources: of the dataset.
    found: the example.
    first: input tokens of the first example of its group, integer [seq_len]; a Sudoku's
        draws depend on it. Default None: the example's own input.

    Raises BadInput where the parameters cannot be read from the example or its config.
    """
    of_kind = _BY_KIND.get(sources.kind)
    if of_kind is None:
        return {}
    start = found.inputs if first is None else first
    try:
        return of_kind(sources.config, found, start)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, GristmillError) as error:
        where = f"{found.split} {found.set_name}"
        rule = f"the augmentation of example {found.row} cannot be read: {error}"
        raise BadInput(where, rule) from error


def _symmetry(number: int) -> str:
    return f"{number}: {SYMMETRIES[number]}"


def _arc(config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]) -> Parameters:
    from gristmill.puzzles.domains.arc_augment import parse_id
    from gristmill.puzzles.domains.arc_grid import decode

    task, augmentation = parse_id(found.identifier)
    place = decode(found.inputs)
    first_cell = {"first cell": f"row {place.row}, column {place.column}"}
    if augmentation is None:
        return {"task": task, **first_cell}
    moved = [f"{old} to {new}" for old, new in enumerate(augmentation.colours) if str(old) != new]
    return {
        "task": task,
        "symmetry": _symmetry(augmentation.symmetry),
        "colours": ", ".join(moved) or "as they are",
        **first_cell,
    }


def _sudoku(
    config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]
) -> Parameters:
    from gristmill.puzzles.domains.sudoku.board import text_of
    from gristmill.puzzles.domains.sudoku.symmetry import augmentation

    if not found.draw:
        return {}
    question = text_of(np.clip(first, 1, 10) - 1)
    done = augmentation(int(config["seed"]), question, found.draw)
    return {
        "transposed": "yes, first" if done.transposes else "no",
        "rows from": " ".join(map(str, done.rows)),
        "columns from": " ".join(map(str, done.columns)),
        "digits 1 to 9 become": " ".join(map(str, done.digits[1:])),
    }


def _maze(config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]) -> Parameters:
    return {"symmetry": _symmetry(found.draw or 0)} if found.draw else {}


def _domino(
    config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]
) -> Parameters:
    from gristmill.puzzles.domains.domino_augment import MODULAR, augmentation

    if not found.draw:
        return {}
    source = f"{found.split}:{found.source_row}"
    how = str(config["augmentation"])
    done = augmentation(int(config["seed"]), source, found.draw, how)
    if how == MODULAR:
        return {"added to values": f"{done.offset} modulo 7"}
    return {
        "chain": "turned round" if done.is_reversed else "as it is",
        "hand": "tiles of the slots " + " ".join(map(str, done.order)),
    }


_BY_KIND: Final[dict[str, Callable[..., Parameters]]] = {
    "arc": _arc,
    "sudoku": _sudoku,
    "maze": _maze,
    "domino": _domino,
}
