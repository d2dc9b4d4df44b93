"""The eight symmetries are a group, and images obey the rules of the game."""

from __future__ import annotations

from gristmill.macroxue.format.rows import decode_boards
from gristmill.macroxue.rules.board_eval import board_eval
from gristmill.macroxue.rules.moves import move
from gristmill.macroxue.rules.symmetries import BRANCHES, CELLS, COUNT, turned
from tests.macroxue.games import play, step_rows

ROWS = step_rows([play(3, 60)])


def test_the_symmetries_are_a_group_on_cells_and_moves_alike() -> None:
    cells = {tuple(each): k for k, each in enumerate(CELLS.tolist())}
    assert len(cells) == COUNT
    for one in range(COUNT):
        products = set()
        for other in range(COUNT):
            both = cells[tuple(CELLS[one][CELLS[other]].tolist())]
            products.add(both)
            assert BRANCHES[both].tolist() == BRANCHES[one][BRANCHES[other]].tolist()
        assert products == set(range(COUNT))


def test_turns_take_the_moves_that_the_trainer_takes() -> None:
    assert BRANCHES[:5].tolist() == [
        [0, 1, 2, 3], [2, 3, 1, 0], [1, 0, 3, 2], [3, 2, 0, 1], [0, 1, 3, 2],
    ]  # fmt: skip


def test_a_move_of_an_image_is_the_image_of_the_move() -> None:
    boards = decode_boards(ROWS["board"], ROWS["tile_65536_mask"])
    after, points, _ = move(boards, ROWS["move_dir"].copy())
    for symmetry in range(COUNT):
        image = turned(ROWS, symmetry)
        ranks = decode_boards(image["board"], image["tile_65536_mask"])
        moved, earned, _ = move(ranks, image["move_dir"].copy())
        assert (moved == after[:, CELLS[symmetry]]).all()
        assert (earned == points).all()
        assert (image["board_eval"] == board_eval(ranks)).all()
