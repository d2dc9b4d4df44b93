"""Boards and directions that another program counts in its own order are found and read."""

from __future__ import annotations

import json
import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gristmill.asset import Wanted, declared
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.rows import MOVES, Rows, pack_boards
from gristmill.macroxue.raw.find_reading import none_fits
from gristmill.macroxue.raw.step_files import READINGS, Reading
from gristmill.macroxue.rules.board_eval import board_eval
from gristmill.macroxue.rules.moves import legal_moves
from gristmill.macroxue.rules.symmetries import turned
from gristmill.publish.publish import publish
from gristmill.untrusted.files import REFUSE_LINKS
from tests.macroxue.games import all_rows, play
from tests.macroxue.step_drops import save

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


def packed(drop: Path) -> Rows:
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


@pytest.mark.parametrize("part", range(8))
def test_each_of_the_384_forms_is_found_and_gives_the_bytes_of_the_game(
    tmp_path: Path, part: int
) -> None:
    # The name of a move tells how its board is turned. Numbers leave the images of the game.
    named, numbered = ["board", "move_dir", "branch_evs"], ["board", "move", "board_eval"]
    native = packed(dropped(tmp_path / "named", Reading(), *named)).tobytes()
    image = packed(dropped(tmp_path / "numbered", Reading(), *numbered))
    images = {turned(image, k).tobytes() for k in range(8)}
    for at, form in enumerate(FORMS[48 * part :][:48]):
        mended(drop := dropped(tmp_path / f"{at}", form, *named))
        assert packed(drop).tobytes() == native, form
        if at % 7 == 0:
            mended(drop := dropped(tmp_path / f"{at}-numbered", form, *numbered))
            assert packed(drop).tobytes() in images, form
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
def test_the_reading_that_is_named_changes_least(
    tmp_path: Path, how: Reading, fields: str, lines: list[str]
) -> None:
    assert mended(dropped(tmp_path / "pool", how, *fields.split())) == lines


def test_a_build_is_refused_with_the_lines_to_write_or_says_that_none_fit(tmp_path: Path) -> None:
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
