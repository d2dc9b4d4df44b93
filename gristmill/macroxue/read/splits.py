"""Splits of runs, which never share a game. Source: docs/formats/macroxue.md#splits."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Container, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.metadata_db import Run
from gristmill.reading.sample_numbers import numbers_of

RunIds = npt.NDArray[np.uint32]


class RowSet:
    """The rows of some runs, numbered from 0; its memory grows with runs, not with rows.

    run_ids: uint32 [R], ascending.
    """

    def __init__(self, run_ids: RunIds, firsts: Sequence[int], counts: Sequence[int]) -> None:
        self.run_ids = run_ids
        self._firsts = np.array(firsts, np.int64)
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._shift = self._firsts - (self._ends - np.array(counts, np.int64))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def rows(self, numbers: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Row numbers in the pack as int64 [N].

        numbers: row numbers [N] in this set from 0, in any order.

        Raises IndexError for a number outside the set, TypeError for anything but integers.
        """
        within = numbers_of(numbers, len(self), "row", from_end=False)
        if len(within) == 0:
            return within
        runs = np.searchsorted(self._ends, within, "right")
        in_pack: npt.NDArray[np.int64] = within + self._shift[runs]
        return in_pack

    def ranges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The first row of each run in the pack and its number of rows, both int64 [R]."""
        return self._firsts, np.diff(self._ends, prepend=0)

    def all_rows(self) -> npt.NDArray[np.int64]:
        """All row numbers of the set in the pack as int64 [N], ascending."""
        return self.rows(np.arange(len(self)))


def identity(run: Run) -> tuple[int, int, int, int]:
    """The facts by which two runs are the same game: seed, steps, score, highest tile."""
    return run.seed, run.steps, run.max_score, run.highest_tile


def _fraction(run: Run, seed: int) -> float:
    """A number in [0, 1) that depends only on the game and the seed of the split."""
    text = json.dumps([seed, *identity(run)]).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "big") / (1 << 56)


def held_by_hash(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of held out runs as uint32 [R]: each run by a hash of its own facts.

    A game that is held out in one pack is held out in each pool of that pack.
    """
    return np.array([run.id for run in runs if _fraction(run, seed) < held_out], np.uint32)


def held_by_permutation(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of held out runs as uint32 [R]: the first ceil(held_out * runs) of a permutation.

    A run that is the same game as one of them is held out too.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(runs))
    chosen = {identity(runs[i]) for i in order[: math.ceil(held_out * len(runs))]}
    return np.array([run.id for run in runs if identity(run) in chosen], np.uint32)


def refuse_sharing(runs: Sequence[Run], train: RunIds, held_out: RunIds) -> None:
    """Raise ValueError, naming the first such run, where a run or game is on both sides."""
    training = {int(run_id) for run_id in train}
    held = {int(run_id) for run_id in held_out}
    games = {identity(run): run.id for run in runs if run.id in training}
    for run in runs:
        if run.id in held and identity(run) in games:
            raise ValueError(
                f"run {run.id} is held out, but run {games[identity(run)]} of the training runs is"
                " the same game: change the queries so that they exclude each other"
            )


# ATTACH could write to another file.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# Of a database file: 2 in both bytes means a write-ahead log, which a copy in memory cannot have.
_JOURNAL = slice(18, 20)


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def queried(
    octets: bytes, path: Path, known: Container[int], sql: str, params: Sequence[Any] = ()
) -> RunIds:
    """The run ids in the first column of a query as uint32 [R], ascending, each once.

    octets: of metadata.db. It is queried as a copy in memory, because SQLite opens files by their
        path, which may lead to a rebuilt pack. path: of the file, for errors.
    """
    copy = bytearray(octets)
    copy[_JOURNAL] = b"\1\1"
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(bytes(copy))
        db.set_authorizer(_authorize)
        try:
            ids = {row[0] for row in db.execute(sql, params)}
        except OverflowError as error:
            raise OverflowError(
                f"a parameter of {sql!r} is not a signed number of 64 bits: a seed of 2**63 or "
                "more is in the table as seed - 2**64"
            ) from error
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in _DAMAGED:
                raise
            rule = f"SQLite cannot read it ({error}): build the pack again, or copy it again"
            raise BadInput(path, rule) from error
    if unknown := [value for value in ids if value not in known]:
        raise ValueError(f"the query gives {unknown[0]!r}, which is not the id of a run")
    return np.array(sorted(ids), np.uint32)
