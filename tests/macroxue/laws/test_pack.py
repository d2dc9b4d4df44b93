"""Laws of packs: broken rows, files and tables are violations that name the place."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.laws import MOST
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.rows import as_bytes
from gristmill.macroxue.format.shards import open_steps
from gristmill.macroxue.laws.games import game_laws
from gristmill.macroxue.laws.pack import TRACE, Finder, pack_laws
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import DIRECTIONS
from tests.macroxue.games import joined, play, run_table, step_rows, write_pack
from tests.macroxue.lines import step, write_run

BREAKS: dict[str, Any] = {
    "run_id": ("runs_contiguous", 9),
    "move_dir": ("row_move_dir", 4),
    "valuation_type": ("row_valuation_type", 3),
    "ev_legal": ("row_ev_legal", 31),
    "tile_65536_mask": ("row_tile_65536_mask", 1),
    "branch_evs": ("row_branch_evs", [np.nan, 0, 0, 0]),
}


@pytest.mark.parametrize("column", BREAKS)
def test_laws_find_a_broken_row(tmp_path: Path, column: str) -> None:
    write_run(tmp_path / "drop", "a", [step()] * 5)
    write_run(tmp_path / "drop", "b", [step()] * 5)
    pack(tmp_path / "drop", tmp_path / "p", PackConfig(shard_rows=6))
    assert list(pack_laws(tmp_path / "p")) == []
    law, value = BREAKS[column]
    path = tmp_path / "p" / "steps-00001.npy"
    rows = joined([open_steps(path)])
    rows[column][2] = value
    np.save(path, rows)
    assert {(v.law, v.where) for v in pack_laws(tmp_path / "p")} == {
        (law, f"run {rows['run_id'][2]} step 0 (row 8)")
    }


def test_the_first_broken_rows_of_all_files_are_named_and_the_others_counted(
    tmp_path: Path,
) -> None:
    steps = step_rows([play(0, 30)])
    steps["move_dir"][2:24] = 4
    write_pack(tmp_path / "p", [], steps=steps, runs=run_table([play(0, 30)]), shard_rows=[15, 15])
    found = [(v.law, v.where) for v in pack_laws(tmp_path / "p", without=[TRACE])]
    assert found == [
        *(("row_move_dir", f"run 0 step {row} (row {row})") for row in range(2, 22)),
        ("row_move_dir", "further places"),
    ]
    *_, last = pack_laws(tmp_path / "p", without=[TRACE])
    assert last.found == "2 more"


def test_laws_of_files_and_tables(tmp_path: Path) -> None:
    write_run(tmp_path / "drop", "a", [step()] * 5)
    write_run(tmp_path / "drop", "b", [step()] * 5)
    good = tmp_path / "good"
    pack(tmp_path / "drop", good, PackConfig(shard_rows=3))

    def laws(change: Any) -> set[str]:
        shutil.rmtree(tmp_path / "p", ignore_errors=True)
        shutil.copytree(good, tmp_path / "p")
        change(tmp_path / "p")
        return {v.law for v in pack_laws(tmp_path / "p")}

    def sql(statement: str) -> Any:
        def change(path: Path) -> None:
            with closing(sqlite3.connect(path / "metadata.db")) as db:
                db.execute(statement)
                db.commit()

        return change

    def layout(path: Path) -> None:
        config = PackConfig("packed46", shard_rows=3)
        pack(tmp_path / "drop", path / "x", config)
        (path / "x" / "steps-00001.npy").replace(path / "steps-00001.npy")

    assert laws(lambda path: None) == set()
    assert laws(layout) == {"one_layout"}
    assert laws(lambda path: (path / "steps-00001.npy").unlink()) >= {"row_total"}
    assert laws(lambda path: (path / "steps.npy").touch()) == {"files_open"}
    assert laws(lambda path: (path / "trace.jsonl").unlink()) == {"trace"}
    assert laws(lambda path: (path / "trace.jsonl").write_text("{}\n{}\n")) == {"trace"}
    assert laws(sql("UPDATE runs SET steps = steps + 1 WHERE id = 1")) == {"row_total", "trace"}
    assert laws(sql("UPDATE runs SET id = 7 WHERE id = 1")) == {"run_ids", "trace"}


def test_laws_of_shards(tmp_path: Path) -> None:
    steps = step_rows([play(0, 9)])
    runs = run_table([play(0, 9)])

    def laws(shard_rows: list[int], *names: str) -> list[tuple[str, str]]:
        folder = tmp_path / "p"
        shutil.rmtree(folder, ignore_errors=True)
        write_pack(folder, [], steps=steps, runs=runs, shard_rows=shard_rows)
        for number, name in enumerate(names):
            (folder / f"steps-{number:05d}.npy").rename(folder / name)
        return [(v.law, v.where) for v in pack_laws(folder) if v.law != "trace"]

    assert laws([3, 3, 3]) == laws([4, 4, 1]) == []
    assert laws([3, 2, 4]) == [
        ("shards_full", "steps-00001.npy"),
        ("shards_full", "steps-00002.npy"),
    ]
    assert laws([3, 6]) == [("shards_full", "steps-00001.npy")]
    gap = ["steps-00000.npy", "steps-00001.npy", "steps-00003.npy"]
    assert laws([3, 3, 3], *gap) == [("shards_numbered", "steps-00003.npy")]
    empty = tmp_path / "p" / "steps-00003.npy"
    laws([3, 3, 3])
    np.save(empty, steps[:0])
    assert [(v.law, v.where) for v in pack_laws(tmp_path / "p") if v.law != "trace"] == [
        ("shards_full", "steps-00003.npy")
    ]


def test_padding_and_expected_values_are_checked_in_every_byte_and_direction(
    tmp_path: Path,
) -> None:
    games = [play(0, 9)]
    for byte in (26, 27):
        steps = step_rows(games)
        as_bytes(steps)[4, byte] = 1
        pack_folder = write_pack(tmp_path / f"p{byte}", games, steps=steps)
        assert [v.law for v in pack_laws(pack_folder)] == ["row_padding", "trace"]
    for direction in range(4):
        for legal, value in ((0, 0.5), (15, np.nan), (0, np.nan)):
            steps = step_rows(games)
            steps["ev_legal"][4], steps["branch_evs"][4] = legal, 0
            steps["branch_evs"][4, direction] = value
            pack_folder = write_pack(tmp_path / f"e{direction}{legal}{value}", games, steps=steps)
            assert [v.law for v in pack_laws(pack_folder)] == ["row_branch_evs", "trace"]


@pytest.mark.parametrize("key", ["meta_sha256", "steps_sha256"])
def test_a_trace_has_both_digests(tmp_path: Path, key: str) -> None:
    write_run(tmp_path / "drop", "a", [step()])
    pack(tmp_path / "drop", tmp_path / "p", PackConfig())
    path = tmp_path / "p" / "trace.jsonl"
    line = json.loads(path.read_text())
    path.write_text(json.dumps(line | {key: line[key][:-1]}) + "\n")
    assert [(v.law, v.where) for v in pack_laws(tmp_path / "p")] == [
        ("trace", "trace.jsonl line 1")
    ]


HIGH = [17, 16, *[0] * 13, 1]


GAMES = [play(seed, 150) for seed in range(5)] + [play(7, 150, HIGH)]


def test_many_breaches_are_counted(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:3])
    steps["board_eval"] += 1
    violations = list(game_laws(write_pack(tmp_path / "p", GAMES[:3], steps=steps)))
    assert [v.law for v in violations] == ["board_eval"] * (MOST + 1)
    assert violations[-1].found == f"{len(steps) - MOST} more"


def test_further_violations_of_rows_and_runs_are_counted_by_law(tmp_path: Path) -> None:
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:1]))
    finder = Finder()
    wrong = np.arange(stream.rows) < MOST + 2
    texts = [v.found for v in finder.rows("low", stream.batch(0, stream.rows), wrong, "{move}")]
    assert texts == [DIRECTIONS[move] for move in GAMES[0].moves[:MOST].tolist()]
    for run_id in range(MOST):
        assert [v.where for v in finder.run("score", run_id, "x")] == [f"run {run_id}"]
    assert [(v.law, v.where, v.found) for v in finder.rest()] == [
        ("low", "further places", "2 more")
    ]
    assert list(finder.run("score", MOST, "x")) == []
    assert [(v.law, v.found) for v in finder.rest()] == [("low", "2 more"), ("score", "1 more")]
