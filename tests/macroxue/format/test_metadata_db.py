"""metadata.db: schema, values, digest, reading without side effects."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format import metadata_db

RUNS = [
    metadata_db.Run(0, 272350805, 3695, 80004, 4096),
    metadata_db.Run(1, metadata_db.signed64(2**63 + 9), 0, 0, 0),
]


def test_schema_values_and_no_side_files(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    metadata_db.write_metadata(path, RUNS, {"source": "x", "drops": '["a"]'})
    assert [file.name for file in tmp_path.iterdir()] == ["metadata.db"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA page_size").fetchone() == (4096,)
        assert db.execute("PRAGMA user_version").fetchone() == (0,)
        columns = {
            table: [row[1:6] for row in db.execute(f"PRAGMA table_info({table})")]
            for table in ("runs", "session")
        }
        assert db.execute("SELECT seed FROM runs WHERE id = 1").fetchone() == (
            -9223372036854775799,
        )
    assert columns["runs"] == [
        ("id", "INTEGER", 0, None, 1),
        ("seed", "BIGINT", 1, None, 0),
        ("steps", "INT", 1, None, 0),
        ("max_score", "INT", 1, None, 0),
        ("highest_tile", "INT", 1, None, 0),
    ]
    assert columns["session"] == [
        ("meta_key", "TEXT", 0, None, 1),
        ("meta_value", "TEXT", 1, None, 0),
    ]
    assert metadata_db.read_runs(path) == RUNS
    assert metadata_db.read_session(path) == {"drops": '["a"]', "source": "x"}
    with pytest.raises(FileExistsError):
        metadata_db.write_metadata(path, RUNS, {})


def test_digest_is_of_contents_not_of_bytes(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.db", "b.db", "c.db"))
    metadata_db.write_metadata(first, RUNS, {"k": "v"})
    metadata_db.write_metadata(second, reversed(RUNS), {"k": "v"})
    with closing(sqlite3.connect(second)) as db:
        db.execute("PRAGMA user_version=7")
        db.execute("PRAGMA journal_mode=WAL")
    metadata_db.write_metadata(third, RUNS, {"k": "w"})
    assert first.read_bytes() != second.read_bytes()
    assert metadata_db.content_sha256(first) == metadata_db.content_sha256(second)
    assert metadata_db.content_sha256(first) != metadata_db.content_sha256(third)


def test_old_and_broken_databases(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    with pytest.raises(BadInput, match="no such file"):
        metadata_db.read_runs(path)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed, steps, max_score, highest_tile)"
        )
        db.execute("INSERT INTO runs VALUES (0, 1, 'many', 3, 4)")
        db.commit()
    assert metadata_db.read_session(path) == {}
    with pytest.raises(BadInput, match="run 0 holds something other"):
        metadata_db.read_runs(path)
    (tmp_path / "metadata.db-wal").write_bytes(b"x")
    with pytest.raises(BadInput, match="write-ahead log"):
        metadata_db.read_runs(path)
    (tmp_path / "metadata.db-wal").unlink()
    path.write_bytes(b"not a database, not at all" * 50)
    with pytest.raises(BadInput, match="SQLite cannot read"):
        metadata_db.read_runs(path)


def test_the_digest_is_that_of_one_json_line_a_row(tmp_path: Path) -> None:
    runs = [metadata_db.Run(0, -(2**63), 5, 2**63 - 1, 4), metadata_db.Run(1, 7, 0, 0, 2**32)]
    metadata_db.write_metadata(tmp_path / "metadata.db", runs, {"b": "ü", "a": '"'})
    lines: list[list[object]] = [
        ["runs", run.id, run.seed, run.steps, run.max_score, run.highest_tile] for run in runs
    ]
    lines += [["session", "a", '"'], ["session", "b", "ü"]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert (
        metadata_db.content_sha256(tmp_path / "metadata.db")
        == hashlib.sha256(text.encode()).hexdigest()
    )


@pytest.mark.parametrize(("steps", "allowed"), [(0, True), (-1, False)])
def test_a_run_has_no_negative_number_of_steps(tmp_path: Path, steps: int, allowed: bool) -> None:
    path = tmp_path / "metadata.db"
    metadata_db.write_metadata(path, [metadata_db.Run(0, 1, steps, 2, 4)], {})
    if allowed:
        assert metadata_db.read_runs(path)[0].steps == steps
    else:
        with pytest.raises(BadInput, match="run 0 holds"):
            metadata_db.read_runs(path)
