"""The compiled reader agrees with python-chess, byte for byte, wherever a file is cut."""

import csv
import itertools
import json
import sys
from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.laws.games import event_line_laws
from gristmill.chess.raw.pgn import plan
from gristmill.chess.raw.python_chess import MissingPythonChess
from gristmill.contract import BadInput
from gristmill.families import Subject
from tests import budget
from tests.chess.both_readers import both_ways, same_as_reference
from tests.chess.builders.chain import digests
from tests.chess.generated_pgn import one_game, write_games


@pytest.mark.real
def test_edge_cases_as_python_chess_reads_them(real, tmp_path):
    same_as_reference(real / "edge" / "edge.pgn", tmp_path)
    both_ways(real / "edge" / "edge.pgn", ValidateConfig())


def test_a_tag_may_have_any_character_and_common_games_need_no_python_chess(tmp_path):
    pgn = tmp_path / "x.pgn"
    moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 1-0"
    for number in range(1, 128):
        if chr(number) not in "\r\n":
            text = f'[Event "a{chr(number)}b"]\n[Site "{chr(number)}"]\n\n{moves}\n\n'
            pgn.write_text(text, newline="")
            both_ways(pgn, ValidateConfig())
    pgn = write_games(tmp_path / "made.pgn", 3, 100, 0.0)
    assert same_as_reference(pgn, tmp_path) < 30


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pychess_dortmund", marks=pytest.mark.slow),
        pytest.param("pychess_world_matches", marks=pytest.mark.slow),
        "lichess_elite_2013-09_first10",
    ],
)
def test_annotated_real_games(real, tmp_path, name):
    pgn = real / "pgn" / f"{name}.pgn"
    assert same_as_reference(pgn, tmp_path) < 30
    both_ways(pgn, ValidateConfig())


@pytest.mark.real
def test_a_slice_of_a_player_file(real, tmp_path):
    data = (real / "pgn" / "pgnmentor_Ding.pgn").read_bytes()
    pgn = tmp_path / "ding.pgn"
    pgn.write_bytes(data[-100_000:])
    assert same_as_reference(pgn, tmp_path) <= 2
    same_as_reference(pgn, tmp_path, share_bytes=9_973)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", budget.some(["Carlsen", "Caruana", "Ding"], each=30))
def test_every_game_of_the_player_files(real, tmp_path, name):
    pgn = real / "pgn" / f"pgnmentor_{name}.pgn"
    assert same_as_reference(pgn, tmp_path) <= 2
    both_ways(pgn, ValidateConfig())


@pytest.mark.parametrize(("seed", "games"), [(1, 40), pytest.param(2, 500, marks=pytest.mark.slow)])
def test_generated_and_mutated_games(tmp_path, seed, games):
    pgn = write_games(tmp_path / "made.pgn", seed, games, 0.5)
    same_as_reference(pgn, tmp_path)
    same_as_reference(pgn, tmp_path, share_bytes=3_001)
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", budget.some(range(10, 22), each=10))
def test_thousands_of_generated_and_mutated_games(tmp_path, seed):
    pgn = write_games(tmp_path / "made.pgn", seed, 1500, 0.7)
    same_as_reference(pgn, tmp_path, share_bytes=20_011)
    both_ways(pgn, ValidateConfig())


@pytest.mark.slow
@pytest.mark.parametrize("seed", budget.some(range(40, 44), each=10))
def test_filters_agree_too(tmp_path, seed):
    pgn = write_games(tmp_path / "made.pgn", seed, 300, 0.2)
    for config in (
        ValidateConfig(elo_floor=2400),
        ValidateConfig(time_controls=("blitz",), drop_abandoned=True),
        ValidateConfig(compat="reference", elo_floor=1),
    ):
        both_ways(pgn, config)


def test_months_in_common_form_need_no_python_chess(month, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "chess", None)
    assert validate([month], tmp_path / "plain").oracle_games == 0
    pgn = tmp_path / "odd.pgn"
    pgn.write_text('[Event "E"]\n\n1. e2e4 e7e5 *\n\n')
    with pytest.raises(MissingPythonChess, match=r"pip install 'gristmill\[chess\]'"):
        validate([pgn], tmp_path / "odd")


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
def test_unusual_movetext_in_common_looks(tmp_path, movetext):
    """Null moves in digits, a variation of no move, lines that end in a bare carriage return."""
    after = one_game('[Result "1-0"]\n', "1-0")
    for name, lead in (("first", ""), ("later", after)):
        pgn = tmp_path / f"{name}.pgn"
        pgn.write_bytes(f'{lead}[Event "E"]\n{movetext}\n\n{after}'.encode())
        same_as_reference(pgn, tmp_path)
        same_as_reference(pgn, tmp_path, share_bytes=50)
        both_ways(pgn, ValidateConfig())


def test_a_game_that_python_chess_fails_on_is_named(tmp_path):
    pgn = tmp_path / "x.pgn"
    first = one_game('[Result "1-0"]\n', "1-0")
    pgn.write_text(first + one_game("", "*").replace("1. e4", "1. e2e4 $" + "7" * 5000))
    with pytest.raises(BadInput, match=rf"x\.pgn.*game at byte {len(first)} cannot be read"):
        validate([pgn], tmp_path / "out")


def test_the_standard_variant_is_standard_chess(tmp_path, monkeypatch):
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
    same_as_reference(pgn, tmp_path)
    monkeypatch.setitem(sys.modules, "chess", None)
    pgn.write_text("".join(one_game(tags, "1-0") for tags in games[:2]))
    assert validate([pgn], tmp_path / "plain").oracle_games == 0


def test_a_header_with_a_winner_over_open_movetext_is_a_conflict(tmp_path):
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
    expected = [case[2] for case in cases] * 2
    assert flagged == [at for at, conflict in zip(places, expected, strict=False) if conflict]
    assert summary.flags == {"result_conflict": len(flagged)}
    reference = validate([pgn], tmp_path / "ref", ValidateConfig(compat="reference"))
    # There, open movetext never was one.
    assert reference.flags == {"result_conflict": 2}
    both_ways(pgn, ValidateConfig(compat="reference"))
    assert summary.oracle_games == len(odd)


MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"


def game(name: str, movetext: str = f"{MOVES} 1-0") -> str:
    return f'[Event "{name}"]\n[White "A"]\n[Result "1-0"]\n\n{movetext}\n\n'


def read(pgn: Path, out: Path, **choices: object) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Events of the valid games; (reason, ply, error) of the rejected ones."""
    validate([pgn], out, ValidateConfig(**choices))  # type: ignore[arg-type]
    rows = [json.loads(line) for line in (out / "valid_games.jsonl").open()]
    with (out / "invalid_games.csv").open(newline="") as table:
        rejected = [
            (row["reason"], row["offending_ply"], row.get("error", ""))
            for row in csv.DictReader(table)
        ]
    return [row["headers"].get("Event", "") for row in rows], rejected


COMMENT = ("unclosed_comment", "10", "a comment is not closed")
VARIATION = ("unclosed_comment", "10", "a variation is not closed")


@pytest.mark.parametrize(
    ("movetext", "expected"),
    [
        (f"{MOVES} {{ x 1-0", COMMENT),
        (f"{MOVES} {{ x\n\ny 1-0", COMMENT),
        (f"{MOVES} {{ x\n% y\n;}}", ("closed", "", "")),
        (f"{MOVES} {{ x 1-0\n \t", COMMENT),
        (f"{MOVES} ( 5... d6 1-0", VARIATION),
        (f"{MOVES} ( 5... d6 ( 5... b5 ) 1-0", VARIATION),
        (f"{MOVES} ( 5... d6 {{ x ) 1-0", COMMENT),
        (f"{MOVES} ( 5... d6 {{ ( }} ) 1-0", ("closed", "", "")),
        (f"{MOVES} {{ ( }} 1-0 ; {{ (", ("closed", "", "")),
        (f"{MOVES} 1-0\n% {{ (", ("closed", "", "")),
        (f'{MOVES} {{\n[Event "in"]\n}} 1-0', ("closed", "", "")),
        (f'{MOVES} {{\n\n[Site "in"]\n}} 1-0', ("closed", "", "")),
        (f'{MOVES} {{\n\n [Event "in"]\n}} 1-0', ("closed", "", "")),
        (f'{MOVES} {{\n\n[Events "in"]\n}} 1-0', ("closed", "", "")),
        (f'{MOVES} {{\n.\n[Event "in"]\n}} 1-0', ("closed", "", "")),
        (f"{MOVES} Ke5 {{ x", COMMENT),
        (f"{MOVES} Ke5 ( x", ("pgn_errors", "10", "illegal san: 'Ke5' in")),
        (f"( {MOVES} 1-0", ("closed", "", "")),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [False, True])
def test_the_games_around_it_are_read(tmp_path, movetext, expected, newline, last):
    following = "" if last else game("c") + game("d", "1. d4 d5 {}")
    text = game("a") + game("b", movetext) + following
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(text.replace("\n", newline).encode())
    valid, rejected = read(pgn, tmp_path / "out")
    assert ("b" in valid) == (expected[0] == "closed")
    assert [name for name in valid if name != "b"] == (["a"] if last else ["a", "c"])
    named = [row for row in rejected if row[0] != "too_short"]
    if expected[0] != "closed":
        assert [row[:2] for row in named] == [expected[:2]]
        assert named[0][2].startswith(expected[2])
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))
    same_as_reference(pgn, tmp_path)
    for share_bytes in (64, 401):
        out = tmp_path / f"by_{share_bytes}"
        read(pgn, out, share_bytes=share_bytes)
        assert digests(out) == digests(tmp_path / "out")
    assert not list(event_line_laws(Subject(tmp_path / "out", inputs=[tmp_path])))


@pytest.mark.slow
def test_a_comment_that_closes_many_games_later_costs_one_game(tmp_path):
    pgn = tmp_path / "x.pgn"
    games = [game(str(n)) for n in range(300)]
    games[3] = game("3", f"{MOVES} {{ x")
    games[290] = game("290", f"{MOVES} }} 1-0")
    pgn.write_text("".join(games))
    one = digests_of(pgn, tmp_path / "one", 1, 2 << 20)
    for workers, share_bytes in ((1, 700), (2, 5_003)):
        out = tmp_path / f"{workers}_{share_bytes}"
        assert digests_of(pgn, out, workers, share_bytes) == one
    valid, rejected = read(pgn, tmp_path / "out")
    assert valid == [str(n) for n in range(300) if n != 3]
    assert rejected == [COMMENT]
    with (tmp_path / "out" / "invalid_games.csv").open(newline="") as table:
        (row,) = csv.DictReader(table)
    assert (row["game_id"], int(row["pgn_offset"])) == ("", len("".join(games[:3])))
    # As the original code reads it.
    assert len(read(pgn, tmp_path / "reference", compat="reference")[0]) == 13
    same_as_reference(pgn, tmp_path)


def digests_of(pgn: Path, out: Path, workers: int, share_bytes: int) -> dict[str, str]:
    validate([pgn], out, ValidateConfig(workers=workers, share_bytes=share_bytes))
    return digests(out)


@pytest.mark.parametrize("opening", ["{", "("])
def test_a_window_may_end_anywhere_in_such_a_game(tmp_path, monkeypatch, opening):
    pgn = tmp_path / "x.pgn"
    unclosed = game("b", f"{MOVES} {opening} 5... d6\n \n\n")
    pgn.write_text(game("a") + unclosed + game("c") + game("d"))
    whole = read(pgn, tmp_path / "whole")
    assert whole == (["a", "c", "d"], [COMMENT if opening == "{" else VARIATION])
    monkeypatch.setattr("gristmill.chess.raw.pgn._SLACK", 0)
    for window in range(len(game("a")) + 70, len(game("a") + unclosed) + 14):
        monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", window)
        out = tmp_path / str(window)
        assert read(pgn, out) == whole
        assert digests(out) == digests(tmp_path / "whole")


def test_an_unclosed_variation_far_from_the_end_of_a_file_ends_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.chess.raw.pgn.GAME_BYTES", 3_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", 1_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._SLACK", 500)
    pgn = tmp_path / "x.pgn"
    pgn.write_text(game("b", f"{MOVES} ( 5... d6") + "".join(game(str(n)) for n in range(99)))
    for compat in ("current", "reference"):
        assert len(read(pgn, tmp_path / compat, compat=compat)[0]) >= 99
    same_as_reference(pgn, tmp_path)


def test_a_byte_order_mark_before_the_next_game_is_passed_over(tmp_path):
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes((game("b", f"{MOVES} {{ x") + "\ufeff" + game("c") + game("d")).encode())
    assert read(pgn, tmp_path / "out") == (["c", "d"], [COMMENT])
    both_ways(pgn, ValidateConfig())
    assert not list(event_line_laws(Subject(tmp_path / "out", inputs=[tmp_path])))
    pgn.write_bytes((game("b", f"{MOVES} {{ x") + "\u00bf\n\n}" + game("c") + game("d")).encode())
    assert read(pgn, tmp_path / "closed")[1] == []


@pytest.mark.parametrize("blank", ["", "\n", "\n \t\n\n"])
@pytest.mark.parametrize("compat", ["current", "reference"])
def test_a_byte_order_mark_at_the_start_of_a_game_is_passed_over(tmp_path, blank, compat):
    """Behind a blank line that ends no game python-chess alone would lose the tags."""
    pgn = tmp_path / "x.pgn"
    pgn.write_text(f"{blank}\ufeff{game('a')}{blank}\ufeff{game('b')}{game('c')}{blank}\ufeff")
    assert read(pgn, tmp_path / "out", compat=compat) == (["a", "b", "c"], [])
    both_ways(pgn, ValidateConfig(compat=compat))


def test_a_comment_in_a_game_that_python_chess_skips(tmp_path):
    """A bad FEN makes python-chess skip the game by other code."""
    bad = game("b", f"{MOVES} {{ x").replace('"1-0"]\n', '"1-0"]\n[FEN "bad"]\n')
    pgn = tmp_path / "x.pgn"
    pgn.write_text(bad + game("c"))
    rejected = (["c"], [("fen_start", "0", "FEN bad")])
    assert read(pgn, tmp_path / "out") == rejected
    pgn.write_text(bad.replace("{ x", "{ x }") + game("c"))
    assert read(pgn, tmp_path / "closed") == rejected


def test_a_blank_line_may_hold_spaces_and_tabs(tmp_path):
    pgn = tmp_path / "x.pgn"
    for blank, names in ((" \t ", ["c", "d"]), (" . ", ["d"]), ("\x0c", ["d"])):
        unclosed = game("b", f"{MOVES} {{ x").rstrip("\n")
        pgn.write_text(f"{unclosed}\n{blank}\n" + game("c") + game("d"))
        assert read(pgn, tmp_path / str(len(list(tmp_path.iterdir())))) == (names, [COMMENT])
        both_ways(pgn, ValidateConfig())


def test_a_game_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.chess.raw.pgn.GAME_BYTES", 100_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", 10_000)
    pgn = tmp_path / "open.pgn"
    pgn.write_text('[Event "a"]\n\n1. e4 *\n\n[Event "b"]\n\n1. e4 { ' + "x\n" * 200_000)
    with pytest.raises(BadInput, match=r"game at byte 22 has no end.*comment left open"):
        validate([pgn], tmp_path / "out", ValidateConfig(share_bytes=1000))


def test_games_are_read_by_windows_where_nothing_shows_their_start(tmp_path, monkeypatch):
    pgn = write_games(tmp_path / "made.pgn", 5, 60, 0.1)
    pgn.write_bytes(pgn.read_bytes().replace(b"[Event", b"[Evemt"))
    assert len(plan(pgn, 1000)) == 1
    for window in (1 << 20, 7_001):
        monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", window)
        same_as_reference(pgn, tmp_path, share_bytes=window)


def test_a_comment_that_looks_like_the_start_of_a_game(tmp_path):
    game = '[Event "E"]\n[White "A"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 '
    inside = "{ " + "x" * 300 + '\n\n[Event "inside"]\n\n1. d4 d5 1-0\n\n} 5. O-O Be7 1-0\n\n'
    pgn = tmp_path / "deceit.pgn"
    pgn.write_text((game + inside) * 40)
    for share_bytes in (64, 150, 333, 1 << 20):
        same_as_reference(pgn, tmp_path, share_bytes)
