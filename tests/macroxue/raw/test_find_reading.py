"""Boards and directions that another program counts in its own order are found and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import MOVES, Rows, pack_boards
from gristmill.macroxue.raw.find_reading import none_fits
from gristmill.macroxue.raw.read_steps import read_steps
from gristmill.macroxue.raw.readings import Reading
from gristmill.macroxue.raw.run_facts import Names
from gristmill.macroxue.raw.step_files import find_steps, runs_of
from gristmill.macroxue.rules.board_eval import board_eval
from gristmill.macroxue.rules.moves import legal_moves
from gristmill.macroxue.rules.symmetries import turned
from gristmill.untrusted.files import REFUSE_LINKS
from tests.macroxue.games import Game, joined, play
from tests.macroxue.step_drops import save

GAMES = [play(1, 40), play(2, 40)]
COLUMNS = [
    *[("run_id", "<u4"), ("step_index", "<u4"), ("board", "<u8"), ("branch_evs", "<f4", (4,))],
    *[("board_eval", "<i4"), ("move", "u1"), ("move_dir", "U5"), ("exps", "u1", (16,))],
]
SAME = {Reading(), Reading("low", cells=("left", "up"))}
"""Cells from the last to the first are those whose first one is the lowest."""


def foreign(game: Game, run: int, how: Reading, fields: list[str]) -> np.ndarray[Any, Any]:
    """Rows of a game as a program writes them that counts in its own order."""
    rows = np.zeros(len(game.boards), COLUMNS)
    rows["run_id"], rows["step_index"] = run, np.arange(len(rows))
    cells = np.empty_like(game.boards)
    cells[:, how.order] = game.boards
    rows["board"] = pack_boards(cells if how.first_cell == "high" else cells[:, ::-1])[0]
    rows["exps"], rows["board_eval"] = cells, board_eval(game.boards)
    rows["move"], rows["move_dir"] = np.argsort(how.moves)[game.moves], np.array(MOVES)[game.moves]
    legal = (legal_moves(game.boards)[:, None] >> np.arange(4)) & 1
    evs = np.where(legal, np.random.default_rng(run).random((len(rows), 4)) + 1, np.nan)
    rows["branch_evs"] = evs[:, how.moves]
    return rows[["run_id", "step_index", *fields]]


def dropped(folder: Path, how: Reading, *fields: str) -> Path:
    """A drop of the games in another form, whose steps.toml knows nothing of it."""
    parts = [foreign(game, run, how, [*fields]) for run, game in enumerate(GAMES)]
    return save(folder, np.concatenate(parts))


def told(drop: Path, lines: str) -> Path:
    """The drop with more lines in its steps.toml."""
    table = drop / "steps.toml"
    table.write_text(table.read_text().replace("[fields]", f"{lines}\n\n[fields]"))
    return drop


def packed(drop: Path) -> Rows:
    """The rows that a drop gives."""
    rows: list[Rows] = []
    assert (steps := find_steps(drop)) is not None
    for run, each in enumerate(runs_of(steps)):
        read_steps(each, run, Names(), rows.append)
    return joined(rows)


def found(drop: Path) -> tuple[str, str]:
    """Why a drop is refused, and the lines that mend it."""
    with pytest.raises(BadInput, match="break the rules of 2048 as it has them read") as refused:
        none_fits(drop, REFUSE_LINKS)
    why, _, lines = refused.value.rule.partition(": write above [fields]:\n")
    return why, lines


def test_each_of_the_384_forms_is_found_and_gives_the_bytes_of_its_games(tmp_path: Path) -> None:
    # The name of a move tells how its board is turned.
    fields = ["board", "move_dir", "branch_evs"]
    expected = packed(dropped(tmp_path / "native", Reading(), *fields)).tobytes()
    for at, form in enumerate(Reading.every()):
        drop = dropped(tmp_path / str(at), form, *fields)
        if form not in SAME:
            told(drop, found(drop)[1])
        assert none_fits(drop, REFUSE_LINKS) == ""
        assert packed(drop).tobytes() == expected, form
    assert at == 383


@pytest.mark.parametrize(
    "fields",
    [["board", "move"], ["exps", "move"], ["board", "branch_evs"], ["board", "board_eval", "move"]],
)
def test_games_are_found_as_one_of_their_images_where_nothing_names_a_direction(
    tmp_path: Path, fields: list[str]
) -> None:
    native = packed(dropped(tmp_path / "native", Reading(), *fields))
    images = {turned(native, k).tobytes() for k in range(8)}
    forms = Reading.every()
    for at in np.random.default_rng(7).choice(len(forms), 24, replace=False).tolist():
        drop = dropped(tmp_path / str(at), forms[at], *fields)
        try:
            assert none_fits(drop, REFUSE_LINKS) == ""
        except BadInput:
            told(drop, found(drop)[1])
        assert packed(drop).tobytes() in images, forms[at]


@pytest.mark.parametrize(
    ("how", "fields", "lines"),
    [
        (Reading("low"), ["board", "branch_evs"], 'first_cell = "low"'),
        (Reading("low"), ["board", "move"], 'first_cell = "low"'),
        (
            Reading(directions=("up", "right", "down", "left")),
            ["exps", "move"],
            'directions = ["up", "right", "down", "left"]',
        ),
        (Reading(cells=("down", "right")), ["exps", "move_dir"], 'cells = ["down", "right"]'),
        (
            Reading("low", ("left", "up", "right", "down")),
            ["board", "move"],
            'directions = ["right", "down", "left", "up"]',
        ),
    ],
)
def test_the_reading_that_is_named_changes_least(
    tmp_path: Path, how: Reading, fields: list[str], lines: str
) -> None:
    drop = dropped(tmp_path / "pool", how, *fields)
    why, written = found(drop)
    assert written == lines
    assert why.startswith(("78 of 78 rows", "80 of 80 rows")) or fields[1] != "branch_evs"
