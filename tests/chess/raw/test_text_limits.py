"""Limits for the text of a PGN: lines, games, and what one game may cost python-chess."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.raw import pgn as reader
from gristmill.chess.raw import text_limits
from gristmill.chess.raw.text_limits import unread_tag, with_short_lines
from gristmill.contract import BadInput
from tests.chess.both_readers import both_ways
from tests.paths import CHECKOUT

GAME = b'[Event "a"]\n\n1. e4 *\n\n'
# A move that the compiled reader leaves to python-chess.
ODD = b'[Event "b"]\n\n1. e2e4 '


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("piece", [1, 3, 7, 8, 100])
def test_a_line_may_have_so_many_bytes_and_no_more(
    monkeypatch: pytest.MonkeyPatch, newline: bytes, piece: int
) -> None:
    monkeypatch.setattr(text_limits, "LINE_BYTES", 8)
    path = Path("x.pgn")

    def pieces(text: bytes) -> list[bytes]:
        return [text[at : at + piece] for at in range(0, len(text), piece)]

    for text in (b"", newline * 30, (b"12345" + newline) * 9, (b"12345678" + newline) * 3):
        assert b"".join(with_short_lines(pieces(text), path)) == text
    short = b"123" + newline
    assert b"".join(with_short_lines(pieces(short + b"x" * 8), path)) == short + b"x" * 8
    too_long = short * 2 + b"x" * 9 + newline + short
    with pytest.raises(BadInput, match=rf"line at byte {107 + 2 * (3 + len(newline))} has more"):
        list(with_short_lines(pieces(too_long), path, at=107))


@pytest.mark.parametrize(
    ("limit", "value", "text", "rule"),
    [
        ("TAGS", 3, b'[A "1"]\n[B "1"]\n[C "1"]\n' + ODD, "more than 3 tags"),
        ("PLIES", 3, ODD + b"e5 d4 d5", "more than 3 plies"),
        ("ERRORS", 2, ODD + b"Ke5 ) Ke5 ) Ke5", "more than 2 of its moves"),
        (
            "BLANK_LINES",
            4,
            ODD + b"{\n\n \n\t\n}",
            "more than 4 blank lines; is a comment left open",
        ),
        ("LINES", 6, ODD + b"{\n\n\n\n}", "more than 6 lines"),
        ("COMMENT_WORK", 279, ODD + b"{}" * 10, "too many comments"),
    ],
)
def test_a_game_beyond_a_limit_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    text: bytes,
    rule: str,
) -> None:
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(GAME + text + b"\n\n")
    validate([pgn], tmp_path / "before")
    monkeypatch.setattr(text_limits, limit, value)
    named = rf"x\.pgn.*game at byte {len(GAME)} cannot be read.*{rule}.*take it out"
    for compat in ("current", "reference"):
        with pytest.raises(BadInput, match=named):
            validate([pgn], tmp_path / compat, ValidateConfig(compat=compat))
    # The end of the text is asked for as one line more.
    monkeypatch.setattr(text_limits, limit, value + (2 if limit == "LINES" else 1))
    validate([pgn], tmp_path / "after")


@pytest.mark.parametrize("tags", [1000, 1001])
def test_the_compiled_reader_takes_a_thousand_tags(tmp_path: Path, tags: int) -> None:
    pgn = tmp_path / "x.pgn"
    game = b"".join(b'[T%d "a value"]\n' % n for n in range(tags)) + b"\n1. e4 *\n\n"
    pgn.write_bytes(GAME + game)
    if tags == 1000:
        assert validate([pgn], tmp_path / "out").oracle_games == 0
        both_ways(pgn, ValidateConfig())
    else:
        with pytest.raises(BadInput, match="more than 1000 tags"):
            validate([pgn], tmp_path / "out")


def test_empty_lines_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the start of a game reaches the end of the file once, not for each range."""
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(b"\n" * 3_000_000)
    looks: list[int] = []

    def counted(file: int, size: int, at: int) -> bytes:
        looks.append(size)
        return real(file, size, at)

    real = os.pread
    monkeypatch.setattr("gristmill.chess.raw.pgn.os.pread", counted)
    assert len(reader.plan(pgn, 1000)) == 1
    assert sum(looks) < 3_200_000


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a long line": (lambda: GAME + ODD + b"{" + b"x" * 15_000_000 + b"} *\n", "line at byte 35"),
    "a long tag": (lambda: b'[Event "' + b"x" * 15_000_000 + b'"]\n\n*\n', "line at byte 0"),
    "empty lines": (lambda: b"\n" * 26_000_000, "holds no game"),
    "an open comment": (lambda: ODD + b"{ x\n" + (b"y" * 50 + b"\n") * 290_000 + b"\n" + GAME, ""),
    "a long comment": (lambda: ODD + b"{" + b"x\n" * 7_500_000 + b"} *\n", "1048576 lines"),
    "a comment in a game": (lambda: GAME[:-4] + b"{" + b"x\n" * 7_500_000 + b"} *\n", ""),
    "tags": (lambda: b"".join(b'[T%d "a"]\n' % n for n in range(400_000)), "1000 tags"),
    "moves": (lambda: ODD + b"Nf6\nNf3\nNg8\nNg1\n" * 200_000, "20000 plies"),
    "braces": (lambda: ODD + b"{}" * 500_000, "too many comments"),
    "errors": (lambda: ODD + b"Ke9 Ke5 )\n" * 400_000, "1000 of its moves"),
    "variations": (lambda: ODD + (b"(" * 99 + b"\n") * 5_000, ""),
}
CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from pathlib import Path
from gristmill.chess import validate
from gristmill.contract import BadInput
try:
    validate([Path(sys.argv[1])], Path(sys.argv[2]))
except BadInput as error:
    print(error)
"""


LONG = {
    "empty lines",
    "an open comment",
    "a long comment",
    "a comment in a game",
    "tags",
    "moves",
    "variations",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in HOSTILE],
)
def test_a_hostile_pgn_takes_less_than_a_gigabyte(tmp_path: Path, name: str) -> None:
    text, rule = HOSTILE[name]
    (tmp_path / "x.pgn").write_bytes(text())
    command = [sys.executable, "-c", CHILD, str(tmp_path / "x.pgn"), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert rule in done.stdout
    assert bool(done.stdout) == bool(rule)


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ('[White "Ann"]', True),
        ('[White "A"nn"]  ', True),
        ('[Event "[White "Ann"]"]', True),
        ('[White-Team "x"] [y', True),
        ("{\n[%clk 0:01]\n[I think so.]\n}", True),
        ("[White Ann]", False),
        ("[White 'Ann']", False),
        ('[White "Ann]', False),
        ('[ FEN "x"]', True),
        ('  [Result\t"1-0" ]', True),
        ('[white "Ann"]', False),
        ('[Event "E"] [Site"S"]', True),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_first_usual_tag_in_another_form_is_found(line: str, is_read: bool, end: str) -> None:
    head = f'\ufeff[Event "E"]\n{line}\n[Site "cut'
    found = unread_tag(head.replace("\n", end).encode())
    assert found == ("" if is_read else line.strip())
