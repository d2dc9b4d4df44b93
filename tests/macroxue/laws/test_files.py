"""Laws of packs, pools, values and views: what is broken is a violation that names its place."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.families import Subject
from gristmill.laws import MOST
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    ViewConfig,
    merge,
    pack,
    training_view,
    value_sidecar,
)
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.files import read_runs, read_session, write_metadata
from gristmill.macroxue.format.rows import VALUE_ROW_DTYPE, as_bytes, copied, open_steps
from gristmill.macroxue.laws import files as laws
from gristmill.macroxue.laws.files import TRACE, Finder, pack_laws, pool_laws, value_laws, view_law
from gristmill.macroxue.laws.games import game_laws
from gristmill.macroxue.read.stream import StepStream
from gristmill.macroxue.rules.game import DIRECTIONS
from tests.macroxue.annotated import write_annotations
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


POOL_GAMES = [play(seed, 60 + seed) for seed in range(9)]


@cache
def first_steps() -> np.ndarray:
    """The first step of each game, and the end."""
    return np.cumsum([0, *(len(one.boards) for one in POOL_GAMES)])


def test_a_bad_row_of_a_pool_is_named_by_run_and_step(tmp_path: Path) -> None:
    steps = step_rows(POOL_GAMES)
    steps["branch_evs"][first_steps()[3] + 4] = np.nan
    packs = [
        write_pack(tmp_path / "p", POOL_GAMES, steps=steps),
        write_pack(tmp_path / "r", POOL_GAMES),
    ]
    merge(packs, tmp_path / "q", MergeConfig(shard_rows=99))
    violations = [(v.law, v.where) for v in pool_laws(tmp_path / "q")]
    assert violations == [("row_branch_evs", f"run 3 step 4 (row {first_steps()[3] + 4})")]


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    """Three packs, two of them with session keys."""
    a = write_pack(tmp_path / "a", POOL_GAMES[:3], session={"source": "x", "depth": "[6]"})
    b = write_pack(tmp_path / "b", POOL_GAMES[3:5], session={"source": "y"})
    return [a, b, write_pack(tmp_path / "c", POOL_GAMES[5:])]


def test_a_wrong_trace_session_or_file_breaks_a_law(tmp_path: Path, packs: list[Path]) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    trace = (pool / "trace.jsonl").read_text()
    (pool / "trace.jsonl").write_text(trace.replace('"run_id":2}]', '"run_id":1}]', 1))
    assert [v.law for v in pool_laws(pool)] == ["origin"]
    (pool / "trace.jsonl").write_text(trace)
    session = read_session(pool / "metadata.db")
    runs = read_runs(pool / "metadata.db")
    (pool / "metadata.db").unlink()
    del session["b/source"]
    session["packs"] = session["packs"].replace('"first_row":0', '"first_row":1')
    write_metadata(pool / "metadata.db", runs, session)
    assert [v.law for v in pool_laws(pool)] == ["members", "session_carried"]
    (pool / "metadata.db").unlink()
    write_metadata(pool / "metadata.db", runs, session | {"packs": '[{"runs": 3}]'})
    assert [v.law for v in pool_laws(pool)] == ["members"]
    (pool / "steps.npy").write_bytes(b"no")
    assert [v.law for v in pool_laws(pool)] == ["files_open"]


def rewrite_session(pool: Path, **changes: str) -> None:
    runs = read_runs(pool / "metadata.db")
    session = read_session(pool / "metadata.db") | changes
    (pool / "metadata.db").unlink()
    write_metadata(pool / "metadata.db", runs, session)


@pytest.mark.parametrize("key", ["first_run", "first_row", "rows"])
def test_the_place_of_each_member_is_checked(tmp_path: Path, packs: list[Path], key: str) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    members = json.loads(read_session(pool / "metadata.db")["packs"])
    members[1][key] += 1
    rewrite_session(pool, packs=json.dumps(members))
    assert [(v.law, v.where) for v in pool_laws(pool)] == [("members", "pack b")]


def test_members_cover_all_runs(tmp_path: Path, packs: list[Path]) -> None:
    pool = tmp_path / "pool"
    merge(packs, pool, MergeConfig())
    members = json.loads(read_session(pool / "metadata.db")["packs"])
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


VALUES_GAMES = [play(seed, 90 - 7 * seed) for seed in range(6)]


@pytest.mark.parametrize(
    ("column", "law"),
    [
        ("step_index", "values_aligned"),
        ("run_id", "values_aligned"),
        ("reward", "values_recomputed"),
        ("reward_scaled", "values_recomputed"),
        ("return_raw", "values_recomputed"),
        ("return_scaled", "values_recomputed"),
    ],
)
def test_laws_find_every_wrong_column(tmp_path: Path, column: str, law: str) -> None:
    pack = write_pack(tmp_path / "p", VALUES_GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    path = tmp_path / "v" / "values.npy"
    octets = bytearray(path.read_bytes())
    rows = np.frombuffer(octets, VALUE_ROW_DTYPE, offset=256)
    assert rows[120]["run_id"] == 1
    rows[column][120] += 1
    path.write_bytes(octets)
    (violation,) = value_laws(tmp_path / "v", pack, recomputed=True)
    assert violation.law == law
    assert "run" in violation.where
    assert "(row 120)" in violation.where
    assert len(list(value_laws(tmp_path / "v", pack))) == (law != "values_recomputed")
    rows[column][120] -= 1
    rows["reward"][120] = np.nan
    path.write_bytes(octets)
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["values_finite"]


@pytest.mark.filterwarnings("ignore:overflow")
def test_returns_beyond_float32_name_the_settings(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", VALUES_GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig(gamma=40))
    (violation,) = value_laws(tmp_path / "v", pack)
    assert violation.law == "values_finite"
    assert violation.found.startswith("return_raw inf, beyond float32: choose a smaller gamma")


def test_laws_of_files(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", VALUES_GAMES)
    other = write_pack(tmp_path / "q", VALUES_GAMES, shard_rows=100)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    assert [v.law for v in value_laws(tmp_path / "v", other)] == ["values_shards"]
    (tmp_path / "v" / "values.json").write_text('{"gamma": 1}')
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]
    (tmp_path / "v" / "values.npy").unlink()
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]


def test_the_first_and_the_last_run_are_always_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = write_pack(tmp_path / "p", VALUES_GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    path = tmp_path / "v" / "values.npy"
    whole = path.read_bytes()
    last = sum(len(one.boards) for one in VALUES_GAMES) - 1
    for row in (0, last):
        octets = bytearray(whole)
        np.frombuffer(octets, VALUE_ROW_DTYPE, offset=256)["reward"][row] += 1
        path.write_bytes(octets)
        for runs in (2, 64):
            monkeypatch.setattr(laws, "SAMPLE_RUNS", runs)
            (violation,) = value_laws(tmp_path / "v", pack, recomputed=True)
            assert violation.law == "values_recomputed"
            assert f"(row {row})" in violation.where


def test_files_have_the_numbers_of_the_steps(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", VALUES_GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    (tmp_path / "v" / "values.npy").rename(tmp_path / "v" / "values-00000.npy")
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["values_shards"]


def test_a_pack_with_a_move_above_3_is_a_violation(tmp_path: Path) -> None:
    value_sidecar(write_pack(tmp_path / "p", VALUES_GAMES), tmp_path / "v", ValueConfig())
    steps = step_rows(VALUES_GAMES)
    steps["move_dir"][5] = 4
    changed = write_pack(tmp_path / "q", VALUES_GAMES, steps=steps)
    (violation,) = value_laws(tmp_path / "v", changed, recomputed=True)
    assert (violation.law, violation.where) == ("values_recomputed", "run 0")


VIEW_GAMES = [play(seed, 40) for seed in range(12)]


def _make(folder: Path, **settings: Any) -> Subject:
    """A view with a gap in run 1, and annotations."""
    steps, runs = step_rows(VIEW_GAMES), run_table(VIEW_GAMES)
    steps = copied(steps, np.arange(len(steps)) != 50)
    runs[1] = type(runs[1])(1, runs[1].seed, 39, runs[1].max_score, runs[1].highest_tile)
    tuples = np.flatnonzero(steps["valuation_type"])
    steps["valuation_type"][tuples] = 1 + np.arange(len(tuples)) % 2
    legal = (steps["ev_legal"][:, None] >> np.arange(4)) & 1
    steps["branch_evs"] = legal * np.random.default_rng(1).random(legal.shape).round(3)
    pack = write_pack(folder / "p", VIEW_GAMES, steps=steps, runs=runs)
    value_sidecar(pack, folder / "v", ValueConfig())
    drop = write_annotations(folder / "drop", pack)
    given = {"num_bins": 3, "search_failure_cutoff": -(10**6), **settings}
    config = ViewConfig(**given)
    training_view(pack, [folder / "v"], folder / "view", config, annotations=drop)
    return Subject(folder / "view", config=vars(config))


def _broken(subject: Subject) -> set[str]:
    return {each.law for each in view_law(subject)}


def _rows(path: Path, change: Callable[[Any], object]) -> None:
    change(np.load(path, mmap_mode="r+"))


def _sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


SPLIT = {"validation_share": 0.5, "symmetries": "all"}


@pytest.mark.parametrize("settings", [{}, SPLIT, {"zero_tolerance": 0.2}])
def test_a_view_as_it_was_built_breaks_no_law(tmp_path: Path, settings: dict[str, Any]) -> None:
    subject = _make(tmp_path, **settings)
    assert _broken(subject) == _broken(replace(subject, has_record=False)) == set()


def _edge(side: Path) -> None:
    said = json.loads((side / "tokenizer.json").read_text())
    edges = said["search"]["bin_edges"]
    edges[2] = (3 * edges[1] + edges[2]) / 4
    (side / "tokenizer.json").write_text(json.dumps(said))


def _value_of_a_gap(values: Any) -> None:
    values["reward"][np.flatnonzero(np.isnan(values["reward"]))[0]] = 4


def _put(column: str, symmetry: int, value: int) -> Callable[[Any], object]:
    def change(rows: Any) -> None:
        rows[column][np.flatnonzero(rows["run_id"] % 8 == symmetry)[2]] = value

    return change


DAMAGES: dict[str, tuple[str, Callable[[Path], object], set[str]]] = {
    "a value of a gap": (
        "values.npy", lambda file: _rows(file, _value_of_a_gap), {"values_of_gaps"},
    ),
    "a gap that is not named": (
        "metadata.db", lambda file: _sql(file, "DELETE FROM gaps"),
        {"values_finite", "values_recomputed"},
    ),
    "a gap of no run": (
        "metadata.db", lambda file: _sql(file, "INSERT INTO gaps VALUES (999, 0, 'board')"),
        {"gap_run"},
    ),
    "an edge": ("tokenizer.json", lambda file: _edge(file.parent), {"bin_edges"}),
    "an annotation": (
        "annotations-000000.npy", lambda file: _rows(file, _put("step_index", 0, 77)),
        {"annotations_aligned"},
    ),
    "a move of an image": (
        "steps.npy", lambda file: _rows(file, _put("move_dir", 5, 9)),
        {"row_move_dir", "values_recomputed"},
    ),
    "a reward of an image": (
        "values.npy", lambda file: _rows(file, _put("reward", 5, 9)), {"values_recomputed"},
    ),
}  # fmt: skip
"""What is changed, and the laws that find it in a folder without a record. `verify --rebuild` finds
what else differs from the source: another column, another board_eval, a game on the wrong side."""


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_changed_breaks_the_law_that_names_it(tmp_path: Path, name: str) -> None:
    subject = _make(tmp_path, **SPLIT)
    file, damage, laws = DAMAGES[name]
    damage(subject.folder / "train" / file)
    assert _broken(replace(subject, has_record=False)) == laws
    assert _broken(subject) == laws - {"values_recomputed"}


def test_a_link_that_can_be_written_to_is_named(tmp_path: Path) -> None:
    subject = _make(tmp_path)
    (subject.folder / "steps.npy").chmod(0o644)
    assert _broken(subject) == {"read_only"}
    (tmp_path / "p/steps.npy").unlink()
    assert _broken(subject) == set()


def test_a_game_in_both_folders_is_named(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", VIEW_GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    few = "SELECT id FROM runs WHERE id BETWEEN"
    config = ViewConfig(0, 42, f"{few} 0 AND 3", f"{few} 5 AND 7", num_bins=0)
    training_view(pack, [tmp_path / "v"], tmp_path / "view", config)
    assert list(view_law(Subject(tmp_path / "view"))) == []
    game = f"seed = {VIEW_GAMES[1].seed}, max_score = {VIEW_GAMES[1].score}"
    same = f"UPDATE runs SET {game}, highest_tile = {VIEW_GAMES[1].highest_tile} WHERE id = 5"
    _sql(tmp_path / "view/validation/metadata.db", same)
    found = [each.law for each in view_law(Subject(tmp_path / "view"))]
    assert found == ["game_on_both_sides"]
