"""The side files of packs and views: .jsonl, metadata.db, valuation_types.json, view.json.

Source: docs/formats/macroxue.md#files and the headings behind it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from gristmill.contract import BadInput, os_reason
from gristmill.macroxue.config import SIDES, EnumForm

# json.dumps would make an encoder for each line.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_text(value: Any) -> str:
    """A value as JSON without spaces; characters beyond ASCII are not escaped."""
    return _ENCODER.encode(value)


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a new .jsonl file."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(json_text(line) + "\n" for line in lines)


def iter_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a .jsonl file with their line numbers from 1, in bounded memory."""
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise BadInput(path, f"not JSON: {error}", number) from error
                if not isinstance(line, dict):
                    raise BadInput(path, "not a JSON object", number)
                yield number, line
    except OSError as error:
        raise BadInput(path, f"cannot be read: {os_reason(error)}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All objects of a .jsonl file; errors as in `iter_lines`."""
    return [line for _, line in iter_lines(path)]


def run_of(line: Mapping[str, Any]) -> int | None:
    """The `run_id` of a line of trace.jsonl or warnings.jsonl; None if it is not an integer."""
    run_id = line.get("run_id")
    return run_id if type(run_id) is int else None


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
        rule = "the write-ahead log still holds rows: open the database once with sqlite3 and run"
        raise BadInput(wal, f"{rule} PRAGMA wal_checkpoint(TRUNCATE)")
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


STANDARD_NAMES = ("search", "tuple11", "tuple10")
"""Ids 0, 1, 2 of every pack (docs/formats/macroxue.md#valuation-types)."""

MAX_NAMES = 255
"""The largest number of names in a pack (docs/formats/macroxue.md#valuation-types)."""


def write_valuation_types(path: Path, names: Sequence[str], form: EnumForm = "list") -> None:
    """Write the names of the ids as a list, or name to id, which the training collate misreads."""
    value: Any = list(names) if form == "list" else {name: i for i, name in enumerate(names)}
    path.write_bytes(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def read_valuation_types(path: Path) -> tuple[str, ...]:
    """The names by id, from any of the three forms: list, name to id, id to name.

    Raises BadInput, naming the file, where it has none of these forms, where ids have gaps or
    repeat, where names repeat, or where there are more than 255 of them.
    """
    if not path.is_file():
        rule = "there is no such file: ids of valuation_type belong to one pack; copy its file"
        raise BadInput(path, rule)
    try:
        value = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}") from error
    names = _names(path, value)
    if not names or len(set(names)) != len(names) or len(names) > MAX_NAMES:
        raise BadInput(path, f"needs 1 to {MAX_NAMES} names, each once")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise BadInput(path, f"{name!r} holds half of a surrogate pair") from error
    return tuple(names)


def _names(path: Path, value: Any) -> list[str]:
    """The names by id that the JSON value of one of the three forms gives."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    if isinstance(value, dict) and all(type(i) is int for i in value.values()):
        pairs = [(i, name) for name, i in value.items()]
    elif isinstance(value, dict) and all(
        isinstance(name, str) and key.isdecimal() and key.isascii() and len(key) < 10
        for key, name in value.items()
    ):
        pairs = [(int(key), name) for key, name in value.items()]
    else:
        raise BadInput(path, "no list of names, and no object name to id or id to name")
    ids = dict(pairs)
    if len(ids) != len(pairs):
        raise BadInput(path, "two names share an id")
    if sorted(ids) != list(range(len(ids))):
        raise BadInput(path, f"ids {sorted(ids)} are not 0, 1, 2, ... without gaps")
    return [ids[i] for i in range(len(ids))]


DESCRIPTION: Final = "view.json"
TOKENIZER: Final = "tokenizer.json"


@dataclass(frozen=True)
class Description:
    """What view.json says.

    sides: folders below the view with rows; "" alone for a view without a split.
    images: how many runs each training game has: 1, or 8 with all symmetries. With 8 a run
        is 8 times the run of the source, plus the number of the symmetry.
    """

    sides: tuple[str, ...]
    images: int
    linked: tuple[str, ...] = ()
    annotations: str = ""

    def source_run(self, run_id: int) -> tuple[int, int]:
        """The run of the source that a run of the view is of, and the symmetry of its boards."""
        return divmod(run_id, self.images)


def write_description(folder: Path, view: Description) -> None:
    """Write view.json into the folder of a view."""
    (folder / DESCRIPTION).write_text(json.dumps(vars(view), indent=2) + "\n")


def read_description(folder: Path) -> Description:
    """Read view.json of a view. Raises BadInput where it is missing or no description of a view."""
    path = folder / DESCRIPTION
    try:
        found = json.loads(path.read_bytes())
        sides, linked = tuple(map(str, found["sides"])), tuple(map(str, found["linked"]))
        view = Description(sides, found["images"], linked, str(found["annotations"]))
    except OSError as error:
        rule = f"cannot be read ({os_reason(error)}): build the view again"
        raise BadInput(path, rule) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(path, f"does not describe a view: {error!r}") from error
    if view.images not in (1, 8) or sides not in (("",), SIDES):
        rule = f"has sides {sides!r} and {view.images!r} images: build the view again"
        raise BadInput(path, rule)
    return view


def tokenizer(
    bins: int, failure_cutoff: int, edges: Mapping[str, Sequence[float]], counts: Mapping[str, Any]
) -> bytes:
    """The bytes of tokenizer.json, in the form of the trainer's second tokenizer.

    edges, counts: of each kind, by its name. The dataset is the folder of the file.
    """
    extra: dict[str, dict[str, Any]] = {kind: {} for kind in edges} | {
        "search": {"failure_cutoff": failure_cutoff}
    }
    value = {
        "tokenizer_type": "macroxue_ev_advantage_v2",
        "version": 2,
        "num_bins": bins,
        "vocab_order": ["ILLEGAL", "FAILURE", *(f"BIN_{k}" for k in range(bins)), "WINNER"],
        "valuation_types": list(edges),
        **{kind: of_kind | {"bin_edges": list(edges[kind])} for kind, of_kind in extra.items()},
        "metadata": {
            "dataset_dir": ".",
            "num_bins": bins,
            **counts,
            "search_value_scale": 1000.0,
        },
    }
    return json.dumps(value, indent=2).encode() + b"\n"
