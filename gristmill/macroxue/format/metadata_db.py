"""metadata.db: runs, session keys, gaps. Source: docs/formats/macroxue.md#metadata-database."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gristmill.contract import BadInput

# Every reader of packs expects these names, types and constraints
# (docs/formats/macroxue.md#runs-table).
_SCHEMA = (
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL,"
    " max_score INT NOT NULL, highest_tile INT NOT NULL)",
    "CREATE TABLE session (meta_key TEXT PRIMARY KEY, meta_value TEXT NOT NULL)",
)


def signed64(value: int) -> int:
    """An unsigned 64-bit number as SQLite stores it: 2**63+9 -> -9223372036854775799."""
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass(frozen=True)
class Run:
    """One row of `runs` (docs/formats/macroxue.md#runs-table)."""

    id: int
    seed: int
    steps: int
    max_score: int
    highest_tile: int


def write_metadata(path: Path, runs: Iterable[Run], session: Mapping[str, str]) -> None:
    """Write a new metadata.db, in journal mode DELETE and without side files."""
    if path.exists():
        raise FileExistsError(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size=4096")
        db.execute("PRAGMA journal_mode=DELETE")
        # The publisher flushes the whole folder later.
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        for statement in _SCHEMA:
            db.execute(statement)
        db.executemany(
            "INSERT INTO runs (id, seed, steps, max_score, highest_tile) VALUES (?, ?, ?, ?, ?)",
            ((run.id, run.seed, run.steps, run.max_score, run.highest_tile) for run in runs),
        )
        db.executemany(
            "INSERT INTO session (meta_key, meta_value) VALUES (?, ?)", sorted(session.items())
        )
        db.execute("COMMIT")


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database without creating any file; BadInput names it where SQLite fails."""
    if not path.is_file():
        raise BadInput(path, "there is no such file: a pack needs its metadata.db")
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise BadInput(
            wal,
            "the write-ahead log still holds rows: open the database once with sqlite3 and run"
            " PRAGMA wal_checkpoint(TRUNCATE)",
        )
    try:
        # With immutable=1 SQLite reads a database in WAL mode from a read-only mount.
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise BadInput(path, f"SQLite cannot read it: {error}") from error


def read_runs(path: Path) -> list[Run]:
    """All rows of `runs`, by ascending id."""
    with _reading(path) as db:
        rows = db.execute(
            "SELECT id, seed, steps, max_score, highest_tile FROM runs ORDER BY id"
        ).fetchall()
    for row in rows:
        if not all(isinstance(value, int) for value in row) or row[2] < 0:
            raise BadInput(path, f"run {row[0]!r} holds something other than integers: {row!r}")
    return [Run(*row) for row in rows]


def read_session(path: Path) -> dict[str, str]:
    """All keys of `session` with their values; empty where the table is missing."""
    with _reading(path) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'session'").fetchone():
            return {}
        pairs = db.execute("SELECT meta_key, meta_value FROM session ORDER BY meta_key").fetchall()
    for key, value in pairs:
        if not (isinstance(key, str) and isinstance(value, str)):
            raise BadInput(path, f"session key {key!r} holds {value!r}: both must be text")
    return dict(pairs)


def content_sha256(path: Path) -> str:
    """The sha256 of the contents of both tables, in hex; any SQLite version gives the same."""
    digest = hashlib.sha256()
    for run in read_runs(path):
        # The text that json.dumps gives, at a fraction of its time.
        numbers = f"{run.id}, {run.seed}, {run.steps}, {run.max_score}, {run.highest_tile}"
        digest.update(f'["runs", {numbers}]\n'.encode())
    for key, value in sorted(read_session(path).items()):
        digest.update(json.dumps(["session", key, value]).encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True)
class Gap:
    """A run with missing steps: a row of the table `gaps` (docs/formats/macroxue.md#gaps).

    step_index: of the first row that does not follow from the row before; of the last row where the
        score alone tells that steps are missing.
    """

    run_id: int
    step_index: int
    reason: Literal["board", "score"]


def add_gaps(path: Path, gaps: Iterable[Gap]) -> None:
    """Add the table `gaps` to a metadata.db."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE gaps (run_id INTEGER PRIMARY KEY, step_index INT NOT NULL,"
            " reason TEXT NOT NULL)"
        )
        rows = ((gap.run_id, gap.step_index, gap.reason) for gap in gaps)
        db.executemany("INSERT INTO gaps VALUES (?, ?, ?)", rows)


def read_gaps(path: Path) -> list[Gap]:
    """All rows of `gaps`, by ascending run; none where the table is missing, as in packs."""
    with _reading(path) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'gaps'").fetchone():
            return []
        rows = db.execute("SELECT run_id, step_index, reason FROM gaps ORDER BY run_id").fetchall()
    for row in rows:
        if not (type(row[0]) is int and type(row[1]) is int and row[2] in ("board", "score")):
            raise BadInput(path, f"the table gaps has the row {row!r}, which names no gap")
    return [Gap(*row) for row in rows]


def content_with_gaps_sha256(path: Path) -> str:
    """The sha256 of `content_sha256` and the rows of `gaps`, in hex. Raises BadInput as both."""
    text = json.dumps([content_sha256(path), *map(vars, read_gaps(path))])
    return hashlib.sha256(text.encode()).hexdigest()
