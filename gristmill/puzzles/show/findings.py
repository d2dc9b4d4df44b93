"""The rules that one row breaks, by the functions that the laws of its kind call.

Source: `docs/formats/puzzles.md#contract`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.read.example import Example

_Row = npt.NDArray[np.int64]


def findings(kind: str | None, metadata: PuzzleDatasetMetadata, found: Example) -> list[str]:
    """What is wrong with an example: rules of the contract, then of its kind.

    kind: of the puzzle, None where it is not known.
    metadata: of the split. found: the example.

    Returns names of rules, or rules in words; empty where nothing is wrong.
    """
    broken = _contract(metadata, found)
    of_kind = _BY_KIND.get(kind or "")
    return broken if broken or of_kind is None else of_kind(found.inputs, found.labels)


def not_checked(kind: str | None, broken: bool = False) -> str | None:
    """What `findings` did not look at, in words; None where it looked at all rules of a row.

    kind: as for `findings`.
    broken: whether the row breaks the contract; default False.
    """
    if kind is None:
        return "not checked: the rules of its puzzle: without a trace its kind is not known"
    if kind not in _BY_KIND:
        return f"not checked: the rules of {kind}: Gristmill has none for this kind"
    return f"not checked: the rules of {kind}: the row breaks the contract" if broken else None


def breaks_contract(metadata: PuzzleDatasetMetadata, found: Example) -> bool:
    """Whether an example breaks the contract, so that `findings` looked no further."""
    return bool(_contract(metadata, found))


def _contract(metadata: PuzzleDatasetMetadata, found: Example) -> list[str]:
    broken = []
    for name, row in (("input", found.inputs), ("label", found.labels)):
        if len(row) != metadata.seq_len:
            broken.append(f"{name} has {len(row)} tokens, not {metadata.seq_len}")
        outside = np.flatnonzero((row < 0) | (row >= metadata.vocab_size))
        if name == "label" and metadata.ignore_label_id is not None:
            outside = outside[row[outside] != metadata.ignore_label_id]
        if len(outside):
            at = int(outside[0])
            broken.append(
                f"{name} token {int(row[at])} at position {at} is outside of 0 to"
                f" {metadata.vocab_size - 1}"
            )
    if not 0 <= found.identifier_id < metadata.num_puzzle_identifiers:
        broken.append(f"identifier {found.identifier_id} is outside of the metadata's number")
    return broken


def _arc(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.arc_grid import decode

    broken, places = [], []
    for name, row in (("input", inputs), ("label", labels)):
        try:
            places.append(decode(row))
        except ValueError as error:
            broken.append(f"{name}: {error}")
    if len({(place.row, place.column) for place in places}) > 1:
        broken.append("input and label begin at different cells")
    return broken


def _sudoku(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.sudoku.checks import described

    return list(described(inputs, labels))


def _maze(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.maze_paths import findings as broken_rules
    from gristmill.puzzles.domains.maze_paths import rule_names

    return rule_names(int(broken_rules(inputs[None], labels[None])[0]))


def _domino(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.domino_findings import findings as broken_rules
    from gristmill.puzzles.domains.domino_findings import rule_names

    return rule_names(int(broken_rules(inputs[None], labels[None])[0]))


def _grid(inputs: _Row, labels: _Row) -> list[str]:
    return [
        f"{name}: every cell is padding"
        for name, row in (("input", inputs), ("label", labels))
        if not row.any()
    ]


_BY_KIND: Final[dict[str, Callable[[_Row, _Row], list[str]]]] = {
    "arc": _arc,
    "sudoku": _sudoku,
    "maze": _maze,
    "domino": _domino,
    "grid": _grid,
}
