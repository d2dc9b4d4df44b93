"""Damaged packs and pools: each reader names the damaged file."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    StepDataset,
    ValueConfig,
    merge,
    pack,
    value_sidecar,
)
from gristmill.macroxue.builders.pool import pool_members
from gristmill.macroxue.format.files import read_lines, read_session, run_of
from gristmill.macroxue.laws import game_laws, pack_laws, pool_laws
from tests.macroxue.lines import step, write_run


@pytest.fixture
def pools(tmp_path: Path) -> Path:
    """Packs `a` and `b`, each with a warning, and their pool."""
    for name in "ab":
        write_run(tmp_path / "drops" / name, "g", [step()], meta={"num_moves": 5})
        pack(tmp_path / "drops" / name, tmp_path / name, PackConfig())
    merge([tmp_path / "a", tmp_path / "b"], tmp_path / "pool", MergeConfig())
    return tmp_path


@pytest.mark.parametrize("line", ["[]", "{}", "\udcff", "[" * 5000, '{"run_id":{}}'])
def test_a_damaged_trace_is_named(pools: Path, line: str) -> None:
    for name in ("a", "pool"):
        trace = pools / name / "trace.jsonl"
        trace.write_bytes(line.encode("utf-8", "surrogateescape") + b"\n")
    assert [v.law for v in pack_laws(pools / "a")] == ["trace"]
    assert list(pool_laws(pools / "pool"))
    shown = CliRunner().invoke(main, ["trace", str(pools / "a"), "0"])
    assert shown.exit_code != 0
    assert isinstance(shown.exception, SystemExit)
    assert "a" in shown.output


def test_side_files_that_are_no_files_are_named(pools: Path) -> None:
    (pools / "a" / "warnings.jsonl").unlink()
    (pools / "a" / "warnings.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"a/warnings\.jsonl: cannot be read: Is a directory"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert [v.law for v in game_laws(pools / "a")] == ["files_open"]
    (pools / "b" / "steps.npy").unlink()
    (pools / "b" / "steps.npy").mkdir()
    with pytest.raises(BadInput, match=r"b/steps\.npy: is not a file"):
        StepDataset(pools / "b")


def test_a_warning_whose_run_is_no_number_names_no_run(pools: Path) -> None:
    unusual = {"kind": "count_mismatch", "run_id": [0]}
    with (pools / "a" / "warnings.jsonl").open("a") as file:
        file.write(json.dumps(unusual) + "\n")
    list(game_laws(pools / "a"))
    merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert {**unusual, "pack": "a"} in read_lines(pools / "out" / "warnings.jsonl")
    assert [run_of({"run_id": value}) for value in (3, True, "3", None)] == [3, None, None, None]


@pytest.mark.parametrize("value", ["NULL", "X'ff'", "2.5"])
def test_a_session_value_that_is_no_text(pools: Path, value: str) -> None:
    path = pools / "a" / "metadata.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE session")
        # As older recorders made it, and looser: any value.
        db.execute("CREATE TABLE session (meta_key PRIMARY KEY, meta_value)")
        db.execute(f"INSERT INTO session VALUES ('ts', {value})")
    with pytest.raises(BadInput, match=r"a/metadata\.db: session key 'ts' holds .* must be text"):
        read_session(path)
    with pytest.raises(BadInput, match=r"a/metadata\.db: session key 'ts'"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert not (pools / "out").exists()


@pytest.mark.parametrize("sample", ["\u00b2", "1" * 5000, "x"])
def test_a_run_to_trace_is_a_number(pools: Path, sample: str) -> None:
    shown = CliRunner().invoke(main, ["trace", str(pools / "a"), sample])
    assert shown.exit_code == 2
    assert "is not a sample number" in shown.output


def test_rows_are_asked_for_by_number_and_folders_by_any_path(pools: Path) -> None:
    merge([str(pools / "a"), str(pools / "b")], str(pools / "out"), MergeConfig())  # type: ignore
    value_sidecar(str(pools / "out"), str(pools / "v"), ValueConfig())  # type: ignore[arg-type]
    data = StepDataset(pools / "out", pools / "v")
    everything = data.rows_of([0, 1])
    for wrong in (np.array([True, False]), np.array([0.5])):
        for ask in (data.rows, data.values, everything.rows):
            with pytest.raises(TypeError, match="row numbers are integers"):
                ask(wrong)  # type: ignore[arg-type]
    assert len(data.rows(np.array([]))) == 0  # type: ignore[arg-type]
    assert len(data.rows([1, 0])) == 2  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="by must be"):
        data.split(0.5, by="game")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{", "7", "[{}]", '[{"name": 1}]'])
def test_a_pool_with_damaged_members_is_named(pools: Path, text: str) -> None:
    path = pools / "pool" / "metadata.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE session SET meta_value = ? WHERE meta_key = 'packs'", (text,))
    with pytest.raises(BadInput, match=r"pool/metadata\.db: session key 'packs'"):
        pool_members(pools / "pool")
    assert [v.law for v in pool_laws(pools / "pool")] == ["members"]


def test_a_pool_that_lost_its_runs(pools: Path) -> None:
    path = pools / "pool" / "metadata.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM runs WHERE id = 1")
    assert {v.law for v in pool_laws(pools / "pool")} == {"members", "origin", "row_total"}


def test_an_origin_that_is_no_list(pools: Path) -> None:
    trace = pools / "a" / "trace.jsonl"
    trace.write_text(trace.read_text().replace("{", '{"from":7,', 1))
    with pytest.raises(BadInput, match=r"a/trace\.jsonl:1: `from` is not a list"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, text) for name in ("steps.npy", "metadata.db", "valuation_types.json")
          for text in (None, "")),
        ("valuation_types.json", "[" * 5000 + "]" * 5000),
        ("valuation_types.json", json.dumps({"9" * 5000: "search"})),
        ("valuation_types.json", '["search", "\\ud800"]'),
    ],
)  # fmt: skip
def test_a_file_that_is_missing_empty_or_damaged_is_named(
    pools: Path, name: str, text: str | None
) -> None:
    (pools / "a" / name).unlink()
    if text is not None:
        (pools / "a" / name).write_text(text)
    with pytest.raises(BadInput, match=name if text is not None or name != "steps.npy" else "a"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert not (pools / "out").exists()
    assert [v.law for v in pack_laws(pools / "a")] == ["files_open"]
    if text:
        with pytest.raises(BadInput, match=f"a/{name}"):
            StepDataset(pools / "a")
