"""The compiled reader agrees with python-chess: verdicts, moves, tags, ids, byte for byte."""

import csv
import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import chess
import chess.pgn
import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.build.range_output import Harvest, ShareTask
from gristmill.chess.build.validate_fallback import take_odd
from gristmill.chess.build.validate_range import harvest_share
from gristmill.chess.raw.pgn import PlacedGame, plan
from gristmill.chess.raw.python_chess import MissingPythonChess, read_game
from gristmill.contract import BadInput
from tests.chess import plain

BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
ALPHABET = "abcdefgh12345678NBRQKOx+#=-!?().{};$ \n\t[]%*/\"'0e.p\r\\é"


def same_as_plain(pgn: Path, tmp: Path, share_bytes: int = 2 << 20) -> int:
    """Both outputs of the reference rules as bytes; returns how many games the oracle read."""
    out = tmp / f"{pgn.stem}_{share_bytes}"
    config = ValidateConfig(compat="reference", share_bytes=share_bytes, source_names=("x.pgn",))
    summary = validate([pgn], out, config)
    valid, invalid = plain.validated(pgn, "x.pgn")
    assert (out / "valid_games.jsonl").read_bytes() == valid
    assert (out / "invalid_games.csv").read_bytes() == invalid
    return summary.oracle_games


def all_by_oracle(pgn: Path, config: ValidateConfig) -> dict[str, bytes]:
    """The sections of a file when every game goes to the oracle."""
    task = ShareTask(plan(pgn, 1 << 40)[0], 0, pgn.name, config)
    data, pos, harvest = pgn.read_bytes(), 0, Harvest(task)
    while (read := read_game(data, pos)[0]) is not None:
        blank = BLANK_LINES.match(data, pos)
        pos = blank.end() if blank else pos
        take_odd(harvest, PlacedGame(pos, read.end - pos, read))
        pos = read.end
    return {name: bytes(piece) for name, piece in harvest.made(pos)[0].items()}


def both_ways(pgn: Path, config: ValidateConfig) -> None:
    """The scanner's decisions in the current mode are the oracle's, section by section."""
    task = ShareTask(plan(pgn, 1 << 40)[0], 0, pgn.name, config)
    fast, _ = harvest_share(task)
    for name, piece in all_by_oracle(pgn, config).items():
        assert bytes(fast[name]) == piece, name


@pytest.mark.real
def test_edge_cases_as_python_chess_reads_them(real: Path, tmp_path: Path) -> None:
    same_as_plain(real / "edge" / "edge.pgn", tmp_path)
    both_ways(real / "edge" / "edge.pgn", ValidateConfig())


@pytest.mark.real
@pytest.mark.parametrize(
    "name", ["pychess_dortmund", "pychess_world_matches", "lichess_elite_2013-09_first10"]
)
def test_annotated_real_games(real: Path, tmp_path: Path, name: str) -> None:
    pgn = real / "pgn" / f"{name}.pgn"
    assert same_as_plain(pgn, tmp_path) < 30
    both_ways(pgn, ValidateConfig())


@pytest.mark.real
def test_a_slice_of_a_player_file(real: Path, tmp_path: Path) -> None:
    data = (real / "pgn" / "pgnmentor_Ding.pgn").read_bytes()
    pgn = tmp_path / "ding.pgn"
    pgn.write_bytes(data[-400_000:])
    assert same_as_plain(pgn, tmp_path) <= 2
    same_as_plain(pgn, tmp_path, share_bytes=9_973)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", ["Carlsen", "Caruana", "Ding"])
def test_every_game_of_the_player_files(real: Path, tmp_path: Path, name: str) -> None:
    pgn = real / "pgn" / f"pgnmentor_{name}.pgn"
    assert same_as_plain(pgn, tmp_path) <= 2
    both_ways(pgn, ValidateConfig())


def played(dice: random.Random, plies: int) -> tuple[list[str], str]:
    """Random legal moves in SAN, promotions of all kinds, and the board's result."""
    board, moves = chess.Board(), []
    while len(moves) < plies and not board.is_game_over():
        choices = list(board.legal_moves)
        keen = [m for m in choices if m.promotion or board.is_capture(m) or board.is_castling(m)]
        back = [m for m in choices if moves and m.to_square == board.peek().from_square]
        move = dice.choice(keen if keen and dice.random() < 0.3 else choices)
        if len(board.move_stack) >= 2 and dice.random() < 0.25:
            mine = board.move_stack[-2]  # undo one's last move: repetitions
            undo = chess.Move(mine.to_square, mine.from_square)
            move = undo if undo in choices else dice.choice(back or choices)
        moves.append(board.san(move))
        board.push(move)
    return moves, board.result(claim_draw=True)


def game_text(dice: random.Random, moves: list[str], result: str) -> str:
    """One game as PGN, with every legal way to write it that the scanner should take."""
    said = result if dice.random() < 0.7 else dice.choice(["1-0", "0-1", "1/2-1/2", "*", "?"])
    tags = [f'[Event "E{dice.randrange(9)}"]', '[Site "s"]', f'[White "{dice.choice("AB")}"]']
    if dice.random() < 0.8:
        tags.append(f'[Result "{said}"]')
    if dice.random() < 0.3:
        tags.append(
            dice.choice(['[UTCDate "2024.01.01"]', '[Black "Jürgen \\"x\\" q"y"]', '[a ""]'])
        )
    dice.shuffle(tags)
    words: list[str] = []
    for ply, move in enumerate(moves):
        if ply % 2 == 0 or dice.random() < 0.05:
            words.append(f"{ply // 2 + 1}." + "." * dice.choice([0, 0, 2]))
        words.append(move + dice.choice(["", "", "", "", "!", "?!", " $3", "{ c (x) }"]))
        if dice.random() < 0.05:
            words.append(dice.choice(["{a\n\nb}", "(1. e4 (1. d4) e5 {)})", "; rest\n", "{x}"]))
    words.append(said if dice.random() < 0.8 else dice.choice(["1-0", "0-1", "*", ""]))
    text, width = "", 0
    for word in words:
        text += word
        width += len(word)
        if width > 70 and dice.random() < 0.5 and not word.endswith("\n"):
            text, width = text + "\n", 0
        elif not word.endswith("\n"):
            text += " " * dice.choice([1, 1, 1, 2])
    newline = dice.choice(["\n", "\n", "\r\n"])
    whole = "\n".join(tags) + "\n\n" + text.strip() + "\n\n" + "\n" * dice.choice([0, 0, 1])
    return whole.replace("\n", newline)


def mutated(dice: random.Random, text: str) -> str:
    """The text with a few characters put in, taken out or changed."""
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text))
        cut = at + dice.choice([0, 1, 1, 2])
        text = text[:at] + dice.choice(["", dice.choice(ALPHABET)]) + text[cut:]
    return text


def write_games(path: Path, seed: int, games: int, share_mutated: float) -> Path:
    dice = random.Random(seed)
    texts = []
    for _ in range(games):
        moves, result = played(dice, dice.choice([0, 3, 9, 30, 80, 160]))
        text = game_text(dice, moves, result)
        texts.append(mutated(dice, text) if dice.random() < share_mutated else text)
    path.write_bytes("".join(texts).encode())
    return path


@pytest.mark.parametrize("seed", [1, 2])
def test_generated_and_mutated_games(tmp_path: Path, seed: int) -> None:
    pgn = write_games(tmp_path / "made.pgn", seed, 500, 0.5)
    same_as_plain(pgn, tmp_path)
    same_as_plain(pgn, tmp_path, share_bytes=3_001)
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))


def test_unmutated_games_hardly_need_the_oracle(tmp_path: Path) -> None:
    pgn = write_games(tmp_path / "made.pgn", 3, 300, 0.0)
    assert same_as_plain(pgn, tmp_path) < 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 22))
def test_thousands_of_generated_and_mutated_games(tmp_path: Path, seed: int) -> None:
    pgn = write_games(tmp_path / "made.pgn", seed, 1500, 0.7)
    same_as_plain(pgn, tmp_path, share_bytes=20_011)
    both_ways(pgn, ValidateConfig())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 44))
def test_filters_agree_too(tmp_path: Path, seed: int) -> None:
    pgn = write_games(tmp_path / "made.pgn", seed, 300, 0.2)
    for config in (
        ValidateConfig(elo_floor=2400),
        ValidateConfig(time_controls=("blitz",), drop_abandoned=True),
        ValidateConfig(compat="reference", elo_floor=1),
    ):
        both_ways(pgn, config)


def test_a_game_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.chess.raw.pgn.MAX_GAME_BYTES", 100_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", 10_000)
    pgn = tmp_path / "open.pgn"
    pgn.write_text('[Event "a"]\n\n1. e4 *\n\n[Event "b"]\n\n1. e4 { ' + "x\n" * 200_000)
    with pytest.raises(BadInput, match=r"game at byte 22 has no end.*comment left open"):
        validate([pgn], tmp_path / "out", ValidateConfig(share_bytes=1000))


def test_games_are_read_by_windows_where_nothing_shows_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pgn = write_games(tmp_path / "made.pgn", 5, 60, 0.1)
    pgn.write_bytes(pgn.read_bytes().replace(b"[Event", b"[Evemt"))
    assert len(plan(pgn, 1000)) == 1
    for window in (1 << 20, 7_001):
        monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", window)
        same_as_plain(pgn, tmp_path, share_bytes=window)


def test_plain_months_need_no_python_chess(
    month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    assert validate([month], tmp_path / "plain").oracle_games == 0
    pgn = tmp_path / "odd.pgn"
    pgn.write_text('[Event "E"]\n\n1. e2e4 e7e5 *\n\n')
    with pytest.raises(MissingPythonChess, match=r"pip install 'gristmill\[chess\]'"):
        validate([pgn], tmp_path / "odd")


def test_importing_the_package_is_cheap() -> None:
    heavy = "{'numpy', 'numba', 'chess', 'torch', 'zstandard'}"
    code = f"import sys, gristmill.chess; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_changed_kernel_is_compiled_anew(tmp_path: Path) -> None:
    """numba keys its cache by what an entry point closes over: the stamp of all the sources."""
    from gristmill.chess.kernels import generate, replay, rowtext, scan, splicetext
    from gristmill.chess.kernels.stamp import KERNEL_STAMP

    for entry in (
        scan.scan_games,
        replay.replay,
        rowtext.find_rows,
        rowtext.write_games,
        splicetext.write_splices,
        generate.play,
    ):
        cells = [cell.cell_contents for cell in entry.py_func.__closure__]
        assert KERNEL_STAMP in cells


def test_a_comment_that_looks_like_the_start_of_a_game(tmp_path: Path) -> None:
    game = '[Event "E"]\n[White "A"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 '
    inside = "{ " + "x" * 300 + '\n\n[Event "inside"]\n\n1. d4 d5 1-0\n\n} 5. O-O Be7 1-0\n\n'
    pgn = tmp_path / "deceit.pgn"
    pgn.write_text((game + inside) * 40)
    for share_bytes in (64, 150, 333, 1 << 20):
        same_as_plain(pgn, tmp_path, share_bytes)


@pytest.mark.parametrize(
    "movetext",
    [
        "\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. d3 0000 *",
        "\n1. e4 e5 00002. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. d3 d6 *",
        "\n1. e4 e5 10000. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. d3 d6 *",
        "\n( 1. d4 d5 ) 1. e4 e5 2. c3 c6 3. a3 a6 4. b3 b6 5. h3 *",
        "\n{ a } ( 1. d4 d5 ) 1. e4 e5 2. c3 c6 3. a3 a6 4. b3 b6 5. h3 *",
        "\r\r\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. d3 d6 *",
        " \r \r\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. d3 d6 *",
    ],
)
def test_movetext_that_only_looks_plain(tmp_path: Path, movetext: str) -> None:
    """Null moves in digits, a variation of no move, lines that end in a bare carriage return."""
    after = one_game('[Result "1-0"]\n', "1-0")
    for name, lead in (("first", ""), ("later", after)):
        pgn = tmp_path / f"{name}.pgn"
        pgn.write_bytes(f'{lead}[Event "E"]\n{movetext}\n\n{after}'.encode())
        same_as_plain(pgn, tmp_path)
        same_as_plain(pgn, tmp_path, share_bytes=50)
        both_ways(pgn, ValidateConfig())


def test_a_game_that_python_chess_fails_on_is_named(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    first = one_game('[Result "1-0"]\n', "1-0")
    pgn.write_text(first + one_game("", "*").replace("1. e4", "1. e2e4 $" + "7" * 5000))
    with pytest.raises(BadInput, match=rf"x\.pgn.*game at byte {len(first)} cannot be read"):
        validate([pgn], tmp_path / "out")


def one_game(tags: str, end: str) -> str:
    moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"
    return f'[Event "E"]\n[White "A"]\n[Black "B"]\n{tags}\n{moves} {end}\n\n'


def test_the_standard_variant_is_plain_chess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = '[Result "1-0"]\n'
    pgn = tmp_path / "x.pgn"
    games = (result, f'{result}[Variant "Standard"]\n', f'{result}[Variant "standard"]\n')
    pgn.write_text("".join(one_game(tags, "1-0") for tags in games))
    both_ways(pgn, ValidateConfig())
    # In lower case it is the oracle's; spelled as Lichess spells it, the scanner's.
    assert validate([pgn], tmp_path / "out").oracle_games == 1
    rows = [json.loads(line) for line in (tmp_path / "out" / "valid_games.jsonl").open()]
    assert len(rows) == 3
    assert len({row["game_id"] for row in rows}) == 1
    assert [row["headers"].get("Variant") for row in rows] == [None, "Standard", "standard"]
    same_as_plain(pgn, tmp_path)
    monkeypatch.setitem(sys.modules, "chess", None)
    pgn.write_text("".join(one_game(tags, "1-0") for tags in games[:2]))
    assert validate([pgn], tmp_path / "plain").oracle_games == 0


def test_a_header_with_a_winner_over_open_movetext_is_a_conflict(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    cases = [
        ('[Result "1-0"]\n', "*", True),
        ('[Result "1-0"]\n', "0-1", True),
        ('[Result "1-0"]\n', "1-0", False),
        ('[Result "*"]\n', "0-1", False),
        ('[Result "*"]\n', "*", False),
        ("", "*", False),
        ("", "1-0", False),
    ]
    # Each as the scanner takes it, and with moves in a form that is left to the oracle.
    plain = [one_game(tags, end) for tags, end, _ in cases]
    odd = [text.replace("1. e4 e5", "1. e2e4 e7e5") for text in plain]
    pgn.write_text("".join(plain + odd))
    both_ways(pgn, ValidateConfig())
    summary = validate([pgn], tmp_path / "out")
    with (tmp_path / "out" / "flagged_games.csv").open(newline="") as table:
        flagged = [int(row["pgn_offset"]) for row in csv.DictReader(table)]
    places = list(itertools.accumulate(map(len, plain + odd), initial=0))
    told = [case[2] for case in cases] * 2
    assert flagged == [at for at, conflict in zip(places, told, strict=False) if conflict]
    assert summary.flags == {"result_conflict": len(flagged)}
    reference = validate([pgn], tmp_path / "ref", ValidateConfig(compat="reference"))
    # There, open movetext never was one.
    assert reference.flags == {"result_conflict": 2}
    both_ways(pgn, ValidateConfig(compat="reference"))
    assert summary.oracle_games == len(odd)


def test_unterminated_games_count_as_abandoned(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    ends = ("Normal", "Time forfeit", "Unterminated", "Abandoned", "Rules infraction")
    tags = '[Result "1-0"]\n[Termination "{}"]\n'
    pgn.write_text("".join(one_game(tags.format(end), "1-0") for end in ends))
    summary = validate([pgn], tmp_path / "out", ValidateConfig(drop_abandoned=True))
    assert (summary.valid_games, summary.reasons) == (2, {"abandoned": 3})
    assert validate([pgn], tmp_path / "all").valid_games == 5
