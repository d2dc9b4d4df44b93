"""A game is its tags, then its movetext, whatever blank lines and comments lie between.

The oracle here knows the rule of the PGN standard alone, and shares no code with the readers.
Rules: docs/formats/chess.md#tags-and-moves-apart
"""

import itertools
import random
from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.laws.games import event_line_laws
from gristmill.families import Subject
from tests import budget
from tests.chess.both_readers import both_ways, same_as_reference
from tests.chess.builders.chain import digests, rows

MOVES = ["e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6", "O-O", "Be7", "Re1", "b5"]
UCI = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]
UCI += ["f1e1", "b7b5"]
TAGS = ["Event", "White", "Black", "Result"]
# What a file may hold between two parts of a game: whole lines.
GAPS = ["", "\n", "\n\n", "\n \t\n\n", ";c [x] {\n", "\n;c\n\n", "%esc {\n", "\n%esc\n\n;c\n\n"]
COMMENTS = ["{c}\n\n", "\n{c\n\nc}\n\n\n"]


def movetext(gaps: dict[int, str], end: str = "1-0") -> str:
    """The moves in lines, with the gap of a ply before it."""
    text = ""
    for ply, move in enumerate(MOVES):
        if ply in gaps:
            text += "\n" + gaps[ply] if text else gaps[ply]
        number = f"{ply // 2 + 1}." if ply % 2 == 0 else ""
        dots = f"{ply // 2 + 1}..." if ply % 2 and ply in gaps else ""
        text += f"{number}{dots} {move} ".lstrip()
    return text + ("\n" + gaps[99] if 99 in gaps else "") + end + "\n\n"


def tags(name: str, gaps: dict[str, str]) -> str:
    values = {"Event": "E", "White": name, "Black": "B", "Result": "1-0"}
    return "".join(gaps.get(tag, "") + f'[{tag} "{values[tag]}"]\n' for tag in TAGS)


def oracle(text: str) -> list[tuple[str, int]]:
    """(White, moves) of each game: tags, then movetext up to a result or to the next tags."""
    games: list[tuple[str, int]] = []
    white, moves, begun, comment = "", 0, False, False
    for line in [*text.replace("\r\n", "\n").replace("\ufeff", "").split("\n"), "[end"]:
        if not comment and line[:1] in ("%", ";"):
            continue
        if not comment and line.startswith("["):
            if begun or line == "[end":
                games.append((white, moves))
                white, moves, begun = "", 0, False
            if line.startswith("[White "):
                white = line.split('"')[1]
            continue
        for word in line.replace("{", " { ").replace("}", " } ").split():
            comment = word == "{" or (comment and word != "}")
            begun = True
            moves += not comment and word in MOVES
    return games


def read(pgn: Path, out: Path, **choices: object) -> list[tuple[str, int]]:
    validate([pgn], out, ValidateConfig(**choices))  # type: ignore[arg-type]
    found = rows(out / "valid_games.jsonl")
    assert all(row["moves"] == UCI and row["result"] == "1-0" for row in found)
    return [(row["headers"].get("White", ""), row["plies"]) for row in found]


def layouts() -> list[str]:
    between_tags = [tags("{}", {tag: gap}) for tag in TAGS[1:] for gap in GAPS]
    before_moves = [tags("{}", {}) + gap for gap in [*GAPS, *COMMENTS]]
    apart = [
        tags("{}", {}) + "\n" + movetext({ply: gap})
        for ply in (1, 2, 7, 99)
        for gap in [*GAPS, *COMMENTS, "(1. d4\n\n1... d5)\n\n", "$1\n\n"]
    ]
    return [
        *(text + "\n" + movetext({}) for text in between_tags),
        *(text + movetext({}) for text in before_moves),
        *apart,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_game_stays_whole_in_every_layout(tmp_path, newline):
    """Each layout between two plain games; then all of them in one file, in small ranges."""
    plain = tags("{}", {}) + "\n" + movetext({})
    text = ""
    for number, layout in enumerate(layouts()):
        of_three = [plain.replace("{}", "a"), layout.replace("{}", "b"), plain.replace("{}", "c")]
        text += "".join(of_three).replace('"b"', f'"b{number}"')
        assert oracle("".join(of_three)) == [("a", 12), ("b", 12), ("c", 12)], layout
    pgn = tmp_path / "x.pgn"
    pgn.write_text(text, newline=newline)
    expected = oracle(text)
    assert read(pgn, tmp_path / "out") == expected
    assert (tmp_path / "out/invalid_games.csv").read_text().count("\n") == 1
    both_ways(pgn, ValidateConfig())
    same_as_reference(pgn, tmp_path)
    assert not list(event_line_laws(Subject(tmp_path / "out", inputs=[tmp_path])))
    read(pgn, tmp_path / "ranges", share_bytes=301)
    assert digests(tmp_path / "ranges") == digests(tmp_path / "out")


def test_random_layouts_are_read_as_the_oracle_reads_them(tmp_path):
    dice, text = random.Random(29), ""
    for number in range(100):
        gaps = [*GAPS, *COMMENTS]
        head = tags(f"w{number}", {dice.choice(TAGS[1:]): dice.choice(GAPS)})
        places = dice.sample([1, 3, 4, 8, 99], dice.randrange(3))
        game = movetext({place: dice.choice(gaps) for place in places})
        text += head + dice.choice(gaps) + dice.choice(["", "\ufeff"]) + game
        text += dice.choice(["", "\n", ";c\n"])
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(text.encode())
    assert read(pgn, tmp_path / "out") == oracle(text)
    both_ways(pgn, ValidateConfig())


def test_files_that_were_joined_between_lines_or_without_a_blank_line_are_read(tmp_path):
    """One file ends, another begins: with a blank line more, or a byte order mark."""
    lines = (tags("w", {}) + "\n" + movetext({4: "", 8: ""})).splitlines(keepends=True)
    whole = tags("z", {}) + "\n" + movetext({})
    for number, (cut, glue) in enumerate(
        itertools.product(range(1, len(lines)), ["", "\n", "\n\n", "\ufeff", "\n\ufeff"])
    ):
        pgn = tmp_path / f"{number}.pgn"
        pgn.write_bytes((whole + "".join([*lines[:cut], glue, *lines[cut:]]) + whole).encode())
        games = read(pgn, tmp_path / str(number), share_bytes=1 << 20)
        assert games == [("z", 12), ("w", 12), ("z", 12)], (cut, glue)
        both_ways(pgn, ValidateConfig())
    # Tags end the game before them, also where the result is missing; not in a comment.
    games = [tags(name, {}) + "\n" + movetext({}) for name in "abc"]
    lines = movetext({4: '{ x\n[Event "in"]\n[White "in"]\n} '})
    games.append(tags("d", {}) + "\n" + lines)
    for number, glue in enumerate(["\n", "\n\ufeff", "\n\ufeff\n", " \n%\n", "\n;c\n"]):
        text = glue.join(game.rstrip("\n") for game in games)
        for end in ("1-0", ""):
            pgn = tmp_path / f"{number}{end}.pgn"
            pgn.write_bytes(text.replace("b5 1-0", f"b5 {end}").encode())
            assert read(pgn, tmp_path / f"{number}{end}_out") == [(name, 12) for name in "abcd"]
            both_ways(pgn, ValidateConfig())
            assert not list(
                event_line_laws(Subject(tmp_path / f"{number}{end}_out", inputs=[tmp_path]))
            )


@pytest.mark.parametrize(
    ("between", "named"),
    [
        ("\n", ["empty_game"]),  # the tags of the next game, after one blank line
        ("\n\n\n;c\n", ["empty_game"]),
        ("\n{only a comment}\n\n", ["empty_game"]),
        ("\n*\n\n", ["empty_game"]),
        ("\n1. e4 e5 2. Nf3 Nc6\n\n", ["too_short"]),
        ("\n1. e4 e5 2. Nf3 Nc6\n\n\nSome words of a person\n\n", ["too_short", "empty_game"]),
        ("\n1. e4 e5 2. Nf3 Nc6\n\n1. d4 d5 *\n\n", ["too_short", "too_short"]),
        ("\n1. e4 e5 *\n\n2. Nf3 Nc6\n\n", ["too_short", "too_short"]),
        ("\n1. e4 Ke5 2. Nf3\n\n2. d4 d5\n\n", ["pgn_errors", "too_short"]),
        ("\n1. e4 e5 (1... c5\n\n2. Nf3 d6\n\n", ["unclosed_comment"]),
    ],
)
def test_what_is_not_one_game_stays_apart(tmp_path, between, named):
    text = tags("a", {}) + between + tags("b", {}) + "\n" + movetext({})
    pgn = tmp_path / "x.pgn"
    pgn.write_text(text)
    assert read(pgn, tmp_path / "out") == [("b", 12)]
    rejected = (tmp_path / "out/invalid_games.csv").read_text().splitlines()[1:]
    assert [line.split(",")[2] for line in rejected] == named
    both_ways(pgn, ValidateConfig())
    assert not list(event_line_laws(Subject(tmp_path / "out", inputs=[tmp_path])))


def test_a_window_may_end_anywhere_between_tags_and_moves(tmp_path, monkeypatch):
    lead = tags("a", {}) + "\n" + movetext({})
    apart = tags("b", {"White": "\n"}) + "\n\n;c\n\n" + movetext({2: "\n", 99: "\n\n"})
    pgn = tmp_path / "x.pgn"
    pgn.write_text(lead + apart + lead)
    assert read(pgn, tmp_path / "whole") == [("a", 12), ("b", 12), ("a", 12)]
    monkeypatch.setattr("gristmill.chess.raw.pgn._SLACK", 0)
    windows = range(len(lead) + 1, len(lead + apart) + 70)
    for window in budget.dice("windows between tags and moves").sample(windows, 50):
        monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", window)
        read(pgn, tmp_path / str(window))
        assert digests(tmp_path / str(window)) == digests(tmp_path / "whole"), window


def test_many_blank_lines_and_comments_take_linear_time(tmp_path):
    """Each blank line asks what follows: the answer is found once."""
    pgn = tmp_path / "x.pgn"
    head = tags("a", {}) + "\n"
    pgn.write_text(head + movetext({2: "\n;c\n" * 9_000}) + head + "\n" * 9_000 + movetext({}))
    assert read(pgn, tmp_path / "out") == [("a", 12), ("a", 12)]
