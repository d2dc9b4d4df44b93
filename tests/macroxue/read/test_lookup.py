"""Pack: single steps by row and by run, and rows that the tables do not explain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.read.lookup import Pack
from tests.macroxue.games import play, step_rows, write_pack

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
