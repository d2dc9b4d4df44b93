"""Pack: single steps by row and by run, and rows that the tables do not explain."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.format.shards import open_steps
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.samples import write_drop
from tests.macroxue.games import play, step_rows, write_pack, write_wide_pack

GAMES = [play(seed, 20) for seed in range(2)]


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("valuation_type", 3, "valuation_type 3 is not in valuation_types.json"),
        ("run_id", 2, "run_id 2 is not in metadata.db"),
    ],
)
def test_a_row_whose_id_has_no_name_is_refused(
    tmp_path: Path, column: str, value: int, rule: str
) -> None:
    steps = step_rows(GAMES)
    steps[column][5] = value
    pack = Pack(write_pack(tmp_path / "p", GAMES, steps=steps))
    assert pack.step(4).row == 4
    with pytest.raises(BadInput, match=rule) as caught:
        pack.step(5)
    assert caught.value.row == 6


def test_rows_outside_the_pack_are_refused(tmp_path: Path) -> None:
    pack = Pack(write_pack(tmp_path / "p", GAMES))
    assert pack.step(len(pack) - 1).run.id == 1
    for row in (-1, len(pack)):
        with pytest.raises(GristmillError, match=f"has rows 0 to {len(pack) - 1}, not {row}"):
            pack.step(row)


def test_foreign_rows_are_refused_with_their_reader(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "p", GAMES)
    np.save(folder / "steps.npy", np.zeros(2, [("exps", "u1", (16,))]))
    with pytest.raises(BadInput, match="self-play v1 rows"):
        Pack(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    write_drop(root / "drop", 1273930896, 4, 90, 7, legacy=True)
    pack(root / "drop", root / "pack", PackConfig(shard_rows=50, workers=1))
    return root / "pack"


def test_steps_are_found_over_shards_and_unusual_indices(folder: Path, tmp_path: Path) -> None:
    opened = Pack(folder)
    assert len(list(folder.glob("steps-*.npy"))) > 2
    rows = np.concatenate([open_steps(file) for file in sorted(folder.glob("steps-*.npy"))])
    for at in range(0, len(rows), 7):
        step = opened.step(at)
        assert (step.run.id, step.step_index) == (rows["run_id"][at], rows["step_index"][at])
        assert step.move == rows["move_dir"][at]
        assert step.legal & 1 << step.move
        assert opened.find(step.run.id, step.step_index) == step
    wide = Pack(write_wide_pack(tmp_path / "wide", 3, ["search"]))
    assert wide.find(2, 2**32 - 2).row == 7
    for ask in (lambda: wide.find(2, 0), lambda: wide.find(3, 0), lambda: wide.step(9)):
        with pytest.raises(GristmillError, match=re.escape(str(wide.path))):
            ask()
    with pytest.raises(GristmillError, match="rows 0 to 8, not -1"):
        wide.step(-1)


def test_a_pack_whose_parts_disagree_is_refused(tmp_path: Path) -> None:
    path = write_wide_pack(tmp_path / "pack", 3, ["search"])
    with sqlite3.connect(path / "metadata.db") as db:
        db.execute("UPDATE runs SET steps = 4 WHERE id = 1")
    db.close()
    with pytest.raises(BadInput, match=r"10 steps, but the files have 9 rows"):
        Pack(path)


def test_tuple_rows_do_not_call_illegal_moves_legal(folder: Path, tmp_path: Path) -> None:
    opened = Pack(write_wide_pack(tmp_path / "pack", 1, ["search"]))
    full = opened.step(0)
    assert full.ev_legal == 15
    assert full.legal == 15
    assert full.ranks == (16,) * 16
    rows = np.load(tmp_path / "pack" / "steps.npy")
    rows["board"], rows["tile_65536_mask"] = 0x1234_2345_3456_4567, 0
    np.save(tmp_path / "pack" / "steps.npy", rows)
    stuck = Pack(tmp_path / "pack").step(0)
    assert (stuck.ev_legal, stuck.legal) == (15, 0)
