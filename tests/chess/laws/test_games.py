"""Laws of PGNs and valid games on damaged copies, and notes."""

import csv
import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill import families
from gristmill.chess import ValidateConfig, build_game_dataset, validate
from gristmill.chess.config import GameConfig
from gristmill.chess.format import folders
from gristmill.chess.laws.datasets import dataset_laws
from gristmill.chess.laws.games import (
    archive_laws,
    event_line_laws,
    of_dataset,
    of_month,
    validated_laws,
    validated_notes,
)
from gristmill.contract import Summary, counts_of
from gristmill.families import Subject, check
from tests.chess.generated_pgn import one_game, write_games
from tests.chess.laws.damage import edit, edit_json, flip

FOLDERS = {
    "chess/valid_games": "valid",
    "chess/game_dataset": "game",
    "chess/splice_cache": "game/runtime_splice_cache",
    "chess/splice_dataset": "splice",
}


@pytest.mark.parametrize(("asset", "folder"), FOLDERS.items())
def test_a_good_artifact_breaks_no_law(built, asset, folder):
    assert list(check(asset, Subject(built / folder))) == []


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[1]", b"\xff\x00{"])
def test_no_damage_to_a_file_makes_a_law_raise(copy, data):
    silent = set()
    for asset, name in FOLDERS.items():
        folder = copy / name
        for path in sorted(folder.rglob("*")):
            if path.is_dir() or (asset == "chess/game_dataset" and "cache" in str(path)):
                continue
            contents = path.read_bytes()
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            if not list(check(asset, Subject(folder))) and contents != (data or b""):
                silent.add(path.name)
            path.write_bytes(contents)
    # No count and no row depends on these; their hashes are in the record.
    assert silent <= {
        *("flagged_games.csv", "games.moves.u16.bin", "sources.json", "rows.json"),
        "vocab_rows_meta.json",
    }


@pytest.mark.parametrize(
    ("folder", "laws", "name", "ply", "by"),
    [("valid", validated_laws, "games", 40, 1), ("game", dataset_laws, "test", 9, 3)],
)
def test_a_folder_without_a_record_is_replayed(copy, folder, laws, name, ply, by):
    assert list(laws(Subject(copy / folder, has_record=False))) == []
    flip(copy / folder / "sidecar" / f"{name}.phases.bin", ply, by)
    # A record has the hashes, and `gristmill verify --rebuild` makes the phases again.
    assert list(laws(Subject(copy / folder))) == []
    [violation] = laws(Subject(copy / folder, has_record=False))
    file = "valid_games.jsonl" if name == "games" else f"{name}.jsonl"
    assert violation.law == "phases_rederived"
    assert violation.where == f"{file}: ply {ply} of the rows from byte 0 on"
    assert violation.found == "1 codes differ from the replay"


def test_a_game_record_without_a_row_breaks_a_law(copy):
    file = copy / "valid" / "sidecar" / "games.games.bin"
    record = np.frombuffer(file.read_bytes(), folders.GAME)[-1:].copy()
    record["plies"] = 0
    file.write_bytes(file.read_bytes() + record.tobytes())
    [violation] = validated_laws(Subject(copy / "valid"))
    records = file.stat().st_size // folders.GAME.itemsize
    assert violation.law == "rows_counted"
    assert violation.found == f"found {records - 1}, recorded {records}"


NAME = "lichess_elite_2024-01.pgn"
DATA = b'[Event "E"]\n\n1. e4 1-0\n'


@pytest.fixture
def archived(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_bytes(DATA)
    pgn = {"name": NAME, "bytes": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest()}
    (tmp_path / "source.json").write_text(json.dumps({"month": "2024-01", "pgn": pgn}))
    return tmp_path


def test_a_good_month_breaks_no_law_also_without_source_json(archived):
    assert list(archive_laws(Subject(archived))) == []
    (archived / "source.json").unlink()
    subject = Subject(archived, has_record=False)
    assert list(archive_laws(subject)) == []
    assert subject.left_out == ["pgn_as_recorded: there is no source.json"]
    assert [violation.law for violation in archive_laws(Subject(archived))] == ["readable_json"]


@pytest.mark.parametrize(
    ("law", "where", "damage"),
    [
        ("one_pgn", "", lambda p: (p / NAME).unlink()),
        ("one_pgn", "", lambda p: (p / "other.pgn").write_bytes(b"")),
        ("pgn_as_recorded", NAME, lambda p: (p / NAME).write_bytes(DATA[:-1])),
        ("pgn_as_recorded", NAME, lambda p: (p / NAME).write_bytes(DATA.lower())),
        ("pgn_as_recorded", "other.pgn", lambda p: (p / NAME).rename(p / "other.pgn")),
        ("readable_json", "source.json", lambda p: (p / "source.json").write_text("[]")),
        ("artifact_complete", "", lambda p: edit_json(p / "source.json", lambda s: s.pop("pgn"))),
    ],
)
def test_damage_to_a_month_breaks_one_law(archived, law, where, damage):
    damage(archived)
    [violation] = archive_laws(Subject(archived))
    assert violation.law == law
    assert violation.where in (where, str(archived), archived.name)


@pytest.mark.slow
def test_an_error_text_may_be_longer_than_a_csv_field_is_by_default(copy):
    path = copy / "valid"
    limit = csv.field_size_limit()
    with (path / "invalid_games.csv").open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(["", "x.pgn", "pgn_errors", 0, "*", "e" * (limit + 1), 0])

    def count_it(summary: dict[str, Any]) -> None:
        summary["total_games"] += 1
        summary["invalid_games"] += 1
        summary["invalid_reason_counts"]["pgn_errors"] = (
            summary["invalid_reason_counts"].get("pgn_errors", 0) + 1
        )

    edit_json(path / "summary.json", count_it)
    assert list(validated_laws(Subject(path))) == []
    assert csv.field_size_limit() == limit


def test_games_of_another_program_need_no_sidecar_and_no_profile(copy):
    valid = copy / "valid"
    shutil.rmtree(valid / "sidecar")
    (valid / "profile.json").unlink()
    assert {v.law for v in validated_laws(Subject(valid))} == {"readable_json", "has_sidecar"}
    subject = Subject(valid, has_record=False)
    assert list(validated_laws(subject)) == []
    assert subject.left_out == [
        "plies_profiled: there is no profile.json",
        "phases_rederived, rows_as_sidecar: there is no sidecar",
    ]


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
def test_generated_games_obey_the_law(made, tmp_path, monkeypatch, window, records):
    """Its tags come in any order, so that most event lines start no game."""
    monkeypatch.setattr("gristmill.chess.laws.games._WINDOW", window)
    monkeypatch.setattr("gristmill.chess.laws.games._RECORDS", records)
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
def test_a_game_that_is_passed_over_is_found(tmp_path, games, damage, place, found, newline):
    games = [text.replace("\n", newline) for text in games]
    valid, folder = validated(tmp_path, "".join(games))
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []
    damage(valid)
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.law == "event_line_accounted"
    assert violation.where == f"x.pgn: byte {len(''.join(games[:place]))}"
    if newline == "\n":
        assert found in violation.found


def test_games_of_another_pgn_account_for_no_line(tmp_path):
    (tmp_path / "elite").mkdir()
    pgns = [tmp_path / f"elite/{name}.pgn" for name in "ab"]
    for pgn, player in zip(pgns, "XY", strict=True):
        pgn.write_text((f'[White "{player}"]\n' + GAME) * 2)
    validate(pgns, tmp_path / "valid")
    subject = Subject(tmp_path / "valid", inputs=[tmp_path / "elite"])
    assert list(event_line_laws(subject)) == []
    drop_record(tmp_path / "valid", 1)
    (violation,) = event_line_laws(subject)
    assert violation.where.startswith("a.pgn: byte ")


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
def test_event_lines_that_belong_to_a_game(tmp_path, text):
    valid, folder = validated(tmp_path, GAME + text + GAME)
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []


def test_an_event_line_in_an_unclosed_comment_is_named(tmp_path):
    """It follows no blank line, so that no game begins there."""
    lead = GAME.replace("1-0\n\n", "{ x\n")
    valid, folder = validated(tmp_path, GAME + lead + GAME)
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.where == f"x.pgn: byte {len(GAME + lead)}"
    assert f"unclosed comment of the game at byte {len(GAME)}" in violation.found


def test_a_comment_that_swallows_games_breaks_the_law(tmp_path):
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


def test_a_window_may_end_anywhere(tmp_path, monkeypatch):
    valid, folder = validated(tmp_path, GAME + "\ufeff" + GAME + GAME)
    for number in (2, 1):
        drop_record(valid, number)
        for window in range(40, len(GAME) * 3 + 4):
            monkeypatch.setattr("gristmill.chess.laws.games._WINDOW", window)
            assert len(list(event_line_laws(Subject(valid, inputs=[folder])))) == 3 - number


def test_a_pgn_of_another_size_is_not_compared(tmp_path):
    valid, folder = validated(tmp_path, GAME)
    drop_record(valid, 0)
    edit_json(folders.sources_file(valid), lambda s: s["sources"][0].update(bytes=7))
    assert list(event_line_laws(Subject(valid, inputs=[folder]))) == []


def test_damage_is_a_violation_and_no_error(tmp_path):
    valid, folder = validated(tmp_path, GAME + BAD)
    edit(valid / "invalid_games.csv", b"pgn_offset", b"pgn_offzet")
    (violation,) = event_line_laws(Subject(valid, inputs=[folder]))
    assert violation.law == "artifact_complete"
    folders.sources_file(valid).unlink()
    assert "readable_json" in {
        violation.law for violation in event_line_laws(Subject(valid, inputs=[folder]))
    }


def test_the_law_is_asked_with_inputs_in_the_mode_current(tmp_path):
    valid, folder = validated(tmp_path, GAME * 2)
    drop_record(valid, 1)

    def laws(**options: object) -> set[str]:
        subject = Subject(valid, **options)  # type: ignore[arg-type]
        return {broken.law for broken in families.check("chess/valid_games", subject)}

    assert "event_line_accounted" in laws(inputs=[folder], config={"compat": "current"})
    assert "event_line_accounted" not in laws(inputs=[folder], config={"compat": "reference"})
    assert "event_line_accounted" not in laws()


MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"

_SIXTH = [*enumerate(("d3", "c3", "h3", "a3"))]


def _game(result: str, moves: str = MOVES) -> str:
    return f'[Event "E"]\n[Result "{result}"]\n\n{moves} {result}\n\n'


def _record(config: ValidateConfig | GameConfig, summary: Summary) -> Any:
    return SimpleNamespace(artifact="x", config=asdict(config), counts=counts_of(summary))


def _notes(root: Path, text: str, **settings: Any) -> list[str]:
    """What is noted of the validated folder and of the dataset of a PGN."""
    (root / "x.pgn").write_text(text)
    asked = ValidateConfig(**settings)
    valid = _record(asked, validate([root / "x.pgn"], root / "valid", asked))
    game = _record(GameConfig(), build_game_dataset(root / "valid", root / "game"))
    notes = (
        *validated_notes(root / "valid"),
        *of_month(valid, root / "valid"),
        *of_dataset(game, root),
    )
    return [str(note) for note in notes]


def test_a_month_with_games_has_no_notes(built, tmp_path):
    # The sample month repeats games.
    assert [note.law for note in validated_notes(built / "valid")] == ["equal_games"]
    assert _notes(tmp_path, _game("1-0") + _game("1/2-1/2", f"{MOVES} 6. d3")) == []


def test_a_month_of_rejected_games_is_noted_with_reasons_and_settings(tmp_path):
    text = "hello world\n\n" + _game("1-0", "1. e4 e5") * 2 + _game("1-0")
    valid, dataset = _notes(tmp_path, text, elo_floor=2000)
    assert valid == (
        "x/summary.json: no_valid_game: none of 4 games is valid: 1 empty_game, 2 too_short "
        "(min_plies = 8), 1 below_elo (elo_floor = 2000); change the setting under "
        "[chess.month] in gristmill.toml"
    )
    assert "there is no valid game" in dataset


def test_tags_that_were_not_utf8_are_noted_wherever_they_stand(tmp_path):
    games = [f'[White "W{k}"]\n' + _game("1-0", f"{MOVES} 6. {move}") for k, move in _SIXTH]
    pgn = "".join(games).replace('"W2"', '"M\N{LATIN SMALL LETTER U WITH DIAERESIS}ller"')
    (tmp_path / "x.pgn").write_text(pgn, encoding="latin-1")
    validate([tmp_path / "x.pgn"], tmp_path / "valid", ValidateConfig())
    (note,) = validated_notes(tmp_path / "valid")
    assert note.law == "not_utf8"
    file = tmp_path / "valid/valid_games.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    place = len(rows[0] + rows[1])
    assert f"1 games have U+FFFD in a tag, such as the row at byte {place}, where" in str(note)
    assert 'encoding = "latin-1"' in str(note)
    file.write_bytes(b"".join([rows[2], rows[0], rows[2][:-1]]))
    (note,) = validated_notes(tmp_path / "valid")
    assert "2 games have U+FFFD in a tag, such as the row at byte 0, where" in str(note)
    file.unlink()
    assert list(validated_notes(tmp_path / "valid")) == []
    (tmp_path / "x.pgn").write_text(pgn, encoding="utf-8")
    validate([tmp_path / "x.pgn"], tmp_path / "right", ValidateConfig())
    assert list(validated_notes(tmp_path / "right")) == []


def test_a_dataset_without_games_says_why(tmp_path):
    text = (
        _game("1/2-1/2") + _game("1/2-1/2", f"{MOVES} 6. d3") + _game("1-0", "1. e4 e5 2. Nf3 Nc6")
    )
    (note,) = _notes(tmp_path, text, min_plies=2)
    assert (
        'none of 3 valid games is in a split: 2 have no winner (games = "decisive"), 1 too few '
        "moves (min_context = 8, min_target = 1); change the setting under [chess.month]"
    ) in note


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"equal_games": 1})])
def test_a_damaged_report_is_noted(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    assert list(validated_notes(tmp_path))


@pytest.mark.parametrize("games", [10_000, 9_999])
def test_a_month_far_from_the_month_before_is_noted(tmp_path, games):
    month, before = tmp_path / "elite_2024-01", tmp_path / "elite_2023-12"
    for folder, won, lost in ((month, 60, 40), (before, 54, 46)):
        folder.mkdir()
        profile = {
            "games": games,
            "winners": {"W": won, "B": lost},
            "phases": {"opening": 50 + won - 56, "endgame": 50},
            "reasons": {"too_short": games // 4} if won == 60 else {},
            "openings": {"A00": [7, 0, 0, 0, ""], f"B{won}": [3, 0, 0, 0, ""]},
        }
        (folder / "profile.json").write_text(json.dumps(profile))
        (folder / "summary.json").write_text('{"equal_games": null}')
    record: Any = SimpleNamespace(counts={})
    found = [(each.law, each.found) for each in of_month(record, month)]
    rule = "6 % of the results, 20 % of the verdicts, 30 % of the openings would have to be others"
    assert found == [("drift", f"{rule} to be as those of 2023-12")] * (games == 10_000)
    assert list(of_month(record, before)) == []
    month.rename(tmp_path / "collection")
    assert list(of_month(record, tmp_path / "collection")) == []
