"""Laws of pools: wrong rows, members and origins are violations that name the place."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue import MergeConfig, merge
from gristmill.macroxue.format import metadata_db
from gristmill.macroxue.laws.pool import pool_laws
from tests.macroxue.games import play, step_rows, write_pack

GAMES = [play(seed, 60 + seed) for seed in range(9)]


@cache
def first_steps() -> np.ndarray:
    """The first step of each game, and the end."""
    return np.cumsum([0, *(len(one.boards) for one in GAMES)])


def test_a_bad_row_of_a_pool_is_named_by_run_and_step(tmp_path: Path) -> None:
    steps = step_rows(GAMES)
    steps["branch_evs"][first_steps()[3] + 4] = np.nan
    packs = [write_pack(tmp_path / "p", GAMES, steps=steps), write_pack(tmp_path / "r", GAMES)]
    merge(packs, tmp_path / "q", MergeConfig(shard_rows=99))
    violations = [(v.law, v.where) for v in pool_laws(tmp_path / "q")]
    assert violations == [("row_branch_evs", f"run 3 step 4 (row {first_steps()[3] + 4})")]


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    """Three packs, two of them with session keys."""
    a = write_pack(tmp_path / "a", GAMES[:3], session={"source": "x", "depth": "[6]"})
    b = write_pack(tmp_path / "b", GAMES[3:5], session={"source": "y"})
    return [a, b, write_pack(tmp_path / "c", GAMES[5:])]


def test_a_wrong_trace_session_or_file_breaks_a_law(tmp_path: Path, packs: list[Path]) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    trace = (pool / "trace.jsonl").read_text()
    (pool / "trace.jsonl").write_text(trace.replace('"run_id":2}]', '"run_id":1}]', 1))
    assert [v.law for v in pool_laws(pool)] == ["origin"]
    (pool / "trace.jsonl").write_text(trace)
    session = metadata_db.read_session(pool / "metadata.db")
    runs = metadata_db.read_runs(pool / "metadata.db")
    (pool / "metadata.db").unlink()
    del session["b/source"]
    session["packs"] = session["packs"].replace('"first_row":0', '"first_row":1')
    metadata_db.write_metadata(pool / "metadata.db", runs, session)
    assert [v.law for v in pool_laws(pool)] == ["members", "session_carried"]
    (pool / "metadata.db").unlink()
    metadata_db.write_metadata(pool / "metadata.db", runs, session | {"packs": '[{"runs": 3}]'})
    assert [v.law for v in pool_laws(pool)] == ["members"]
    (pool / "steps.npy").write_bytes(b"no")
    assert [v.law for v in pool_laws(pool)] == ["files_open"]


def rewrite_session(pool: Path, **changes: str) -> None:
    runs = metadata_db.read_runs(pool / "metadata.db")
    session = metadata_db.read_session(pool / "metadata.db") | changes
    (pool / "metadata.db").unlink()
    metadata_db.write_metadata(pool / "metadata.db", runs, session)


@pytest.mark.parametrize("key", ["first_run", "first_row", "rows"])
def test_the_place_of_each_member_is_checked(tmp_path: Path, packs: list[Path], key: str) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    members = json.loads(metadata_db.read_session(pool / "metadata.db")["packs"])
    members[1][key] += 1
    rewrite_session(pool, packs=json.dumps(members))
    assert [(v.law, v.where) for v in pool_laws(pool)] == [("members", "pack b")]


def test_members_cover_all_runs(tmp_path: Path, packs: list[Path]) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    members = json.loads(metadata_db.read_session(pool / "metadata.db")["packs"])
    rewrite_session(pool, packs=json.dumps(members[:-1]))
    assert [v.law for v in pool_laws(pool)] == ["members", "origin"]


@pytest.mark.parametrize(
    ("key", "value"), [("run_id", 7), ("rows", 1), ("first_row", 1), ("from", [])]
)
def test_each_line_of_the_trace_is_compared_with_its_run(
    tmp_path: Path, packs: list[Path], key: str, value: object
) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    lines = [json.loads(text) for text in (pool / "trace.jsonl").read_text().splitlines()]
    lines[4][key] = value
    (pool / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [(v.law, v.where) for v in pool_laws(pool)] == [("origin", "trace.jsonl line 5")]
