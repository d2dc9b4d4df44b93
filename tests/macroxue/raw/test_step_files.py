"""Drops of steps: which files they have, their columns, their runs, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.raw import drops
from gristmill.macroxue.raw.step_files import StepDrop, find_steps, runs_of
from tests.macroxue.games import cut, play, write_pack
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


def test_a_drop_without_steps_toml_is_refused_with_the_text_to_write(tmp_path: Path) -> None:
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


def test_the_files_of_a_pack_are_taken_and_all_others_named(tmp_path: Path) -> None:
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


def test_runs_are_those_of_the_files_and_of_the_database_by_raw_id(tmp_path: Path) -> None:
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


def test_pieces_grow_with_runs_where_runs_are_contiguous(tmp_path: Path) -> None:
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
def test_a_steps_toml_that_does_not_fit_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    drop = save(tmp_path / "pool", self_play(GAMES, IDS))
    (drop / "steps.toml").write_text(text)
    refused = refusal(drops.account, drop)
    assert (refused is None) if not rule else (rule in str(refused))
    if rule:
        assert str(drop / "steps.toml") in str(refused)


def test_steps_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
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
def test_files_without_runs_or_with_objects_are_no_steps(
    tmp_path: Path, columns: list[tuple[str, str]] | str, rule: str
) -> None:
    drop = tmp_path / "pool"
    drop.mkdir()
    with (drop / "steps.npy").open("wb") as file:
        header = {"descr": columns, "fortran_order": False, "shape": (0,)}
        np.lib.format.write_array_header_1_0(file, header)
    refused = str(refusal(drops.account, drop))
    assert f"{drop / 'steps.npy'}: " in refused and rule in refused
    (drop / "steps.toml").write_text(TEXT)
    assert refusal(drops.account, drop)


def test_what_is_wrong_with_a_file_is_said_before_a_steps_toml_is_written(tmp_path: Path) -> None:
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


def test_rows_without_an_index_count_on_by_the_numbers_of_files(tmp_path: Path) -> None:
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


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    drop = found(save(tmp_path / "pool", self_play(GAMES, IDS)))
    runs = runs_of(drop)
    path = tmp_path / "pool/steps.npy"
    path.write_bytes(path.read_bytes()[:-28])
    with pytest.raises(BadInput, match="changed while it was read"):
        [run.rows() for run in runs]
    with pytest.raises(BadInput, match="changed while it was read"):
        runs_of(drop)
