"""The compiled rules of chess: moves, keys, endings and phases against python-chess."""

import random

import chess
import numpy as np
import pytest

from gristmill.chess.kernels import board as boards
from gristmill.chess.kernels import ending, moves
from gristmill.chess.kernels.board import new_board
from gristmill.chess.raw import python_chess
from gristmill.chess.read.row_batches import NO_MOVE, pack_move, phase_codes, unpack_move
from gristmill.run.kernels import kernel
from tests.chess.generated_pgn import played

# As kernels their machine code is kept: numba compiles for each run what no kernel calls.
full_key, make, phase, reset, legal, legal_moves, verdict = (
    kernel()(each.py_func)
    for each in (
        *(boards.full_key, boards.make, boards.phase, boards.reset),
        *(moves.legal, moves.legal_moves, ending.verdict),
    )
)


def packed(move: chess.Move) -> int:
    return pack_move(move.uci())


def perft(board: tuple[np.ndarray, ...], depth: int) -> int:
    found = np.empty(256, np.int64)
    n = legal_moves(board[0], board[1], board[2], found, 256)
    if depth == 1:
        return n
    total = 0
    for move in found[:n]:
        after = tuple(array.copy() for array in board)
        make(after[0], after[1], after[2], after[3], move)
        total += perft(after, depth - 1)
    return total


def test_perft_of_the_start() -> None:
    board = new_board()[:4]
    reset(*board)
    assert [perft(board, depth) for depth in (1, 2, 3)] == [20, 400, 8902]


def test_legal_moves_keys_and_phases_along_random_games() -> None:
    dice = random.Random(4)
    found = np.empty(256, np.int64)
    same: dict[int, object] = {}
    for _ in range(4):
        ours, theirs = new_board()[:4], chess.Board()
        reset(*ours)
        for san in played(dice, 150)[0]:
            n = legal_moves(ours[0], ours[1], ours[2], found, 256)
            expected = {packed(m) for m in theirs.legal_moves if m.promotion in (None, chess.QUEEN)}
            assert set(found[:n].tolist()) == expected
            # Some moves that are not legal, castling, and all promotions.
            for move in [
                *(dice.randrange(1 << 12) for _ in range(4)),
                *map(pack_move, ("e1g1", "e1c1", "e8g8", "e8c8")),
                *(packed(m) for m in theirs.legal_moves if m.promotion),
            ]:
                text = unpack_move(move)
                answer = legal(ours[0], ours[1], ours[2], move)
                if move & 63 != move >> 6 & 63 and answer >= 0:
                    assert answer == theirs.is_legal(chess.Move.from_uci(text)), text
            move = theirs.push_san(san)
            make(*ours, packed(move))
            # Equal keys exactly where positions are the same for repetition.
            position = theirs._transposition_key()
            assert same.setdefault(int(full_key(*ours)), position) == position
            code = python_chess.phase_codes([m.uci() for m in theirs.move_stack])[-1]
            assert phase(ours[2]) == code
    assert len(same) == len(set(map(hash, same.values())))


REPEATS = "Nf3 Nf6 Ng1 Ng8"


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        ("f3 e5 g4 Qh4#", ending.BLACK_MATES),
        ("e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#", ending.WHITE_MATES),
        ("e3 a5 Qh5 Ra6 Qxa5 h5 h4 Rah6 Qxc7 f6 Qxd7+ Kf7 Qxb7 Qd3 Qxb8 Qh7 Qxc8 Kg6 Qe6",
         ending.DRAWN),
        (f"{REPEATS} {REPEATS}", ending.CLAIMABLE),
        (f"{REPEATS} Nf3 Nf6 Ng1", ending.CLAIMABLE),  # the next move would repeat
        (f"{REPEATS} Nf3 Nf6", ending.OPEN),
        (REPEATS, ending.OPEN),
        (" ".join([REPEATS] * 4), ending.DRAWN),
        ("e4 e5", ending.OPEN),
    ],
)  # fmt: skip
def test_endings(game: str, expected: int) -> None:
    board = new_board()
    reset(*board[:4])
    board[4][0] = full_key(*board[:4])
    theirs = chess.Board()
    for ply, san in enumerate(game.split(), 1):
        make(*board[:4], packed(theirs.push_san(san)))
        board[4][ply] = full_key(*board[:4])
    assert verdict(*board[:4], board[4], len(theirs.move_stack), True) == expected
    plain = theirs.result(claim_draw=False)
    claimed = theirs.result(claim_draw=True)
    names = {
        ending.OPEN: ("*", "*"),
        ending.WHITE_MATES: ("1-0", "1-0"),
        ending.BLACK_MATES: ("0-1", "0-1"),
        ending.DRAWN: ("1/2-1/2", "1/2-1/2"),
        ending.CLAIMABLE: ("*", "1/2-1/2"),
    }
    assert names[expected] == (plain, claimed)


def test_moves_pack_and_unpack() -> None:
    for origin in range(64):
        for target in range(64):
            for promotion in range(5):
                move = origin | target << 6 | promotion << 12
                if origin != target:
                    assert pack_move(unpack_move(move)) == move
    for text in ("0000", "e2e2", "e2e9", "", "e7e8k", "N@e4", "e2e4 "):
        assert pack_move(text) == NO_MOVE


def test_phases_stop_at_the_first_illegal_move() -> None:
    start = ["e2e4", "e7e5", "g1f3"]
    for more in (["0000", "b8c6"], ["e5e4", "b8c6"], ["zz", "b8c6"], ["e8e7", "e2e3"]):
        codes = phase_codes([start + more])[0]
        assert codes == python_chess.phase_codes(start + more)
        assert list(codes)[:3] == [1, 1, 1]
        assert codes[4] == 0


def test_castling_spelled_as_the_king_taking_its_rook() -> None:
    game = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "e1h1", "g8f6", "h1h2"]
    plain = [*game[:6], "e1g1", "g8f6", "g1h1"]
    assert phase_codes([plain, game, plain])[1] == python_chess.phase_codes(game)
    assert phase_codes([plain, game, plain])[2] == python_chess.phase_codes(plain)
