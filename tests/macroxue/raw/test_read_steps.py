"""Steps of other programs: their files, and the rows of their games in whatever order."""

import json
import os
import re
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

from gristmill.asset import Wanted, declared
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot
from gristmill.inbox.listing import Account
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.builders import pack as pack_builder
from gristmill.macroxue.builders.pack import PackSummary
from gristmill.macroxue.format.files import (
    Run,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
    write_metadata,
)
from gristmill.macroxue.format.rows import MOVES, Rows, pack_boards
from gristmill.macroxue.laws import game_laws, pack_laws
from gristmill.macroxue.raw import drops
from gristmill.macroxue.raw.read_steps import none_fits, read_steps
from gristmill.macroxue.raw.step_files import (
    READINGS,
    Reading,
    StepDrop,
    StepRun,
    column_states,
    find_steps,
    runs_of,
)
from gristmill.macroxue.raw.strict_parser import RunFacts
from gristmill.macroxue.rules.game import (
    board_eval,
    legal_moves,
    move,
    move_towards,
    true_ranks,
    turned,
)
from gristmill.publish.publish import publish
from gristmill.run.parts import PartStore
from gristmill.untrusted.files import REFUSE_LINKS
from tests.macroxue.games import Game, all_rows, cut, play, step_rows, write_pack
from tests.macroxue.lines import step, write_run
from tests.macroxue.step_drops import SELF_PLAY, describe, legacy, save, self_play
from tests.refusal import refusal

GAMES = [play(1, 30), play(2, 20), play(3, 25)]
IDS = [900, 7, 2**40]
TEXT = """schema = 1
kind = "steps"

[fields]
run_id = "run_id"
step_index = "step_idx"
board = "exps"
"""


def found(folder: Path) -> StepDrop:
    steps = find_steps(folder)
    assert steps is not None
    return steps


def test_a_drop_without_steps_toml_is_refused_with_the_text_to_write(tmp_path):
    drop = save(tmp_path / "pool", self_play(GAMES, IDS), shards=3)
    assert (drop / "steps.toml").read_text() == TEXT
    (drop / "steps.toml").unlink()
    refused = refusal(drops.account, drop)
    assert refused is not None and refused.endswith(
        f"mean the fields of a pack, as these do by their names:\n{TEXT}"
    )
    (drop / "steps.toml").write_text(refused.partition(":\n")[2])
    shards = [f"steps-00000{number}.npy" for number in (1, 2, 3)]
    assert drops.account(drop).taken[""] == ["steps.toml", *shards]


def test_the_files_of_a_pack_are_taken_and_all_others_named(tmp_path):
    drop = describe(write_pack(tmp_path / "pool", GAMES, shard_rows=30))
    write_run(drop / "below", "game", [step()])
    np.save(drop / "embeddings-00000.npy", np.zeros(3))
    (drop / "gristmill.toml").write_text("")
    (drop / ".hidden").touch()
    account = drops.account(drop)
    taken = ["steps.toml", "metadata.db", "valuation_types.json"]
    taken += [f"steps-0000{number}.npy" for number in range(3)]
    assert account.taken == {"": taken}
    assert drops.raw_files(drop) == [drop / name for name in taken]
    others = {"below/game.jsonl.gz", "below/game.meta.json", "embeddings-00000.npy"}
    assert set(account.left_out) == others


def test_a_column_of_steps_that_no_field_names_is_named_with_a_value(tmp_path):
    rows = self_play(GAMES, IDS)
    kind = np.dtype([*rows.dtype.descr, ("mood", "S4"), ("odd", "<f4", (2,))])
    more = np.zeros(len(rows), kind)
    for name in rows.dtype.names or ():
        more[name] = rows[name]
    more["mood"], more["odd"] = b"glad", (0.5, np.nan)
    drop = save(tmp_path / "pool", more)
    states = column_states(drop, REFUSE_LINKS, drops.account(drop), {})
    found = {each.name: (each.state, each.what) for each in states}
    assert {found[name] for name in ("run_id", "exps")} == {("read", "run_id"), ("read", "board")}
    assert found["mood"] == ("unread", 'as "glad"')
    assert found["odd"] == ("unread", "as [0.5, NaN]")
    (drop / "steps.toml").unlink()
    assert column_states(drop, REFUSE_LINKS, Account(), {}) == []


def test_runs_are_those_of_the_files_and_of_the_database_by_raw_id(tmp_path):
    rows = self_play(GAMES, IDS)
    runs = runs_of(found(save(tmp_path / "pool", rows, shards=4)))
    assert [run.raw_run for run in runs] == sorted(IDS)
    for run in runs:
        assert np.array_equal(run.rows(), rows[rows["run_id"] == run.raw_run])
        assert run.meta_name == "steps.toml"
    empty = cut(play(4, 5), 0)
    packed = runs_of(found(describe(write_pack(tmp_path / "pack", [*GAMES, empty]))))
    assert [len(run.places) for run in packed] == [30, 20, 25, 0]
    assert [run.listed.seed for run in packed if run.listed] == [1, 2, 3, 4]
    assert packed[3].steps_name == "steps.npy"


def test_pieces_grow_with_runs_where_runs_are_contiguous(tmp_path):
    rows = self_play(GAMES, IDS)
    apart = runs_of(found(save(tmp_path / "apart", rows)))
    together = rows[np.argsort(rows["run_id"], kind="stable")]
    assert [len(run.pieces) for run in runs_of(found(save(tmp_path / "run", together)))] == [1] * 3
    assert sum(len(run.pieces) for run in apart) > 40


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (TEXT.replace("1", "2"), "needs schema = 1, not 2"),
        (TEXT.replace('"steps"', '"grid"'), 'needs kind = "steps", not "grid"'),
        (TEXT.replace("kind", "form = 1\nkind"), "form: unknown key"),
        (TEXT.partition("[")[0], "needs a table [fields]"),
        (TEXT + 'move = "x"', "[fields] move: unknown field"),
        (TEXT.replace('"exps"', "3"), "[fields] board = 3: name a column in quotes"),
        (TEXT.replace("board", "seed"), "[fields] needs board"),
        (TEXT + 'ev_legal = "run_id"', "ev_legal: it says nothing without branch_evs"),
        (TEXT.replace("exps", "x"), 'board = "x": steps.npy has no such column; it has run_id, '),
        (TEXT.replace("exps", "run_id"), ""),
        (TEXT.replace("exps", "step_idx"), "the field needs 16 ranks a row, or 16 nibbles"),
        (TEXT + 'move_dir = "exps"', "the field needs one integer or name of a direction a row"),
        (TEXT + 'branch_evs = "exps"', "the field needs 4 floating-point numbers a row"),
    ],
)
def test_a_steps_toml_that_does_not_fit_is_refused(tmp_path, text, rule):
    drop = save(tmp_path / "pool", self_play(GAMES, IDS))
    (drop / "steps.toml").write_text(text)
    refused = refusal(drops.account, drop)
    assert (refused is None) if not rule else (rule in str(refused))
    if rule:
        assert str(drop / "steps.toml") in str(refused)


def test_steps_files_that_do_not_belong_together_are_refused(tmp_path):
    drop = save(tmp_path / "pool", self_play(GAMES, IDS), shards=2)
    np.save(drop / "steps.npy", np.zeros(2, SELF_PLAY))
    assert "holds both steps.npy and steps-000001.npy" in str(refusal(drops.account, drop))
    (drop / "steps.npy").unlink()
    np.save(drop / "steps-000009.npy", legacy(GAMES))
    assert "steps-000009.npy: has other columns" in str(refusal(drops.account, drop))
    with (drop / "steps-000009.npy").open("ab") as file:
        file.write(b"x")
    assert "cut short or too long" in str(refusal(drops.account, drop))
    for path in drop.glob("*.npy"):
        path.unlink()
    assert "neither steps.npy nor steps-*.npy beside it" in str(refusal(drops.account, drop))
    os.mkfifo(drop / "steps.npy")
    assert "is a pipe" in str(refusal(drops.account, drop))


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ([("a", "<u4")], "has no column run_id, but a: say which is the run_id in"),
        ([("run_id", "<u4")], "has no column board or exps, but run_id: say which is the board"),
        ([("run_id", "O"), ("board", "<u8")], "is not one of the known row layouts"),
        ("<u4", "has no column run_id, but no names: say which is"),
    ],
)
def test_files_without_runs_or_with_objects_are_no_steps(tmp_path, columns, rule):
    drop = tmp_path / "pool"
    drop.mkdir()
    with (drop / "steps.npy").open("wb") as file:
        header = {"descr": columns, "fortran_order": False, "shape": (0,)}
        np.lib.format.write_array_header_1_0(file, header)
    refused = str(refusal(drops.account, drop))
    assert f"{drop / 'steps.npy'}: " in refused and rule in refused
    (drop / "steps.toml").write_text(TEXT)
    assert refusal(drops.account, drop)


OTHER = np.dtype([("episode", "<i4"), ("t", "<i8"), ("state", "<i4", (16,)), ("action", "<i2")])


BOARDS, MOVED = (np.concatenate([getattr(g, of) for g in GAMES]) for of in ("boards", "moves"))


def other_rows(dtype: Any = OTHER, board: Any = BOARDS, moves: Any = MOVED) -> np.ndarray[Any, Any]:
    """Rows of games under names that nothing knows."""
    sizes = [len(game.boards) for game in GAMES]
    rows = np.zeros(sum(sizes), dtype)
    games, steps = np.repeat(np.arange(len(sizes)) + 7, sizes), [np.arange(n) for n in sizes]
    given = (games, np.concatenate(steps), board, moves)
    for name, values in zip(rows.dtype.names, given, strict=False):
        rows[name] = values
    return rows


def test_columns_of_other_names_are_known_by_their_values(tmp_path):
    drop = save(tmp_path / "pool", other_rows())
    assert (drop / "steps.toml").read_text().splitlines()[4:] == [
        'run_id = "episode"',
        'step_index = "t"',
        'board = "state"',
        'move_dir = "action"',
    ]
    two = np.dtype([*OTHER.descr, ("last", "<i2")])
    rows = other_rows(two)
    rows["last"] = MOVED
    assert "move_dir" not in (save(tmp_path / "two", rows) / "steps.toml").read_text()


SQUARE = np.dtype([*OTHER.descr[:2], ("state", "u1", (4, 4)), OTHER.descr[3]])
LETTERS = np.dtype([*OTHER.descr[:3], ("move", "U1")])
ONE_ON = np.dtype([*OTHER.descr[:3], ("move", "u1")])


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (other_rows(SQUARE, BOARDS.reshape(-1, 4, 4)), 'save `rows["state"].reshape(-1, 16)`'),
        (other_rows(board=(1 << BOARDS.astype(int)) * (BOARDS > 0)), "holds tiles, 2, 4, 8 and on"),
        (other_rows(LETTERS, moves=np.array([*"UDLR"])[MOVED]), "move: has D, L, R, U: moves are"),
        (other_rows(ONE_ON, moves=MOVED + 1), "move: has 4: moves are 0 to 3, or up, down,"),
    ],
)
def test_values_of_another_kind_are_named_with_what_to_save(tmp_path, rows, rule):
    (tmp_path / "pool").mkdir()
    np.save(tmp_path / "pool/steps.npy", rows)
    assert rule in str(refusal(drops.account, tmp_path / "pool"))


def test_what_is_wrong_with_a_file_is_said_before_a_steps_toml_is_written(tmp_path):
    drop = save(tmp_path / "pool", self_play(GAMES, IDS))
    (drop / "steps.toml").unlink()
    with (drop / "steps.npy").open("ab") as file:
        file.write(b"x")
    assert "steps.npy: the header says 75 rows" in str(refusal(drops.account, drop))
    np.save(drop / "steps.npy", np.zeros((75, 16), np.uint8))
    rule = "steps.npy: shape (75, 16) is not one column of rows"
    assert rule in str(refusal(drops.account, drop))
    np.save(drop / "steps.npy", np.zeros(0, SELF_PLAY))
    assert "steps.npy: holds no row of steps" in str(refusal(drops.account, describe(drop)))


def test_rows_without_an_index_count_on_by_the_numbers_of_files(tmp_path):
    rows = legacy(GAMES)
    (drop := tmp_path / "pool").mkdir()
    for number, part in enumerate(np.array_split(rows, 12)):
        np.save(drop / f"steps-{number}.npy", part)
    describe(drop)
    wanted = [rows[rows["run_id"] == run].tolist() for run in range(3)]
    assert [run.rows().tolist() for run in runs_of(found(drop))] != wanted
    table = drop / "steps.toml"
    table.write_text(table.read_text().replace('step_index = "step_index"\n', ""))
    assert [run.rows().tolist() for run in runs_of(found(drop))] == wanted
    assert found(drop).taken[1:5] == [f"steps-{name}.npy" for name in (0, 1, 10, 11)]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    drop = found(save(tmp_path / "pool", self_play(GAMES, IDS)))
    runs = runs_of(drop)
    path = tmp_path / "pool/steps.npy"
    path.write_bytes(path.read_bytes()[:-28])
    with pytest.raises(BadInput, match="changed while it was read"):
        [run.rows() for run in runs]
    with pytest.raises(BadInput, match="changed while it was read"):
        runs_of(drop)


LONG = [play(1, 60), play(2, 400), play(3, 80)]
BY_ID = [1, 0, 2]
"""The games in the order of IDS."""


def packed(drop: Path, config: PackConfig | None = None) -> tuple[Path, PackSummary]:
    """The pack of a drop, which keeps all laws."""
    out = drop.with_name(f"{drop.name}-pack")
    summary = pack(drop, out, config or PackConfig())
    assert [*pack_laws(out), *game_laws(out)] == []
    return out, summary


def notes(out: Path) -> list[tuple[Any, ...]]:
    """Kind, run and rows of each warning but that no move is valued."""
    lines = read_lines(out / "warnings.jsonl") if (out / "warnings.jsonl").exists() else []
    found = [(line["kind"], line["run_id"], line.get("rows")) for line in lines]
    return [note for note in found if note[0] != "no_legal_branch"]


@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
def test_a_pack_becomes_the_same_pack(tmp_path, layout):
    names = ["search", "tuple11", "tuple10", "plan"]
    rows = step_rows(LONG, kinds=4)
    source = write_pack(
        tmp_path / "pool", LONG, layout=layout, shard_rows=100, names=names, steps=rows
    )
    out, summary = packed(describe(source), PackConfig(layout=layout, workers=1))
    assert np.array_equal(all_rows(out), rows)
    assert read_runs(out / "metadata.db") == read_runs(source / "metadata.db")
    assert read_valuation_types(out / "valuation_types.json") == tuple(names)
    assert read_session(out / "metadata.db")["source"] == "steps of other programs"
    assert (summary.runs, summary.rows, summary.warnings) == (3, len(rows), 0)


@pytest.mark.parametrize("shards", [1, 5])
def test_self_play_gives_boards_moves_and_score_of_its_games(tmp_path, shards):
    out, _ = packed(save(tmp_path / "pool", self_play(LONG, IDS), shards))
    rows, runs = all_rows(out), read_runs(out / "metadata.db")
    traced = read_lines(out / "trace.jsonl")
    expected = step_rows(LONG)
    for run, game in enumerate(BY_ID):
        own, was = rows[rows["run_id"] == run], expected[expected["run_id"] == game][:-1]
        for column in ("step_index", "board", "board_eval", "move_dir", "max_rank"):
            assert np.array_equal(own[column], was[column])
        assert runs[run].max_score == LONG[game].score - _last_points(LONG[game])
        assert traced[run]["raw_run"] == IDS[game]
    assert not rows["ev_legal"].any() and not rows["branch_evs"].any()
    assert read_valuation_types(out / "valuation_types.json")[3] == "none"
    assert [note for note in notes(out) if note[0] == "no_next_board"] == [
        ("no_next_board", run, 1) for run in range(3)
    ]


def _last_points(game: Game) -> int:
    return int(move(game.boards[-1:], game.moves[-1:])[1][0])


def test_several_moves_that_lead_to_a_board_are_counted_and_the_first_is_taken(tmp_path):
    boards = np.zeros((2, 16), np.uint8)
    boards[0, 5] = 1
    boards[1, [1, 4]] = 1  # up and a new tile in cell 4, or left and a new tile in cell 1
    game = Game(1, boards, np.zeros(2, np.uint8), 0, 2)
    out, _ = packed(save(tmp_path / "pool", self_play([game], [0])))
    assert all_rows(out)["move_dir"].tolist() == [0]
    assert notes(out) == [("no_next_board", 0, 1), ("several_moves", 0, 1)]


@pytest.mark.parametrize("named", [True, False])
def test_legacy_rows_give_the_rows_of_their_games(tmp_path, named):
    rows = legacy(LONG)
    if not named:
        rows = repack_fields(rows[["run_id", "board"]])
    out, _ = packed(save(tmp_path / "pool", rows))
    expected, found = step_rows(LONG), all_rows(out)
    if not named:
        expected = expected[np.append(np.diff(expected["run_id"]) == 0, False)]
    for column in ("run_id", "step_index", "board", "board_eval", "move_dir", "max_rank"):
        assert np.array_equal(found[column], expected[column])
    if named:
        assert [run.max_score for run in read_runs(out / "metadata.db")] == [g.score for g in LONG]
        assert notes(out) == []


@pytest.mark.slow
@pytest.mark.parametrize("with_moves", [True, False])
def test_a_65536_that_the_game_makes_is_known_without_a_mask(tmp_path, with_moves):
    start = [15, 0, 0, 0, 15, 0, 0, 0, 1, *[0] * 7]
    boards, moves = [np.array(start, np.uint8)], list[int]()
    random = np.random.default_rng(5)
    for at in range(40):
        legal = int(legal_moves(boards[-1][None])[0])
        direction = 0 if at == 0 else int(random.choice([k for k in range(4) if legal >> k & 1]))
        board = move_towards(boards[-1][None], direction)[0][0].copy()
        board[random.choice(np.flatnonzero(board == 0))] = 1
        moves.append(direction)
        boards.append(board)
    game = Game(0, np.array(boards[:-1]), np.array(moves, np.uint8), 0, 1 << 16)
    rows = legacy([game])
    if not with_moves:
        rows = repack_fields(rows[["run_id", "step_index", "board"]])
    out, _ = packed(save(tmp_path / "pool", rows))
    found, count = all_rows(out), 40 if with_moves else 39
    assert np.array_equal(found["tile_65536_mask"], step_rows([game])["tile_65536_mask"][:count])
    assert np.array_equal(found["move_dir"], game.moves[:count])
    assert ("no_mask", 0, 40) in notes(out)
    assert read_runs(out / "metadata.db")[0].highest_tile == 1 << 16


def test_a_database_tells_seed_score_and_tile_and_its_steps_are_compared(tmp_path):
    drop = save(tmp_path / "pool", self_play(LONG, IDS))
    runs = [Run(run, -5, 60, 10**6, 4096) for run in IDS]
    write_metadata(drop / "metadata.db", runs, {})
    out, summary = packed(drop)
    assert summary.count_mismatches == 3
    listed = [(run.seed, run.max_score, run.highest_tile) for run in read_runs(out / "metadata.db")]
    assert set(listed) == {(-5, 10**6, 4096)}
    assert set(all_rows(out)["seed"].tolist()) == {2**32 - 5}
    (drop / "metadata.db").unlink()
    write_metadata(drop / "metadata.db", runs[1:], {})
    with pytest.raises(BadInput, match=r"metadata.db: has no row for run 900 of steps.npy"):
        pack(drop, tmp_path / "again", PackConfig())


def test_expected_values_have_the_legal_bits_of_numbers_where_no_column_has_them(tmp_path):
    drop = describe(write_pack(tmp_path / "pool", LONG))
    text = (drop / "steps.toml").read_text()
    rows = np.load(drop / "steps.npy")
    rows["branch_evs"][(rows["ev_legal"][:, None] >> np.arange(4)) & 1 == 0] = np.nan
    np.save(drop / "steps.npy", rows)
    (drop / "steps.toml").write_text(text.replace('ev_legal = "ev_legal"\n', ""))
    out, _ = packed(drop)
    assert np.array_equal(all_rows(out), step_rows(LONG))


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("step_index", 4, "the step is there twice"),
        ("board_eval", 12345, "board_eval is not that of the board"),
        ("move_dir", 4, "the move is not 0 up"),
        ("tile_65536_mask", 0xFFFF, "tile_65536_mask marks a cell that is not 15"),
        ("valuation_type", 3, "valuation_types.json has no name"),
        ("ev_legal", 16, "ev_legal has more than 4 bits"),
        ("branch_evs", np.nan, "ev_legal has the bit of an expected value that is NaN"),
    ],
)
def test_a_wrong_row_is_refused_by_file_row_run_and_step(tmp_path, column, value, rule):
    drop = describe(write_pack(tmp_path / "pool", LONG))
    rows = np.load(drop / "steps.npy")
    rows["ev_legal"][5], rows[column][5] = 15, value
    np.save(drop / "steps.npy", rows)
    at = 4 if column == "step_index" else 5
    with pytest.raises(BadInput, match=f"steps.npy:6: run 0 step {at}: {rule}"):
        pack(drop, tmp_path / "out", PackConfig())
    out, summary = tmp_path / "aside", PackConfig(on_error="quarantine", quarantine_share=0.5)
    assert pack(drop, out, summary).runs == 2
    (line,) = read_lines(out / "quarantine.jsonl")
    assert (line["file"], line["row"], line["steps"]) == ("steps.npy", 6, "steps.npy")
    assert [*pack_laws(out), *game_laws(out)] == []


def test_boards_that_no_move_joins_and_ranks_above_31_are_refused(tmp_path):
    rows = self_play(LONG, IDS)
    at = np.flatnonzero(rows["run_id"] == 900)[3]
    rows["exps"][at] = np.arange(16)
    with pytest.raises(BadInput, match=r"run 900 step 2: no move leads to the board of the next"):
        pack(save(tmp_path / "pool", rows), tmp_path / "out", PackConfig())
    rows["exps"][at, 0] = 32
    with pytest.raises(BadInput, match=rf"steps.npy:{at + 1}: run 900 step 3: a rank is not 0..31"):
        pack(save(tmp_path / "pool", rows), tmp_path / "again", PackConfig())


def test_a_gap_leaves_out_the_row_before_it(tmp_path):
    rows = self_play(LONG[:1], [0])
    out, _ = packed(save(tmp_path / "pool", np.delete(rows, 10)))
    assert all_rows(out)["step_index"].tolist() == [*range(9), *range(11, 59)]
    assert ("no_next_board", 0, 2) in notes(out)


@pytest.mark.slow
def test_a_killed_pack_goes_on_from_its_parts_and_workers_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pack_builder, "PART_BYTES", 1)
    drop = save(tmp_path / "pool", self_play(LONG, IDS), shards=3)
    config = PackConfig(layout="packed46", workers=2)
    pack(drop, tmp_path / "two", config)
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    read: list[int] = []

    def killed(run: StepRun, *rest: Any) -> RunFacts:
        read.append(run.raw_run)
        if len(read) == 3:
            raise KeyboardInterrupt
        return read_steps(run, *rest)

    monkeypatch.setattr(pack_builder, "read_steps", killed)
    with pytest.raises(KeyboardInterrupt):
        pack(drop, tmp_path / "torn", replace(config, workers=1), store)
    pack(drop, tmp_path / "again", replace(config, workers=1), store)
    assert read == [*sorted(IDS), max(IDS)]
    for file in (tmp_path / "two").iterdir():
        if file.name != "metadata.db":
            assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["d6_v1", "d7_v1"])
def test_real_games_come_back_from_steps(real_packs, tmp_path, name):
    source = real_packs[name]
    rows = all_rows(source)
    shutil.copytree(source, tmp_path / "pool", ignore=shutil.ignore_patterns("*.jsonl"))
    out, _ = packed(describe(tmp_path / "pool"))
    assert np.array_equal(all_rows(out), rows)
    assert read_runs(out / "metadata.db") == read_runs(source / "metadata.db")

    starts = np.flatnonzero(np.append(True, np.diff(rows["run_id"]) != 0))
    steps = np.zeros(len(rows), SELF_PLAY)
    steps["run_id"], steps["step_idx"] = rows["run_id"], rows["step_index"]
    steps["exps"] = true_ranks(rows, starts).ranks
    in_turns = steps[np.argsort(steps["step_idx"], kind="stable")]
    out, _ = packed(save(tmp_path / "played", in_turns, shards=3))
    found, kept = all_rows(out), rows[np.append(np.diff(rows["run_id"]) == 0, False)]
    for column in ("run_id", "step_index", "board", "tile_65536_mask", "board_eval"):
        assert np.array_equal(found[column], kept[column])
    several = sum(rows or 0 for kind, _, rows in notes(out) if kind == "several_moves")
    assert 0 < (found["move_dir"] != kept["move_dir"]).sum() < several < len(kept) / 100


FORMS = [Reading(*each) for each in product(*(values for values, _ in READINGS.values()))]
_WAYS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
RL = ("up", "right", "down", "left")
# The board is so full that one move alone leads to the next one.
GAME = play(1, 40, [3, 2, 1, 4, 5, 1, 2, 3, 1, 4, 3, 2, 0, 1, 0, 1])


def dropped(folder: Path, how: Reading, *fields: str) -> Path:
    """A drop of the game by a program that counts in its own order; steps.toml does not say so."""
    # From a corner, each cell in one direction, and each line of four in the other.
    (down, right), (down_line, right_line) = (_WAYS[name] for name in how.cells)
    line, at = np.divmod(np.arange(16), 4)
    row, column = (3 * (name in how.cells) for name in ("up", "left"))
    row, column = row + at * down + line * down_line, column + at * right + line * right_line
    game, cells = GAME, GAME.boards[:, 4 * row + column]
    legal = (legal_moves(game.boards)[:, None] >> np.arange(4)) & 1
    evs = np.where(legal, np.random.default_rng(1).random(legal.shape) + 1, np.nan)
    columns = {
        "board": pack_boards(cells if how.first_cell == "high" else cells[:, ::-1])[0],
        "exps": cells,
        "board_eval": board_eval(game.boards),
        "move": np.argsort(how.moves).astype(np.uint8)[game.moves],
        "move_dir": np.array(MOVES)[game.moves],
        "branch_evs": evs.astype(np.float32)[:, how.moves],
    }
    kinds = [(name, columns[name].dtype, columns[name].shape[1:]) for name in fields]
    rows = np.zeros(len(cells), [("run_id", "<u4"), *kinds])
    for name in fields:
        rows[name] = columns[name]
    return save(folder, rows)


def packed_of_reading(drop: Path) -> Rows:
    pack(drop, drop.with_name(f"{drop.name}-pack"), PackConfig())
    return all_rows(drop.with_name(f"{drop.name}-pack"))


def mended(drop: Path) -> list[str]:
    """The lines that the refusal of a drop names, which are written; none where it is read."""
    try:
        assert none_fits(drop, REFUSE_LINKS) == ""
    except BadInput as refused:
        assert "rows break the rules of 2048 as it has them read" in refused.rule
        lines, table = re.findall("`(.+?)`", refused.rule), drop / "steps.toml"
        table.write_text(table.read_text().replace("[fields]", "\n".join([*lines, "[fields]"])))
        return lines + mended(drop)
    return []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_of_the_384_forms_is_found_and_gives_the_bytes_of_the_game(tmp_path, part):
    # The name of a move tells how its board is turned. Numbers leave the images of the game.
    named, numbered = ["board", "move_dir", "branch_evs"], ["board", "move", "board_eval"]
    native = packed_of_reading(dropped(tmp_path / "named", Reading(), *named)).tobytes()
    image = packed_of_reading(dropped(tmp_path / "numbered", Reading(), *numbered))
    images = {turned(image, k).tobytes() for k in range(8)}
    for at, form in enumerate(FORMS[48 * part :][:48]):
        mended(drop := dropped(tmp_path / f"{at}", form, *named))
        assert packed_of_reading(drop).tobytes() == native, form
        if at % 7 == 0:
            mended(drop := dropped(tmp_path / f"{at}-numbered", form, *numbered))
            assert packed_of_reading(drop).tobytes() in images, form
    assert at == 47


@pytest.mark.parametrize(
    ("how", "fields", "lines"),
    [
        (Reading("low"), "board branch_evs", ['first_cell = "low"']),
        (Reading("low"), "board move", ['first_cell = "low"']),
        (Reading(directions=RL), "exps move", [f"directions = {json.dumps(RL)}"]),
        (Reading(directions=RL), "exps move_dir branch_evs", [f"directions = {json.dumps(RL)}"]),
        *(
            (Reading(cells=cells), "exps move_dir", [f"cells = {json.dumps(cells)}"])
            for cells in READINGS["cells"][0][1:]
        ),
    ],
)
def test_the_reading_that_is_named_changes_least(tmp_path, how, fields, lines):
    assert mended(dropped(tmp_path / "pool", how, *fields.split())) == lines


def test_a_build_is_refused_with_the_lines_to_write_or_says_that_none_fit(tmp_path):
    asset, root = declared()["macroxue/pack"], DataRoot(tmp_path)
    inbox = tmp_path / "drops/macroxue"

    def build(name: str) -> str:
        for path in (inbox / name, *(inbox / name).iterdir()):
            os.utime(path, (1, 1))
        try:
            return str(publish(asset.build(Wanted(asset, root, name))).folder)
        except GristmillError as error:
            return str(error)

    drop = dropped(inbox / "low", Reading("low"), "board", "branch_evs")
    assert 'fit another order of the nibbles: write `first_cell = "low"` above' in build("low")
    mended(drop)
    assert build("low") == str(tmp_path / "macroxue/packs/low")
    for name, fields in (("law", ["board", "move"]), ("row", ["board", "move", "board_eval"])):
        drop = dropped(inbox / name, Reading(), *fields)
        rows = np.load(drop / "steps.npy")
        rows[fields[-1]][7] ^= 1
        np.save(drop / "steps.npy", rows)
        text = build(name)
        assert text.count("; none of the 384 orders of directions, cells and nibbles fits") == 1
        assert ("follows" if name == "law" else "board_eval is not that of the board") in text
