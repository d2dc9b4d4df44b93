"""The side files of packs: written bytes, every form that is read, and what is refused."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.files import (
    Run,
    content_sha256,
    iter_lines,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
    signed64,
    write_lines,
    write_metadata,
    write_valuation_types,
)


def test_lines_are_compact_utf_8_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [{"a": [1, 2.5, None], "ü": "é\n"}, {}]
    write_lines(path, lines)
    assert path.read_bytes() == '{"a":[1,2.5,null],"ü":"é\\n"}\n{}\n'.encode()
    assert read_lines(path) == lines
    assert list(iter_lines(path)) == [(1, lines[0]), (2, lines[1])]
    with pytest.raises(FileExistsError):
        write_lines(path, [])


def test_lines_before_a_bad_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\r\n{"a":2}\n{"a":')
    lines = iter_lines(path)
    assert [next(lines), next(lines)] == [(1, {"a": 1}), (2, {"a": 2})]
    with pytest.raises(BadInput, match=r"x\.jsonl:3: not JSON"):
        next(lines)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"[1]", "not a JSON object"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: bytes, rule: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" + text + b"\n{}\n")
    with pytest.raises(BadInput, match=rule) as caught:
        read_lines(path)
    assert (caught.value.file, caught.value.row) == (str(path), 2)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"x\.jsonl: cannot be read: No such file"):
        read_lines(tmp_path / "x.jsonl")


RUNS = [
    Run(0, 272350805, 3695, 80004, 4096),
    Run(1, signed64(2**63 + 9), 0, 0, 0),
]


def test_schema_values_and_no_side_files(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    write_metadata(path, RUNS, {"source": "x", "drops": '["a"]'})
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
    assert columns == {
        "runs": [
            ("id", "INTEGER", 0, None, 1),
            ("seed", "BIGINT", 1, None, 0),
            *((name, "INT", 1, None, 0) for name in ("steps", "max_score", "highest_tile")),
        ],
        "session": [("meta_key", "TEXT", 0, None, 1), ("meta_value", "TEXT", 1, None, 0)],
    }
    assert read_runs(path) == RUNS
    assert read_session(path) == {"drops": '["a"]', "source": "x"}
    with pytest.raises(FileExistsError):
        write_metadata(path, RUNS, {})


def test_digest_is_of_contents_not_of_bytes(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.db", "b.db", "c.db"))
    write_metadata(first, RUNS, {"k": "v"})
    write_metadata(second, reversed(RUNS), {"k": "v"})
    with closing(sqlite3.connect(second)) as db:
        db.execute("PRAGMA user_version=7")
        db.execute("PRAGMA journal_mode=WAL")
    write_metadata(third, RUNS, {"k": "w"})
    assert first.read_bytes() != second.read_bytes()
    assert content_sha256(first) == content_sha256(second)
    assert content_sha256(first) != content_sha256(third)


def test_old_and_broken_databases(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    with pytest.raises(BadInput, match="no such file"):
        read_runs(path)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed, steps, max_score, highest_tile)"
        )
        db.execute("INSERT INTO runs VALUES (0, 1, 'many', 3, 4)")
        db.commit()
    assert read_session(path) == {}
    with pytest.raises(BadInput, match="run 0 holds something other"):
        read_runs(path)
    (tmp_path / "metadata.db-wal").write_bytes(b"x")
    with pytest.raises(BadInput, match="write-ahead log"):
        read_runs(path)
    (tmp_path / "metadata.db-wal").unlink()
    path.write_bytes(b"not a database, not at all" * 50)
    with pytest.raises(BadInput, match="SQLite cannot read"):
        read_runs(path)


def test_the_digest_is_that_of_one_json_line_a_row(tmp_path: Path) -> None:
    runs = [Run(0, -(2**63), 5, 2**63 - 1, 4), Run(1, 7, 0, 0, 2**32)]
    write_metadata(tmp_path / "metadata.db", runs, {"b": "ü", "a": '"'})
    lines: list[list[object]] = [
        ["runs", run.id, run.seed, run.steps, run.max_score, run.highest_tile] for run in runs
    ]
    lines += [["session", "a", '"'], ["session", "b", "ü"]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert content_sha256(tmp_path / "metadata.db") == hashlib.sha256(text.encode()).hexdigest()


def test_a_run_has_no_negative_number_of_steps(tmp_path: Path) -> None:
    write_metadata(tmp_path / "metadata.db", [Run(0, 1, -1, 2, 4)], {})
    with pytest.raises(BadInput, match="run 0 holds"):
        read_runs(tmp_path / "metadata.db")


NAMES = ("search", "tuple11", "tuple10", "line_plan", "")


def test_written_forms(tmp_path: Path) -> None:
    path = tmp_path / "valuation_types.json"
    write_valuation_types(path, NAMES[:3])
    assert path.read_bytes() == b'[\n  "search",\n  "tuple11",\n  "tuple10"\n]\n'
    write_valuation_types(path, NAMES[:3], "object")
    assert path.read_bytes() == b'{\n  "search": 0,\n  "tuple11": 1,\n  "tuple10": 2\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        '["search", "tuple11", "tuple10", "line_plan", ""]',
        '{"tuple10": 2, "search": 0, "": 4, "line_plan": 3, "tuple11": 1}',
        '{"1": "tuple11", "0": "search", "2": "tuple10", "4": "", "3": "line_plan"}',
    ],
)
def test_every_form_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    assert read_valuation_types(path) == NAMES


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "3", '["a", "a"]', '["a", 1]'),
        '{"a": 0, "b": 2}',
        '{"a": 0, "b": 0}',
        '{"a": 0, "a": 1}',
        '{"a": true, "b": 0}',
        '{"0": "a", "00": "b"}',
        '{"0": "a", "2": "b"}',
        '{"0000000000": "a"}',
        '{"0": "a", "1": 1}',
        "[" + ",".join(f'"{i}"' for i in range(256)) + "]",
    ],
)
def test_broken_enums_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"valuation_types\.json"):
        read_valuation_types(path)
    with pytest.raises(BadInput, match="no such file"):
        read_valuation_types(tmp_path / "absent.json")
