"""Boards and tables of 2048: true ranks are drawn, and a run is chosen by its number."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill import markdown
from gristmill.browse.source import Stored
from gristmill.contract import BadInput
from gristmill.macroxue import ValueConfig, ViewConfig, training_view, value_sidecar
from gristmill.macroxue.format.files import Run
from gristmill.macroxue.show import _TILES, board_svg, board_text, late_row, tables
from gristmill.svg import OVERVIEW, bitmap
from tests.drawings import is_right, texts
from tests.macroxue.games import play, run_table, step_rows, write_pack

TITLE = "run 3 · step 27,885 · → right"
LARGEST = [*range(12), 14, 15, 16, 17]


@pytest.mark.parametrize("ranks", [*play(0, 40).boards.tolist(), LARGEST])
def test_a_board_has_each_number_in_its_cell_and_fits_the_overview(ranks: list[int]) -> None:
    svg = board_svg(TITLE, ranks)
    is_right(svg, OVERVIEW)
    title, *lines = texts(svg)
    assert title == TITLE
    shown = [line[6 * k : 6 * k + 6].strip("\xa0") for line in lines for k in range(4)]
    assert shown == [str(1 << rank) if rank else "" for rank in ranks]
    colours = np.minimum(ranks, 12).reshape(4, 4)
    used, places = np.unique(colours, return_inverse=True)
    tiles = [_TILES[rank] for rank in used]
    assert bitmap(places.reshape(4, 4).tolist(), tiles, 0, 0, 1) in svg
    assert len(markdown.image("step 1,234,567", svg)) <= markdown.INLINE


def test_a_terminal_has_the_tiles_in_their_colours() -> None:
    text = board_text(LARGEST)
    numbers = [int(number) for number in text.plain.split()]
    assert numbers == [1 << rank for rank in LARGEST if rank]
    assert text.plain.count("\n") == 12
    grounds = [str(span.style).rpartition(" on ")[2] for span in text.spans]
    # Three lines a row; tiles above 2048 share a colour.
    cells = np.array(grounds).reshape(4, 3, 4)
    assert (cells == cells[:, :1]).all()
    assert len(set(grounds)) == 13
    inks = [str(span.style).split()[1] for span in text.spans[:8] + text.spans[24:28]]
    assert inks == ["#776e65"] * 3 + ["#f9f6f2"] + ["#776e65"] * 3 + ["#f9f6f2"] * 5


GAMES = [play(seed, 30) for seed in range(8)]


def _tables(asset: str, folder: Path) -> dict[str, Stored]:
    files: Any = SimpleNamespace(folder=folder, checked=lambda name: folder / name)
    return {each.name: each for each in tables(asset, folder, files)}


@pytest.mark.parametrize("shard_rows", [0, 25])
def test_each_step_has_the_board_of_its_game(tmp_path: Path, shard_rows: int) -> None:
    games = [GAMES[0], play(5, 30, start=[17, 16, 0, 0, *[0] * 10, 1, 1]), GAMES[1]]
    folder = write_pack(tmp_path / "p", games, shard_rows=shard_rows)
    steps = _tables("macroxue/pack", folder)["steps"]
    boards = [(run, at) for run, game in enumerate(games) for at in range(len(game.boards))]
    for number, (record, (run, at)) in enumerate(
        zip(steps.open().read(0, 100, 0), boards, strict=True)
    ):
        move, ranks = games[run].moves[at], games[run].boards[at].tolist()
        title = f"run {run} · step {at} · {'↑↓←→'[move]} {('up', 'down', 'left', 'right')[move]}"
        (picture,) = steps.pictures(record)
        assert (picture.title, picture.svg) == (f"step {number}", board_svg(title, ranks))
        heading, board = steps.drawn(record, {})
        assert str(heading).startswith(f"{title} · ")
        assert str(heading).endswith(("search", "tuple11", "tuple10"))
        assert board == board_text(ranks)


def test_a_step_of_another_run_is_not_drawn_and_unknown_ranks_are_as_stored(tmp_path: Path) -> None:
    steps = step_rows([play(5, 3, start=[17, 16, 0, 0, *[0] * 10, 1, 1])])
    steps["board_eval"], steps["max_rank"] = 7, 0
    stored = _tables("macroxue/pack", write_pack(tmp_path / "p", GAMES[:1], steps=steps,
        runs=[Run(0, 5, 3, 0, 1 << 17)]))["steps"]  # fmt: skip
    (record, *_) = stored.open().read(0, 1, 0)
    _, board = stored.drawn(record, {})
    assert str(board).split()[:2] == ["65536", "65536"]
    (tmp_path := tmp_path / "next").mkdir()
    steps = step_rows(GAMES[:2])
    steps["run_id"][5] = 1
    stored = _tables("macroxue/pack", write_pack(tmp_path / "p", GAMES[:2], steps=steps))["steps"]
    with pytest.raises(BadInput, match="run 0 has 30 steps by metadata"):
        stored.pictures(stored.open().read(5, 1, 0)[0])


def test_a_page_draws_a_late_step_of_the_best_run(tmp_path: Path) -> None:
    runs = run_table(GAMES)
    runs[2:4] = [Run(2, 1, 30, 10**6, 8), Run(3, 1, 30, 10**6, 8)]
    pack = write_pack(tmp_path / "p", GAMES, runs=runs)
    assert late_row(pack) == 60 + 27
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    config = ViewConfig(num_bins=0, train_query="SELECT id FROM runs WHERE id > 0 AND id < 3",
                        validation_query="SELECT 5")  # fmt: skip
    training_view(pack, [tmp_path / "v"], tmp_path / "view", config)
    assert late_row(tmp_path / "view") == 30 + 27
    empty = write_pack(tmp_path / "empty", GAMES, runs=[Run(0, 1, 0, 0, 0)])
    assert late_row(empty) == 0


def test_tables_are_chosen_by_split_and_rows_by_run_and_step(tmp_path: Path) -> None:
    steps, runs = step_rows(GAMES), run_table(GAMES)
    steps = steps[np.arange(len(steps)) != 40]
    runs[1] = Run(1, 1, 29, runs[1].max_score, runs[1].highest_tile)
    pack = write_pack(tmp_path / "p", GAMES, steps=steps, runs=runs)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    queries = ("SELECT id FROM runs WHERE id < 3", "SELECT id FROM runs WHERE id > 5")
    config = ViewConfig(0, 42, *queries, num_bins=0)
    training_view(pack, [tmp_path / "v"], tmp_path / "view", config)
    found = _tables("macroxue/training_view", tmp_path / "view")
    terms = {name: each.terms["run"] for name, each in found.items()}
    assert terms == {f"{side}/{name}": column for side in ("train", "validation")
                     for name, column in (("steps", "run_id"), ("runs", "id"))} | {
        "train/gaps": "run_id"
    }  # fmt: skip
    assert all(each.chosen == {"split": name.split("/")[0]} for name, each in found.items())
    gaps = found["train/gaps"]
    (gap,) = gaps.open().read(0, 9, 0)
    assert gap.values == {"run_id": 1, "step_index": 11, "reason": "board"}
    assert gaps.sample is not None and gaps.sample(gap) == ("1", {"split": "train"})
    of_step = found["validation/steps"].sample
    (step,) = found["validation/steps"].open().read(33, 1, 0)
    assert of_step is not None and of_step(step) == ("7", {"step": 3, "split": "validation"})
    (values,) = _tables("macroxue/values", tmp_path / "v").values()
    assert values.terms == {"run": "run_id", "step": "step_index"}
