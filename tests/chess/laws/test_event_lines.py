"""Law of the event lines: each `[Event ` line of the PGN belongs to a game."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill import families
from gristmill.chess import ValidateConfig, validate
from gristmill.chess.format import folders
from gristmill.chess.laws.event_lines import event_line_laws
from gristmill.families import Subject
from tests.chess.generated_pgn import one_game, write_games
from tests.chess.laws.damage import edit, edit_json

GAME = one_game('[Result "1-0"]\n', "1-0")
BAD = GAME.replace("Be7", "Be2")


def validated(tmp_path: Path, text: str) -> tuple[Path, Path]:
    """(validated folder, folder of the PGN) of a PGN text."""
    folder = tmp_path / "elite"
    folder.mkdir()
    (folder / "x.pgn").write_bytes(text.encode())
    validate([folder / "x.pgn"], tmp_path / "valid")
    return tmp_path / "valid", folder


def drop_record(valid: Path, number: int) -> None:
    """Take the game record away, as if the reader had passed over the game."""
    file = folders.games_file(valid, "games")
    np.delete(np.fromfile(file, folders.GAME), number).tofile(file)


def drop_reject(valid: Path) -> None:
    path = valid / "invalid_games.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with generated games, and `valid` with their validation."""
    folder = tmp_path_factory.mktemp("made")
    write_games(folder / "made.pgn", 7, 40, 0.2)
    validate([folder / "made.pgn"], folder / "valid")
    return folder


@pytest.mark.parametrize("window", [64, 1_001, 4 << 20])
@pytest.mark.parametrize("records", [1, 7, 1 << 16])
def test_generated_games_obey_the_law(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, records: int
) -> None:
    """Its tags come in any order, so that most event lines start no game."""
    monkeypatch.setattr("gristmill.chess.laws.event_lines._WINDOW", window)
    monkeypatch.setattr("gristmill.chess.laws.event_lines._RECORDS", records)
    shutil.copytree(made, tmp_path / "made")
    subject = Subject(tmp_path / "made/valid", inputs=[tmp_path / "made"])
    assert list(event_line_laws(subject)) == []
    drop_record(tmp_path / "made/valid", 9)
    assert len(list(event_line_laws(subject))) == 1


@pytest.mark.parametrize(
    ("games", "damage", "place", "found"),
    [
        ([GAME] * 3, lambda p: drop_record(p, 0), 0, "no game begins here"),
        ([GAME] * 3, lambda p: drop_record(p, 1), 1, "lies behind the game at byte 0"),
        ([GAME] * 3, lambda p: drop_record(p, 2), 2, f"behind the game at byte {len(GAME)}"),
        ([BAD, GAME], lambda p: drop_record(p, 0), 1, "follows a blank line of the game at byte 0"),
        ([GAME, BAD, GAME], drop_reject, 1, "lies behind the game at byte 0"),
        ([BAD, GAME, BAD], drop_reject, 0, "no game begins here"),
        (['[Event "a"]\n\n\n', GAME], lambda p: drop_record(p, 0), 1, "follows a blank line"),
        (["\n% x\n", GAME, GAME], lambda p: drop_record(p, 1), 2, "lies behind"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_game_that_is_passed_over_is_found(
    tmp_path: Path,
    games: list[str],
    damage: Callable[[Path], None],
    place: int,
    found: str,
    newline: str,
) -> None:
    games = [text.replace("\n", newline) for text in games]
    valid, folder = validated(tmp_path, "".join(games))
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []
    damage(valid)
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.law == "event_line_accounted"
    assert violation.where == f"x.pgn: byte {len(''.join(games[:place]))}"
    if newline == "\n":
        assert found in violation.found


@pytest.mark.parametrize(
    "text",
    [
        GAME.replace("1. e4", '{\n[Event "in"]\n} 1. e4'),
        GAME.replace("1. e4", '1. e4 ( 1. d4\n[Event "in"]\n)'),
        GAME.replace("1. e4", '\n[Event "in"]\n1. e4'),
        GAME.replace("1. e4", '{\n} ; {\n[Event "in"]\n1. e4'),
        GAME.replace("1. e4", '{ } {\n[Event "in"]\n[Event "in"]\n} 1. e4'),
        GAME.replace("1. e4", '% {\n[Event "in"]\n1. e4'),
        '[Site "s"]\n' + GAME,
        '[Site "s"]\n\n' + GAME,
        '[Site "s"]\n%\n;\n\n' + GAME,
        "\ufeff" + GAME,
        GAME + "\ufeff" + GAME,
        "\n\n;\n%\n" + GAME,
        "[bad\n" + GAME,
        "x [Event y",
        "",
    ],
)
def test_event_lines_that_belong_to_a_game(tmp_path: Path, text: str) -> None:
    valid, folder = validated(tmp_path, GAME + text + GAME)
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []


def test_an_event_line_in_an_unclosed_comment_is_named(tmp_path: Path) -> None:
    """It follows no blank line, so that no game begins there."""
    lead = GAME.replace("1-0\n\n", "{ x\n")
    valid, folder = validated(tmp_path, GAME + lead + GAME)
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.where == f"x.pgn: byte {len(GAME + lead)}"
    assert f"unclosed comment of the game at byte {len(GAME)}" in violation.found


def test_a_comment_that_swallows_games_breaks_the_law(tmp_path: Path) -> None:
    """The rows of the original code, given out as those of the mode `current`."""
    folder = tmp_path / "elite"
    folder.mkdir()
    unclosed = GAME.replace("1-0\n", "{ x\n")
    (folder / "x.pgn").write_text(GAME + unclosed + GAME * 30 + GAME.replace("1-0\n", "}\n"))
    valid = tmp_path / "valid"
    summary = validate([folder / "x.pgn"], valid, ValidateConfig(compat="reference"))
    assert summary.valid_games == 2
    edit(valid / "invalid_games.csv", b"result\r\n", b"result,error,pgn_offset\r\n")
    *listed, rest = event_line_laws(Subject(valid, inputs=[folder]))
    assert len(listed) == 20
    assert rest.found == "11 more lines belong to no game"


def test_a_window_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    valid, folder = validated(tmp_path, GAME + "\ufeff" + GAME + GAME)
    for number in (2, 1):
        drop_record(valid, number)
        for window in range(40, len(GAME) * 3 + 4):
            monkeypatch.setattr("gristmill.chess.laws.event_lines._WINDOW", window)
            assert len(list(event_line_laws(Subject(valid, inputs=[folder])))) == 3 - number


def test_a_pgn_of_another_size_is_not_compared(tmp_path: Path) -> None:
    valid, folder = validated(tmp_path, GAME)
    drop_record(valid, 0)
    edit_json(folders.sources_file(valid), lambda s: s["sources"][0].update(bytes=7))
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []


def test_damage_is_a_violation_and_no_error(tmp_path: Path) -> None:
    valid, folder = validated(tmp_path, GAME + BAD)
    edit(valid / "invalid_games.csv", b"pgn_offset", b"pgn_offzet")
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.law == "artifact_complete"
    folders.sources_file(valid).unlink()
    assert "readable_json" in {
        violation.law for violation in event_line_laws(Subject(valid, inputs=[folder]))
    }


def test_the_law_is_asked_with_inputs_in_the_mode_current(tmp_path: Path) -> None:
    valid, folder = validated(tmp_path, GAME * 2)
    drop_record(valid, 1)

    def laws(**options: object) -> set[str]:
        subject = Subject(valid, **options)  # type: ignore[arg-type]
        return {broken.law for broken in families.check("chess/valid_games", subject)}

    assert "event_line_accounted" in laws(inputs=[folder], config={"compat": "current"})
    assert "event_line_accounted" not in laws(inputs=[folder], config={"compat": "reference"})
    assert "event_line_accounted" not in laws()
