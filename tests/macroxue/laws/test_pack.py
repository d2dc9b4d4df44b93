"""Laws of packs: broken rows, files and tables are violations that name the place."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.shards import open_steps
from gristmill.macroxue.laws.pack import pack_laws
from tests.macroxue.games import joined
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
