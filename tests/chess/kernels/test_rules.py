"""The compiled rules of chess against python-chess, and shuffles against `random.Random`."""

import hashlib
import random
import sys
from pathlib import Path

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.kernels import board as boards
from gristmill.chess.kernels import ending
from gristmill.chess.kernels import moves as legality
from gristmill.chess.kernels.board import new_board
from gristmill.chess.raw import python_chess
from gristmill.chess.read.row_batches import NO_MOVE, pack_move, phase_codes, unpack_move
from gristmill.chess.read.samples import Seed, capped, legacy_seed, runtime_seed
from gristmill.run.kernels import kernel
from tests.chess.both_readers import both_ways
from tests.chess.generated_pgn import played

# As kernels their machine code is kept: numba compiles for each run what no kernel calls.
full_key, make, phase, reset, legal, legal_moves, verdict = (
    kernel()(each.py_func)
    for each in (
        *(boards.full_key, boards.make, boards.phase, boards.reset),
        *(legality.legal, legality.legal_moves, ending.verdict),
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


def test_perft_packing_phases_and_castling_are_those_of_the_rules():
    board = new_board()[:4]
    reset(*board)
    assert [perft(board, depth) for depth in (1, 2, 3)] == [20, 400, 8902]
    game = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "e1h1", "g8f6", "h1h2"]
    plain = [*game[:6], "e1g1", "g8f6", "g1h1"]
    assert phase_codes([plain, game, plain])[1] == python_chess.phase_codes(game)
    assert phase_codes([plain, game, plain])[2] == python_chess.phase_codes(plain)
    for origin in range(64):
        for target in range(64):
            for promotion in range(5):
                move = origin | target << 6 | promotion << 12
                if origin != target:
                    assert pack_move(unpack_move(move)) == move
    for text in ("0000", "e2e2", "e2e9", "", "e7e8k", "N@e4", "e2e4 "):
        assert pack_move(text) == NO_MOVE
    start = ["e2e4", "e7e5", "g1f3"]
    for more in (["0000", "b8c6"], ["e5e4", "b8c6"], ["zz", "b8c6"], ["e8e7", "e2e3"]):
        codes = phase_codes([start + more])[0]
        assert codes == python_chess.phase_codes(start + more)
        assert list(codes)[:3] == [1, 1, 1]
        assert codes[4] == 0


def test_legal_moves_keys_and_phases_along_random_games():
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
def test_endings(game, expected):
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


MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 1-0"
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
# Of the start position but for its castling rights, so that MOVES can be played.
NO_LONG = START.replace("KQkq", "Kkq")


def game(fen: str, moves: str = MOVES, tags: str = '[SetUp "1"]\n') -> str:
    return f'[Event "E"]\n[White "A"]\n[Black "B"]\n[FEN "{fen}"]\n{tags}\n{moves}\n\n'


def positions(seed: int, count: int) -> list[tuple[str, str]]:
    """FENs of positions of games by lot, and up to twenty moves from each, by lot, too."""
    dice, found = random.Random(seed), []
    while len(found) < count:
        board = chess.Board()
        for _ in range(dice.randrange(1, 60)):
            if not board.is_game_over():
                board.push(dice.choice(list(board.legal_moves)))
        fen, words = board.fen(en_passant="fen"), []
        while len(words) < 20 and not board.is_game_over():
            keen = [m for m in board.legal_moves if board.is_castling(m) or m.promotion]
            keen += [m for m in board.legal_moves if board.is_en_passant(m)]
            move = dice.choice(keen or list(board.legal_moves))
            words.append(board.san(move))
            board.push(move)
        found.append((fen, " ".join(words)))
    return found


def oracle_games(pgn: Path, text: str) -> int:
    """How many games python-chess read, where both readers agree to the byte in both modes."""
    pgn.write_text(text)
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))
    return validate([pgn], pgn.with_suffix(".out")).oracle_games


@pytest.mark.parametrize(("seed", "count"), [(3, 15), pytest.param(4, 400, marks=pytest.mark.slow)])
def test_positions_of_games_need_no_python_chess(tmp_path, monkeypatch, seed, count):
    pgn, found = tmp_path / "x.pgn", positions(seed, count)
    text = "".join(game(fen, f"{moves} 1-0") for fen, moves in found)
    text += game(found[0][0], f"{found[0][1]} *", '[Site "J\u00fcrgen"]\n[Result "*"]\n')
    text += game(" ".join(found[1][0].split()[:4]), f"{found[1][1]} *")
    assert oracle_games(pgn, text) == 0
    monkeypatch.setitem(sys.modules, "chess", None)
    summary = validate([pgn], tmp_path / "plain")
    assert summary.reasons == {"fen_start": count + 2}


@pytest.mark.parametrize(
    "fen",
    [
        START,
        START.replace("0 1", "7 9"),
        START.replace("KQkq - 0 1", "KQkq -"),
        "",
        " ",
        "8/8",
        NO_LONG.replace(" w ", " W "),
        NO_LONG.replace("Kkq", "kqK"),
        NO_LONG.replace("Kkq", "KK"),
        NO_LONG.replace("Kkq", "HAha"),
        NO_LONG.replace("Kkq", ""),
        NO_LONG.replace("Kkq", "x"),
        NO_LONG.replace("RNBQKBNR", "RNBQKBN1"),
        NO_LONG.replace("RNBQKBNR", "RNBQKBNn"),
        NO_LONG.replace("RNBQKBNR", "RNBQ1BKR"),
        NO_LONG.replace("RNBQKBNR", "RNBQKBNRR"),
        NO_LONG.replace("rnbqkbnr", "rnbq1bnr"),
        NO_LONG.replace("rnbqkbnr", "rnbkkbnr").replace("Kkq", "K"),
        NO_LONG.replace("rnbqkbnr", "rnbpkbnr"),
        NO_LONG.replace("/8/", "/44/", 1),
        NO_LONG.replace("/8/", "/9/", 1),
        NO_LONG.replace("/8/", "/7/", 1),
        NO_LONG.replace("/8/", "/", 1),
        NO_LONG.replace("/8/", "/8/8/", 1),
        NO_LONG.replace("/8/", "/Q~7/", 1),
        NO_LONG.replace("/8/", "/7x/", 1),
        NO_LONG.replace("- 0 1", "e3 0 1"),
        NO_LONG.replace("- 0 1", "e6 0 1"),
        NO_LONG.replace("- 0 1", "i6 0 1"),
        NO_LONG.replace("- 0 1", "e 0 1"),
        NO_LONG.replace("- 0 1", "- 0"),
        NO_LONG.replace("- 0 1", "- 0 1 1"),
        NO_LONG.replace("- 0 1", "- 0 1 "),
        NO_LONG.replace("- 0 1", "-  0 1"),
        NO_LONG.replace("- 0 1", "- -1 1"),
        NO_LONG.replace("- 0 1", "- 0 x"),
        NO_LONG.replace("- 0 1", "- 00000 1"),
    ],
)  # fmt: skip
def test_python_chess_reads_a_fen_that_is_not_in_common_form(tmp_path, fen):
    assert oracle_games(tmp_path / "x.pgn", game(fen) + game(NO_LONG)) == 1


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w Kq - 0 1", "1. O-O O-O-O"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b Qk - 9 12", "12... O-O 13. O-O-O"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b Qk - 9 12", "12... Rxh1+ 13. Kd2 R8xa1"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 3", "3. exd6 Kd7"),
        ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 3", "3... exd3 4. Kd2"),
        ("4k3/P7/8/8/8/8/p7/4K3 w - - 0 50", "50. a8=N a1=B 51. Nb6"),
        ("8/8/8/8/8/5k2/5p2/5K2 w - - 149 2000", ""),
        ("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", "1. Qg7#"),
    ],
)
def test_rules_that_depend_on_the_fen(tmp_path, fen, moves):
    assert oracle_games(tmp_path / "x.pgn", game(fen, f"{moves} 1/2-1/2")) == 0


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w Kq - 0 1", "1. O-O-O"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b Qk - 0 1", "1... O-O-O"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - - 0 3", "3. exd6"),
        ("4k3/8/8/3pP3/8/8/8/4K3 b - - 0 3", "3. Kd2"),
        ("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", "1. Qg7# Kh7"),
    ],
)
def test_the_tag_fen_comes_before_a_move_that_it_does_not_allow(tmp_path, fen, moves):
    assert oracle_games(tmp_path / "x.pgn", game(fen, f"{moves} 1/2-1/2")) == 1
    lines = (tmp_path / "x.out" / "invalid_games.csv").read_text().splitlines()
    assert lines[1].startswith(f",x.pgn,fen_start,0,*,FEN {fen},")


def test_changed_fens_are_read_alike_and_the_tag_comes_before_other_reasons(tmp_path):
    dice, texts = random.Random(8), []
    for fen, moves in positions(9, 30):
        at = dice.randrange(len(fen))
        changed = fen[:at] + dice.choice("pPkKrR18/ -wbqe36~") + fen[at + dice.randrange(2) :]
        texts.append(game(changed, f"{moves} 1-0"))
    assert 0 < oracle_games(tmp_path / "x.pgn", "".join(texts)) < 30
    pgn = tmp_path / "x.pgn"
    mated = "1. f3 e5 2. g4 Qh4# 1-0"  # a result that the board contradicts, and few plies
    pgn.write_text(game(NO_LONG) + game(NO_LONG, mated) + game(NO_LONG, "1-0"))
    both_ways(pgn, ValidateConfig(elo_floor=2000))
    validate([pgn], tmp_path / "out", ValidateConfig(elo_floor=2000))
    lines = (tmp_path / "out" / "invalid_games.csv").read_text().splitlines()[1:]
    after_id = [line.partition(",")[2] for line in lines]
    assert [len(line.partition(",")[0]) for line in lines] == [40, 40, 40]
    at = len(game(NO_LONG))
    assert after_id == [
        f"x.pgn,fen_start,0,1-0,FEN {NO_LONG},0",
        f"x.pgn,fen_start,0,1-0,FEN {NO_LONG},{at}",
        f"x.pgn,fen_start,0,1-0,FEN {NO_LONG},{at + len(game(NO_LONG, mated))}",
    ]


@pytest.mark.parametrize(
    ("tags", "read"),
    [
        ('[SetUp "1"]\n', 0),
        ('[Variant "From Position"]\n', 0),
        (f'[Variant "From Position"]\n[FEN "{NO_LONG}"]\n', 0),
        (f'[FEN "{NO_LONG}"]\n[Variant "Standard"]\n', 0),
        (f'[FEN "{NO_LONG}"]\n[FEN "{NO_LONG}"]\n', 1),
        ('[Variant "from position"]\n', 1),
        ('[Variant "Chess960"]\n', 1),
        (f'[Variant "Chess960"]\n[FEN "{NO_LONG}"]\n', 1),
        ('[Variant "Atomic"]\n', 1),
        ('[Variant "Nonsense"]\n', 1),
    ],
)
def test_only_other_rules_need_python_chess(tmp_path, tags, read):
    text = f'[Event "E"]\n{tags}[Result "1-0"]\n\n{MOVES}\n\n'
    assert oracle_games(tmp_path / "x.pgn", text) == read


def _variant(movetext: str, tags: str = "") -> str:
    return f'[Event "E"]\n[Variant "Atomic"]\n{tags}\n{movetext}\n\n'


def test_the_moves_of_another_variant_are_not_read(tmp_path, monkeypatch):
    def no_move(*_: object, **__: object) -> object:
        raise AssertionError("a move was read")

    monkeypatch.setattr(chess.Board, "parse_san", no_move)
    pgn = tmp_path / "x.pgn"
    broken = ("no moves at all", "1. e4 { 1-0 } (", "1. e4\n; }\n{ x\n\n} 1... e5", "1. e4 {")
    pgn.write_text("".join(_variant(text) for text in (MOVES, *broken)))
    summary = validate([pgn], tmp_path / "out")
    assert summary.reasons == {"variant": 5}
    lines = (tmp_path / "out" / "invalid_games.csv").read_text().splitlines()[1:]
    ids = [line.partition(",")[0] for line in lines]
    assert [len(each) for each in ids] == [40, 40, 40, 40, 0]
    assert len({*ids}) == 5
    rejects = [line.partition(",")[2] for line in lines]
    assert all(each.startswith("x.pgn,variant,0,*,Variant Atomic,") for each in rejects)
    pgn.write_text(f'[Event "E"]\n\n{MOVES.replace("e4", "e2e4", 1)}\n\n')
    with pytest.raises(AssertionError, match="a move was read"):
        validate([pgn], tmp_path / "read")


def test_the_words_of_another_variant_are_in_its_id_and_the_next_game_follows(tmp_path):
    pgn = tmp_path / "x.pgn"
    texts = (MOVES, MOVES.replace(" ", "\n"), f"{MOVES} {{ x }}")
    pgn.write_text("".join(_variant(text) for text in texts))
    validate([pgn], tmp_path / "out")
    lines = (tmp_path / "out" / "invalid_games.csv").read_text().splitlines()[1:]
    first, wrapped, other = (line.partition(",")[0] for line in lines)
    fields = ("Atomic", "", "", "", " ", MOVES)
    assert first == hashlib.sha256("\n".join(fields).encode()).hexdigest()[:40]
    assert wrapped == first != other
    (tmp_path := tmp_path / "next").mkdir()
    pgn, plain = tmp_path / "x.pgn", f'[Event "E"]\n[Result "1-0"]\n\n{MOVES}\n\n'
    parted = MOVES.replace(" 2.", "\n\n2.").replace("Nc6 3.", "Nc6\n \n3.")
    pgn.write_text(_variant(parted).rstrip() + "\n" + plain + _variant("") + plain)
    summary = validate([pgn], tmp_path / "out", ValidateConfig(min_plies=1))
    assert (summary.reasons, summary.valid_games) == ({"variant": 2}, 2)


def with_random(
    samples: list[int], ids: list[str], cap: int, seed: int, seed_of: Seed
) -> list[int]:
    """The indices that stay, as the formats state it."""
    kept = []
    for n, game_id in zip(samples, ids, strict=True):
        indices = list(range(7, 7 + n))
        if n > cap:
            random.Random(seed_of(seed, game_id)).shuffle(indices)
        kept += indices[:cap]
    return kept


@pytest.mark.parametrize("seed_of", [legacy_seed, runtime_seed])
@settings(max_examples=30)
@given(
    games=st.lists(st.tuples(st.integers(0, 700), st.text(max_size=50)), min_size=1, max_size=6),
    cap=st.integers(1, 40),
    seed=st.integers(0, 1 << 40),
)
def test_a_game_is_shuffled_as_python_does_it(seed_of, games, cap, seed):
    samples, ids = [n for n, _ in games], [game_id for _, game_id in games]
    kept, indices = capped(np.array(samples), 8, cap, ids, seed, seed_of)
    assert kept.tolist() == [min(n, cap) for n in samples]
    assert indices.tolist() == with_random(samples, ids, cap, seed, seed_of)


# A key of more words than the generator's state, one of no word, and the largest of one word.
@pytest.mark.parametrize("number", [0, 1, (1 << 32) - 1, 1 << 32, 3 << (32 * 700)], ids=range(5))
def test_seeds_of_any_size(number):
    _, indices = capped(np.array([3000]), 8, 2999, ["a"], 0, lambda *_: number)
    assert indices.tolist() == with_random([3000], ["a"], 2999, 0, lambda *_: number)


def test_the_seed_of_a_text_is_that_of_python():
    for game_id, text in (("g1", "7:g1"), ("", "7:unknown")):
        ours, theirs = random.Random(runtime_seed(7, game_id)), random.Random(text)
        assert ours.getstate() == theirs.getstate()
