"""A comment or variation that is not closed costs its own game, and no other."""

import csv
import json
from pathlib import Path
from typing import Literal

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.laws.event_lines import event_line_laws
from gristmill.families import Subject
from tests.chess.both_readers import both_ways, same_as_reference
from tests.chess.builders.chain import digests

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
def test_the_games_around_it_are_read(
    tmp_path: Path, movetext: str, expected: tuple[str, str, str], newline: str, last: bool
) -> None:
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
def test_a_comment_that_closes_many_games_later_costs_one_game(tmp_path: Path) -> None:
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
def test_a_window_may_end_anywhere_in_such_a_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: str
) -> None:
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


def test_an_unclosed_variation_far_from_the_end_of_a_file_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gristmill.chess.raw.pgn.GAME_BYTES", 3_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", 1_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._SLACK", 500)
    pgn = tmp_path / "x.pgn"
    pgn.write_text(game("b", f"{MOVES} ( 5... d6") + "".join(game(str(n)) for n in range(99)))
    for compat in ("current", "reference"):
        assert len(read(pgn, tmp_path / compat, compat=compat)[0]) >= 99
    same_as_reference(pgn, tmp_path)


def test_a_byte_order_mark_before_the_next_game_is_passed_over(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes((game("b", f"{MOVES} {{ x") + "\ufeff" + game("c") + game("d")).encode())
    assert read(pgn, tmp_path / "out") == (["c", "d"], [COMMENT])
    both_ways(pgn, ValidateConfig())
    assert not list(event_line_laws(Subject(tmp_path / "out", inputs=[tmp_path])))
    pgn.write_bytes((game("b", f"{MOVES} {{ x") + "\u00bf\n\n}" + game("c") + game("d")).encode())
    assert read(pgn, tmp_path / "closed")[1] == []


@pytest.mark.parametrize("blank", ["", "\n", "\n \t\n\n"])
@pytest.mark.parametrize("compat", ["current", "reference"])
def test_a_byte_order_mark_at_the_start_of_a_game_is_passed_over(
    tmp_path: Path, blank: str, compat: Literal["current", "reference"]
) -> None:
    """Behind a blank line that ends no game python-chess alone would lose the tags."""
    pgn = tmp_path / "x.pgn"
    pgn.write_text(f"{blank}\ufeff{game('a')}{blank}\ufeff{game('b')}{game('c')}{blank}\ufeff")
    assert read(pgn, tmp_path / "out", compat=compat) == (["a", "b", "c"], [])
    both_ways(pgn, ValidateConfig(compat=compat))


def test_a_comment_in_a_game_that_python_chess_skips(tmp_path: Path) -> None:
    """A bad FEN makes python-chess skip the game by other code."""
    bad = game("b", f"{MOVES} {{ x").replace('"1-0"]\n', '"1-0"]\n[FEN "bad"]\n')
    pgn = tmp_path / "x.pgn"
    pgn.write_text(bad + game("c"))
    assert read(pgn, tmp_path / "out") == (["c"], [("unclosed_comment", "0", COMMENT[2])])
    pgn.write_text(bad.replace("{ x", "{ x }") + game("c"))
    assert read(pgn, tmp_path / "closed")[1][0][0] == "pgn_errors"


def test_a_blank_line_may_hold_spaces_and_tabs(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    for blank, names in ((" \t ", ["c", "d"]), (" . ", ["d"]), ("\x0c", ["d"])):
        unclosed = game("b", f"{MOVES} {{ x").rstrip("\n")
        pgn.write_text(f"{unclosed}\n{blank}\n" + game("c") + game("d"))
        assert read(pgn, tmp_path / str(len(list(tmp_path.iterdir())))) == (names, [COMMENT])
        both_ways(pgn, ValidateConfig())
