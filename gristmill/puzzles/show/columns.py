"""The arrays of puzzle datasets, for people who look for a field."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.families import Column

_COLUMNS = (
    Column("inputs", "int32[seq_len]", "tokens of the question, one row an example"),
    Column("labels", "int32[seq_len]", "tokens of the answer"),
    Column("puzzle_identifiers", "int32", "identifier of each puzzle, a place in identifiers.json"),
    Column("puzzle_indices", "int32", "first example of each puzzle, and the end of the last"),
    Column("group_indices", "int32", "first puzzle of each group, and the end of the last"),
)


def columns(asset: str) -> Sequence[Column]:
    """Returns the arrays of an asset's artifacts, without the name of the set before each.

    asset: its key, as `puzzles/maze`.
    """
    return _COLUMNS
