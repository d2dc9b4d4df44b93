"""Laws of 2048: what is broken is a violation that names its place."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill import families
from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.laws import MOST
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    ValueConfig,
    ViewConfig,
    merge,
    pack,
    training_view,
    value_sidecar,
)
from gristmill.macroxue import laws as own
from gristmill.macroxue.format.files import read_runs, read_session, write_metadata
from gristmill.macroxue.format.rows import VALUE_COLUMNS, Rows, as_bytes, copied, pack_boards
from gristmill.macroxue.laws import Finder, game_laws, game_notes, value_laws, view_law
from gristmill.macroxue.read.stream import Batch, StepStream
from gristmill.macroxue.rules.game import DIRECTIONS, board_eval, legal_moves, move_towards
from gristmill.run.progress import Progress, Report
from tests.macroxue.annotated import write_annotations
from tests.macroxue.games import Game, cut, play, run_table, step_rows, write_pack
from tests.macroxue.lines import step, write_run

HIGH = [17, 16, *[0] * 13, 1]
GAMES = [play(seed, 150) for seed in range(5)] + [play(7, 150, HIGH)]
SHORT = [play(seed, 40) for seed in range(12)]
Places = list[tuple[str, str]]


def places(found: Iterator[Violation]) -> Places:
    return [(each.law, each.where) for each in found]


def pack_laws(folder: Path) -> Places:
    """What breaks the laws of a pack of games without a trace."""
    return places(own.pack_laws(folder, without=[own.TRACE]))


def change_rows(path: Path, change: Callable[[Any], object]) -> None:
    change(np.load(path, mmap_mode="r+"))


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """Two runs of five rows."""
    for name in "ab":
        write_run(tmp_path / "drop", name, [step()] * 5)
    return tmp_path / "drop"


@pytest.mark.parametrize(
    ("column", "law", "value"),
    [
        ("run_id", "runs_contiguous", 9),
        ("move_dir", "row_move_dir", 4),
        ("valuation_type", "row_valuation_type", 3),
        ("ev_legal", "row_ev_legal", 31),
        ("tile_65536_mask", "row_tile_65536_mask", 1),
        ("branch_evs", "row_branch_evs", [np.nan, 0, 0, 0]),
    ],
)
def test_laws_find_a_broken_row(drop, tmp_path, column, law, value):
    pack(drop, tmp_path / "p", PackConfig(shard_rows=6))
    assert list(own.pack_laws(tmp_path / "p")) == []
    change_rows(tmp_path / "p/steps-00001.npy", lambda rows: rows[column].__setitem__(2, value))
    run = value if column == "run_id" else 1
    assert places(own.pack_laws(tmp_path / "p")) == [(law, f"run {run} step 0 (row 8)")]


def test_the_first_broken_rows_of_all_files_are_named_and_the_others_counted(tmp_path):
    steps = step_rows(SHORT[:1])
    steps["move_dir"][2:24] = 4
    write_pack(tmp_path / "p", SHORT[:1], steps=steps, shard_rows=[20, 20])
    *named, rest = own.pack_laws(tmp_path / "p", without=[own.TRACE])
    wheres = [f"run 0 step {row} (row {row})" for row in range(2, 22)]
    assert places(iter(named)) == [("row_move_dir", where) for where in wheres]
    assert rest == Violation("row_move_dir", "further places", "2 more")


def _layout(folder: Path) -> None:
    pack(folder.parent / "drop", folder / "x", PackConfig("packed46", shard_rows=3))
    (folder / "x/steps-00001.npy").replace(folder / "steps-00001.npy")


def _digest(key: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / "trace.jsonl").read_text()
        (folder / "trace.jsonl").write_text(text.replace(f'"{key}":"', f'"{key}":"0', 1))

    return change


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (lambda folder: None, set()),
        (_layout, {"one_layout"}),
        (lambda folder: (folder / "steps-00001.npy").unlink(),
         {"row_total", "shards_numbered"}),
        (lambda folder: (folder / "steps.npy").touch(), {"files_open"}),
        (lambda folder: (folder / "trace.jsonl").unlink(), {"trace"}),
        (lambda folder: (folder / "trace.jsonl").write_text("{}\n{}\n"), {"trace"}),
        (_digest("meta_sha256"), {"trace"}),
        (_digest("steps_sha256"), {"trace"}),
        (lambda folder: sql(folder / "metadata.db", "UPDATE runs SET steps = 6 WHERE id = 1"),
         {"row_total", "trace"}),
        (lambda folder: sql(folder / "metadata.db", "UPDATE runs SET id = 7 WHERE id = 1"),
         {"run_ids", "trace"}),
    ],
)  # fmt: skip
def test_laws_of_files_and_tables(drop, tmp_path, change, laws):
    pack(drop, tmp_path / "p", PackConfig(shard_rows=3))
    change(tmp_path / "p")
    assert {law for law, _ in places(own.pack_laws(tmp_path / "p"))} == laws


@pytest.mark.parametrize(
    ("shard_rows", "third", "wrong"),
    [
        ([3, 3, 3], 2, []),
        ([4, 4, 1], 2, []),
        ([3, 2, 4], 2, [("shards_full", 1), ("shards_full", 2)]),
        ([3, 6], 2, [("shards_full", 1)]),
        ([3, 3, 3], 3, [("shards_numbered", 3)]),
        ([3, 3, 3, 0], 2, [("shards_full", 3)]),
    ],
)
def test_laws_of_shards(tmp_path, shard_rows, third, wrong):
    game = cut(SHORT[0], 9)
    folder = write_pack(tmp_path / "p", [game], shard_rows=[rows for rows in shard_rows if rows])
    if third != 2:
        (folder / "steps-00002.npy").rename(folder / f"steps-{third:05d}.npy")
    if 0 in shard_rows:
        np.save(folder / "steps-00003.npy", step_rows([]))
    assert pack_laws(folder) == [(law, f"steps-{number:05d}.npy") for law, number in wrong]


def test_padding_and_expected_values_are_checked_in_every_byte_and_direction(tmp_path):
    def laws(name: str, change: Callable[[Rows], object]) -> list[str]:
        steps = step_rows(SHORT[:1])
        change(steps)
        return [law for law, _ in pack_laws(write_pack(tmp_path / name, SHORT[:1], steps=steps))]

    for byte in (26, 27):
        set_byte = lambda rows: as_bytes(rows)[4].__setitem__(byte, 1)  # noqa: B023, E731
        assert laws(f"p{byte}", set_byte) == ["row_padding"]
    for direction in range(4):
        for legal, value in ((0, 0.5), (15, np.nan), (0, np.nan)):

            def change(rows: Rows) -> None:
                rows["ev_legal"][4], rows["branch_evs"][4] = legal, 0  # noqa: B023
                rows["branch_evs"][4, direction] = value  # noqa: B023

            assert laws(f"e{direction}{legal}{value}", change) == ["row_branch_evs"]


def test_further_violations_of_rows_and_runs_are_counted_by_law(tmp_path):
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:1]))
    finder = Finder()
    wrong = np.arange(stream.rows) < MOST + 2
    named = finder.rows(stream.batch(0, stream.rows), chosen_ev=wrong)
    assert [v.found.split()[3] for v in named] == [
        DIRECTIONS[k] for k in GAMES[0].moves[:MOST].tolist()
    ]
    for run_id in range(MOST):
        assert [v.where for v in finder.run("score", run_id, "x")] == [f"run {run_id}"]
    low = Violation("chosen_ev", "further places", "2 more")
    assert list(finder.rest()) == [low]
    assert list(finder.run("score", MOST, "x")) == []
    assert list(finder.rest()) == [low, Violation("score", "further places", "1 more")]


def _pool(folder: Path, first: Sequence[Game] = SHORT[:3], **more: Any) -> Path:
    """A pool of three packs, two of them with session keys."""
    session = {"source": "x", "depth": "[6]"}
    a = write_pack(folder / "a", first, session=session, **more)
    b = write_pack(folder / "b", SHORT[3:5], session={"source": "y"})
    merge([a, b, write_pack(folder / "c", SHORT[5:])], folder / "pool", MergeConfig(shard_rows=99))
    return folder / "pool"


def _session(pool: Path, change: Callable[[dict[str, str], list[dict[str, Any]]], object]) -> None:
    """Change the session of a pool, and its members."""
    runs, session = read_runs(pool / "metadata.db"), read_session(pool / "metadata.db")
    members = json.loads(session["packs"])
    change(session, members)
    (pool / "metadata.db").unlink()
    write_metadata(pool / "metadata.db", runs, session | {"packs": json.dumps(members)})


def _member(key: str, more: int) -> Callable[[Path], object]:
    return lambda pool: _session(
        pool, lambda _, members: members[1].update({key: members[1][key] + more})
    )


def _line(key: str, value: object) -> Callable[[Path], object]:
    def change(pool: Path) -> None:
        lines = [json.loads(text) for text in (pool / "trace.jsonl").read_text().splitlines()]
        lines[4][key] = value
        (pool / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return change


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda pool: None, []),
        *((_member(key, 1), [("members", "pack b")]) for key in ("first_run", "first_row", "rows")),
        (lambda pool: _session(pool, lambda _, members: members.pop()),
         [("members", "packs"), ("origin", "trace.jsonl")]),
        (lambda pool: _session(pool, lambda _, members: members.append({"runs": 3})),
         [("members", "packs")]),
        (lambda pool: sql(pool / "metadata.db", "DELETE FROM runs WHERE id = 11"),
         [("row_total", "metadata.db"), ("members", "pack c"), ("members", "packs"),
          ("origin", "trace.jsonl")]),
        (lambda pool: _session(pool, lambda session, _: session.pop("b/source")),
         [("session_carried", "pack b")]),
        *(
            (_line(key, value), [("origin", "trace.jsonl line 5")])
            for key, value in (("run_id", 7), ("rows", 1), ("first_row", 1), ("from", []),
                               ("from", [{"pack": "b", "run_id": 0}]))
        ),
        (lambda pool: (pool / "trace.jsonl").unlink(), "files_open"),
        (lambda pool: (pool / "steps-00000.npy").write_bytes(b"no"), "files_open"),
    ],
)  # fmt: skip
def test_a_wrong_member_session_trace_or_file_of_a_pool_breaks_a_law(tmp_path, change, found):
    pool = _pool(tmp_path)
    change(pool)
    broken = places(own.pool_laws(pool))
    assert (broken if found != "files_open" else broken[0][0]) == found
    assert found != "files_open" or len(broken) == 1


def test_a_bad_row_of_a_pool_is_named_and_many_breaches_are_counted(tmp_path):
    steps = step_rows(SHORT[:3])
    steps["branch_evs"][84] = np.nan
    assert places(own.pool_laws(_pool(tmp_path, steps=steps))) == [
        ("row_branch_evs", "run 2 step 4 (row 84)")
    ]
    steps = step_rows(GAMES[:3])
    steps["board_eval"] += 1
    *named, rest = game_laws(write_pack(tmp_path / "p", GAMES[:3], steps=steps))
    assert [v.law for v in named] == ["board_eval"] * MOST
    assert rest == Violation("board_eval", "further places", f"{len(steps) - MOST} more")


@pytest.mark.parametrize(
    ("column", "value", "law"),
    [
        ("step_index", 7, "values_aligned"),
        ("run_id", 7, "values_aligned"),
        *((column, np.nan, "values_finite") for column in VALUE_COLUMNS),
        ("reward", -np.inf, "values_finite"),
    ],
)
def test_laws_find_a_wrong_row_of_values(tmp_path, column, value, law):
    folder = write_pack(tmp_path / "p", SHORT)
    value_sidecar(folder, tmp_path / "v", ValueConfig())
    assert list(value_laws(tmp_path / "v", folder)) == []
    change_rows(tmp_path / "v/values.npy", lambda rows: rows[column].__setitem__(50, value))
    assert places(value_laws(tmp_path / "v", folder)) == [(law, "run 1 step 10 (row 50)")]
    if law == "values_finite":
        assert [v.law for v in value_laws(tmp_path / "v", folder, [1])] == ["values_of_gaps"]


@pytest.mark.filterwarnings("ignore:overflow")
def test_returns_beyond_float32_name_the_settings(tmp_path):
    folder = write_pack(tmp_path / "p", GAMES)
    value_sidecar(folder, tmp_path / "v", ValueConfig(gamma=40))
    (violation,) = value_laws(tmp_path / "v", folder)
    assert violation.law == "values_finite"
    assert violation.found.startswith("return_raw inf, beyond float32: choose a smaller gamma")


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda folder: (folder / "values.npy").rename(folder / "values-00000.npy"),
         "values_shards"),
        (lambda folder: (folder / "values.json").write_text('{"gamma": 1}'), "files_open"),
        (lambda folder: (folder / "values.json").unlink(), "files_open"),
        (lambda folder: (folder / "values.npy").unlink(), "files_open"),
    ],
)  # fmt: skip
def test_laws_of_files_of_values(tmp_path, change, law):
    folder = write_pack(tmp_path / "p", SHORT)
    value_sidecar(folder, tmp_path / "v", ValueConfig())
    other = write_pack(tmp_path / "q", SHORT, shard_rows=100)
    assert [v.law for v in value_laws(tmp_path / "v", other)] == ["values_shards"]
    change(tmp_path / "v")
    assert [v.law for v in value_laws(tmp_path / "v", folder)] == [law]


def _view(folder: Path, **settings: Any) -> Subject:
    """A view with a gap in run 1, and annotations."""
    steps, runs = step_rows(SHORT), run_table(SHORT)
    steps = copied(steps, np.arange(len(steps)) != 50)
    runs[1] = replace(runs[1], steps=39)
    tuples = np.flatnonzero(steps["valuation_type"])
    steps["valuation_type"][tuples] = 1 + np.arange(len(tuples)) % 2
    legal = (steps["ev_legal"][:, None] >> np.arange(4)) & 1
    steps["branch_evs"] = legal * np.random.default_rng(1).random(legal.shape).round(3)
    source = write_pack(folder / "p", SHORT, steps=steps, runs=runs)
    value_sidecar(source, folder / "v", ValueConfig())
    drop = write_annotations(folder / "drop", source)
    config = ViewConfig(**{"num_bins": 3, "search_failure_cutoff": -(10**6), **settings})
    training_view(source, [folder / "v"], folder / "view", config, annotations=drop)
    return Subject(folder / "view", config=vars(config))


def _broken(subject: Subject) -> set[str]:
    return {each.law for each in view_law(subject)}


SPLIT = {"validation_share": 0.5, "symmetries": "all"}


@pytest.mark.parametrize("settings", [{}, SPLIT])
def test_a_view_as_it_was_built_breaks_no_law(tmp_path, settings):
    subject = _view(tmp_path, **settings)
    assert _broken(subject) == _broken(replace(subject, has_record=False)) == set()


def _edges(change: Callable[[list[float]], object]) -> Callable[[Path], object]:
    """Change the edges of the bins of search."""

    def changed(file: Path) -> None:
        fitted = json.loads(file.read_text())
        change(fitted["search"]["bin_edges"])
        file.write_text(json.dumps(fitted))

    return changed


def _value_of_a_gap(values: Any) -> None:
    values["reward"][np.flatnonzero(np.isnan(values["reward"]))[0]] = 4


def _put(column: str, symmetry: int, value: int) -> Callable[[Path], object]:
    def change(rows: Any) -> None:
        rows[column][np.flatnonzero(rows["run_id"] % 8 == symmetry)[2]] = value

    return lambda file: change_rows(file, change)


@pytest.mark.parametrize(
    ("name", "damage", "law"),
    [
        ("values.npy", lambda file: change_rows(file, _value_of_a_gap), "values_of_gaps"),
        ("metadata.db", lambda file: sql(file, "DELETE FROM gaps"), "values_finite"),
        ("metadata.db", lambda file: sql(file, "INSERT INTO gaps VALUES (999, 0, 'board')"),
         "gap_run"),
        ("tokenizer.json", _edges(lambda edges: edges.pop()), "bin_edges"),
        ("tokenizer.json", _edges(lambda edges: edges.__setitem__(2, edges[1])), "bin_edges"),
        ("annotations-000000.npy", _put("step_index", 0, 77), "annotations_aligned"),
        ("steps.npy", _put("move_dir", 5, 9), "row_move_dir"),
    ],
)  # fmt: skip
def test_what_is_changed_in_a_view_breaks_the_law_that_names_it(tmp_path, name, damage, law):
    """`verify --rebuild` finds what else differs from the source: a reward, another board_eval."""
    subject = _view(tmp_path, **SPLIT)
    damage(subject.folder / "train" / name)
    assert _broken(replace(subject, has_record=False)) == _broken(subject) == {law}


def test_a_link_that_can_be_written_to_is_named(tmp_path):
    subject = _view(tmp_path)
    (subject.folder / "steps.npy").chmod(0o644)
    assert _broken(subject) == {"read_only"}
    (tmp_path / "p/steps.npy").unlink()
    assert _broken(subject) == set()


def test_a_game_in_both_folders_is_named(tmp_path):
    source = write_pack(tmp_path / "p", SHORT)
    value_sidecar(source, tmp_path / "v", ValueConfig())
    few = "SELECT id FROM runs WHERE id BETWEEN"
    config = ViewConfig(0, 42, f"{few} 0 AND 3", f"{few} 5 AND 7", num_bins=0)
    training_view(source, [tmp_path / "v"], tmp_path / "view", config)
    assert list(view_law(Subject(tmp_path / "view"))) == []
    game = f"seed = {SHORT[1].seed}, max_score = {SHORT[1].score}"
    same = f"UPDATE runs SET {game}, highest_tile = {SHORT[1].highest_tile} WHERE id = 5"
    sql(tmp_path / "view/validation/metadata.db", same)
    assert [v.law for v in view_law(Subject(tmp_path / "view"))] == ["game_on_both_sides"]


@cache
def first_steps() -> np.ndarray:
    """The first step of each game, and the end."""
    return np.cumsum([0, *(len(one.boards) for one in GAMES)])


@pytest.mark.parametrize("shard_rows", [0, 77])
def test_played_games_hold_every_law(tmp_path, shard_rows):
    folder = write_pack(tmp_path / "p", GAMES, shard_rows=shard_rows)
    assert list(game_laws(folder)) == []
    assert places(game_notes(folder)) == [("started_late", "run 5")]


def set_board(steps: Rows, row: int, ranks: np.ndarray) -> None:
    own_row = slice(row, row + 1)
    steps["board"][own_row], steps["tile_65536_mask"][own_row] = pack_boards(ranks[None])
    steps["board_eval"][row] = board_eval(ranks[None])[0]


def stuck(steps: Rows) -> None:
    """A move that changes nothing: down on a board whose tiles all lie there."""
    set_board(steps, first_steps()[2] + 30, np.array([*[0] * 12, 1, 2, 3, 4], np.uint8))
    steps["move_dir"][first_steps()[2] + 30] = 1


def second(put: Callable[[np.ndarray], object], moved: bool = True) -> Callable[[Rows], None]:
    """Change the second board of run 2: from the first one, moved, or as it is."""

    def change(steps: Rows) -> None:
        first = GAMES[2].boards[:1], int(GAMES[2].moves[0])
        board = (move_towards(*first)[0][0] if moved else GAMES[2].boards[1]).copy()
        put(board)
        set_board(steps, first_steps()[2] + 1, board)

    return change


def fill(tile: bool, rank: Callable[[np.ndarray], int]) -> Callable[[np.ndarray], None]:
    """Put a rank into the first cell with or without a tile."""

    def put(board: np.ndarray) -> None:
        cell = np.flatnonzero((board != 0) == tile)[0]
        assert board[cell] != rank(board)
        board[cell] = rank(board)

    return put


def add(column: str, run: int, step: int, more: int) -> Callable[[Rows], None]:
    def change(steps: Rows) -> None:
        row = first_steps()[run] + step
        steps[column][row] = int(steps[column][row]) + more

    return change


@pytest.mark.parametrize(
    ("change", "law", "run", "step_index"),
    [
        (stuck, "move_legal", 2, 30),
        (lambda steps: steps["move_dir"].put(first_steps()[2] + 5, 7), "move_legal", 2, 5),
        (second(fill(False, lambda _: 1), moved=False), "follows", 2, 1),
        (second(lambda board: None), "follows", 2, 1),
        (second(fill(False, lambda _: 3)), "follows", 2, 1),
        (second(fill(True, lambda _: 0)), "follows", 2, 1),
        (second(fill(True, lambda board: 2 if board.max() == 1 else 1)), "follows", 2, 1),
        (add("board_eval", 2, 9, 1), "board_eval", 2, 9),
        (add("board_eval", 5, 9, 1), "board_eval", 5, 9),
        (add("board_eval", 5, 0, 1), "board_eval", 5, 0),
        (add("max_rank", 2, 60, -1), "max_rank", 2, 60),
    ],
)
def test_a_breach_is_named(tmp_path, change, law, run, step_index):
    steps = step_rows(GAMES)
    change(steps)
    where = f"run {run} step {step_index} (row {first_steps()[run] + step_index})"
    assert (law, where) in places(game_laws(write_pack(tmp_path / "p", GAMES, steps=steps)))


@pytest.mark.parametrize(
    ("run", "score", "tile", "law"),
    [
        (1, 4, 1, "score"),
        (3, 0, 0.5, "highest_tile"),
        # A game that starts late may have earned points before, but not fewer.
        (5, 9999, 1, None),
        (5, -4, 1, "score"),
        # A score of 2^64-1 is -1 in the table.
        (5, None, 1, None),
    ],
)
def test_a_score_or_tile_that_is_not_earned_is_named(tmp_path, run, score, tile, law):
    table = run_table(GAMES)
    stated = -1 if score is None else table[run].max_score + score
    table[run] = replace(
        table[run], max_score=stated, highest_tile=int(table[run].highest_tile * tile)
    )
    found = list(game_laws(write_pack(tmp_path / "p", GAMES, runs=table)))
    assert [(v.law, v.where) for v in found] == ([(law, f"run {run}")] if law else [])
    if law == "score":
        assert f"sum to {GAMES[run].score}, max_score is {stated}" in found[0].found


@pytest.mark.parametrize(
    ("raw", "origin"),
    [({}, ", of d6/a b.jsonl.gz"), ({"raw_run": 900}, ", run 900 of d6/a b.jsonl.gz")],
)
def test_a_breach_names_the_raw_file_of_its_run(tmp_path, raw, origin):
    one, later = run_table(GAMES)[:2]
    table = [one, replace(later, max_score=later.max_score + 4)]
    steps = step_rows(GAMES[:2])
    steps["move_dir"][one.steps] = 7
    folder = write_pack(tmp_path / "p", GAMES[:2], runs=table, steps=steps)
    sums = {"meta_bytes": 1, "meta_sha256": "0", "steps_bytes": 1, "steps_sha256": "0"}
    files = {"drop": "d6", "meta": "a b.meta.json", "steps": "a b.jsonl.gz", **sums, **raw}
    lines = [{"run_id": run.id, "rows": run.steps, "first_row": 0, **files} for run in table]
    (folder / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = dict(places(game_laws(folder)))
    assert found["score"] == f"run 1{origin}"
    assert found["move_legal"].endswith(f"){origin}")


def test_a_cut_game_is_excused_where_the_pack_says_so(tmp_path):
    games = [GAMES[0], cut(GAMES[1], 40), GAMES[2]]
    folder = write_pack(tmp_path / "p", games)
    assert places(game_laws(folder)) == [("score", "run 1")]
    (folder / "warnings.jsonl").write_text('{"kind":"count_mismatch","run_id":1}\n')
    assert list(game_laws(folder)) == []
    # The pool carries the warning, under the run's new id.
    merge([write_pack(tmp_path / "q", GAMES[3:]), folder], tmp_path / "pool", MergeConfig())
    assert [*game_laws(tmp_path / "pool"), *own.pool_laws(tmp_path / "pool")] == []
    assert ("score_differs", "run 4") in places(game_notes(tmp_path / "pool"))


def test_a_gap_excuses_what_follows_it(tmp_path):
    steps = step_rows(GAMES[:2])[np.r_[0:50, 60 : first_steps()[2]]]
    runs = run_table(GAMES[:2])
    runs[0] = replace(runs[0], steps=runs[0].steps - 10)
    folder = write_pack(tmp_path / "p", GAMES[:2], steps=steps, runs=runs)
    assert list(game_laws(folder)) == []
    assert places(game_notes(folder)) == [("gaps", "run 0"), ("score_differs", "run 0")]


def test_a_wrong_board_eval_is_reported_once_of_packs_and_pools(tmp_path):
    steps = step_rows(GAMES)
    add("board_eval", 2, 9, 1)(steps)
    folder = write_pack(tmp_path / "p", GAMES, steps=steps)
    merge([folder, write_pack(tmp_path / "q", GAMES)], tmp_path / "pool", MergeConfig())
    for asset, each in (("macroxue/pack", folder), ("macroxue/pool", tmp_path / "pool")):
        found = dict(places(families.check(asset, Subject(each))))
        assert found["board_eval"] == f"run 2 step 9 (row {first_steps()[2] + 9})"


@pytest.mark.parametrize(
    ("source", "has_record", "is_judged"),
    [
        ("steps of other programs", True, True),
        ("macroxue self-play logs, steps of other programs", False, False),
        ("", False, True),
        ("", True, False),
    ],
)
def test_values_of_other_programs_are_those_of_legal_moves(tmp_path, source, has_record, is_judged):
    steps = step_rows(GAMES)
    boards = np.concatenate([one.boards for one in GAMES])
    none = (legal_moves(boards)[:, None] >> np.arange(4)) & 1 == 0
    own = np.flatnonzero(none.any(axis=1))
    steps["ev_legal"], steps["branch_evs"][none] = 15, -1
    steps["ev_legal"][[5, 9]] &= ~(np.uint8(1) << steps["move_dir"][[5, 9]])
    steps["ev_legal"][9] = 0
    session = {"drops/source": source} if source else {}
    pack = write_pack(tmp_path / "p", GAMES, steps=steps, session=session)
    subject = Subject(pack, has_record=has_record)
    found = [v for v in families.check("macroxue/pack", subject) if v.law.startswith("value_")]
    places = [f"run {steps['run_id'][row]} step {steps['step_index'][row]}" for row in own[:3]]
    expected = [*places, "run 0 step 5", "further places"] if is_judged else []
    assert [v.where.partition(" (")[0] for v in found] == expected
    assert not found or found[-1].found == f"{len(own) - 3} more"


def test_unknown_ranks_are_noted_not_judged_and_what_cannot_be_opened_is_a_violation(tmp_path):
    tie = np.zeros(16, np.uint8)
    tie[[1, 4, 15]] = [16, 17, 1]
    one = Game(1, tie[None], np.array([2], np.uint8), 0, 1 << 17)
    pack = write_pack(tmp_path / "p", [one])
    assert list(game_laws(pack)) == []
    assert ("ranks_unknown", "run 0 step 0 (row 0)") in places(game_notes(pack))
    for look in (game_laws, game_notes):
        assert [v.law for v in look(tmp_path)] == ["files_open"]


def test_rows_of_unknown_ranks_are_judged_by_their_mask_alone(tmp_path):
    tie = np.zeros(16, np.uint8)
    tie[[1, 4, 12, 13, 15]] = [16, 17, 1, 1, 1]
    low = np.array([1, 1, *[0] * 14], np.uint8)
    # The second board does not follow, and the first move earns more than the score.
    one = Game(1, np.stack([tie, low]), np.array([2, 2], np.uint8), 3, 1 << 17)
    assert list(game_laws(write_pack(tmp_path / "p", [one]))) == []
    steps = step_rows([one])
    steps["max_rank"][0] = 15
    short = Game(1, one.boards, one.moves, 3, 1 << 15)
    violations = list(game_laws(write_pack(tmp_path / "q", [short], steps=steps)))
    assert [v.law for v in violations] == ["max_rank", "highest_tile"]


@pytest.mark.parametrize(
    ("row", "laws"), [([16, 16, 1, 2], []), ([16, 1, 16, 2], ["move_legal"])], ids=str
)
def test_a_move_that_unknown_ranks_may_allow_is_legal(tmp_path, row, laws):
    """Four tiles without max_rank have too many choices: which of them are equal is not known."""
    board = np.array([*row, 1, 16, 2, 16, 3, 4, 5, 6, 4, 5, 6, 7], np.uint8)
    one = Game(1, board[None], np.array([2], np.uint8), 1 << 17, 1 << 17)
    steps = step_rows([one])
    steps["max_rank"] = 0
    pack = write_pack(tmp_path / "p", [one], steps=steps)
    assert [violation.law for violation in game_laws(pack)] == laws
    assert "ranks_unknown" in [violation.law for violation in game_notes(pack)]


@pytest.mark.real
def test_the_real_drops_hold_every_law(tmp_path, real_packs):
    for name, late in (("d6_v1", 0), ("d7_v1", 5)):
        assert list(own.pack_laws(real_packs[name])) == []
        assert list(game_laws(real_packs[name])) == []
        assert [v.law for v in game_notes(real_packs[name])] == ["started_late"] * late
    merge(list(real_packs.values()), tmp_path / "pool", MergeConfig(shard_rows=30_000))
    assert list(own.pool_laws(tmp_path / "pool")) == []
    assert list(game_laws(tmp_path / "pool")) == []


def test_notes_name_evs_that_a_tokenizer_stops_at(tmp_path):
    steps = step_rows(GAMES[:2])
    steps["ev_legal"][4] = 0
    steps["branch_evs"][4] = 0
    searched = (steps["valuation_type"] == 0) & (steps["ev_legal"] != 15)
    corner = int(np.flatnonzero(searched)[1])
    assert corner != 4
    steps["ev_legal"][corner] = 15
    pack = write_pack(tmp_path / "p", GAMES[:2], steps=steps)
    notes = {(v.law, v.where) for v in game_notes(pack)}
    assert ("chosen_ev", "run 0 step 4 (row 4)") in notes
    assert any(law == "search_legality" and f"(row {corner})" in where for law, where in notes)
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))


@pytest.mark.parametrize("batch_rows", [1, 1 << 17])
def test_laws_note_in_their_own_pass_what_the_notes_find(tmp_path, monkeypatch, batch_rows):
    steps = step_rows(GAMES)
    steps["ev_legal"][:] = 0
    steps["branch_evs"][:] = 0
    pack = write_pack(tmp_path / "p", GAMES, steps=steps)
    passes: list[int] = []
    batches = StepStream.batches

    def counted(self: StepStream, *, whole_runs: bool) -> Iterator[Batch]:
        passes.append(self.rows)
        return batches(self, whole_runs=whole_runs, most=batch_rows)

    monkeypatch.setattr(StepStream, "batches", counted)
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert len(passes) == 1
    assert noted == list(game_notes(pack))
    assert len([note for note in noted if note.law == "chosen_ev"]) == MOST + 1


def test_notes_name_equal_games_and_files_without_the_other_one_of_their_game(tmp_path):
    games = [*GAMES[:2], GAMES[1], GAMES[0]]
    pack = write_pack(tmp_path / "p", games)
    lines = [
        '{"drop":"d","kind":"unpaired_log","path":"a/killed.jsonl.gz"}',
        '{"drop":"d","kind":"unpaired_meta","path":"b.meta.json"}',
        '{"drop":"d","kind":"name_not_utf8","path":"c"}',
    ]
    (pack / "warnings.jsonl").write_text("\n".join(lines) + "\n")
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))
    same = "the same seed, steps, score and highest tile as run"
    assert noted == [
        Violation("repeated_game", "run 2", f"{same} 1"),
        Violation("repeated_game", "run 3", f"{same} 0"),
        Violation("unpaired_log", "a/killed.jsonl.gz", "a log without its .meta.json"),
        Violation("unpaired_meta", "b.meta.json", "a meta without its .jsonl.gz"),
    ]


def test_a_pack_without_search_rows_has_notes_which_report_their_progress(tmp_path):
    pack = write_pack(tmp_path / "p", GAMES, names=["a", "b", "c"])
    reports: list[Report] = []
    with Progress(reports.append, every=0).current():
        assert places(game_notes(pack)) == [("started_late", "run 5")]
    assert {report.stage for report in reports} == {"game notes"}
    assert reports[-1].done == reports[-1].total == StepStream(pack).rows
