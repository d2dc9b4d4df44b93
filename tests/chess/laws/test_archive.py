"""Laws of an archived month: one PGN, of the size and hash that source.json names."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.chess.laws.archive import archive_laws
from gristmill.families import Subject
from tests.chess.laws.damage import edit_json

NAME = "lichess_elite_2024-01.pgn"
DATA = b'[Event "E"]\n\n1. e4 1-0\n'


@pytest.fixture
def month(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_bytes(DATA)
    pgn = {"name": NAME, "bytes": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest()}
    (tmp_path / "source.json").write_text(json.dumps({"month": "2024-01", "pgn": pgn}))
    return tmp_path


def test_a_good_month_breaks_no_law(month: Path) -> None:
    assert list(archive_laws(Subject(month))) == []


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
def test_damage_to_a_month_breaks_one_law(
    month: Path, law: str, where: str, damage: Callable[[Path], object]
) -> None:
    damage(month)
    [violation] = archive_laws(Subject(month))
    assert violation.law == law
    assert violation.where in (where, str(month), month.name)


def test_a_month_of_another_program_needs_no_source_json(month: Path) -> None:
    (month / "source.json").unlink()
    subject = Subject(month, has_record=False)
    assert list(archive_laws(subject)) == []
    assert subject.left_out == ["pgn_as_recorded: there is no source.json"]
    assert [violation.law for violation in archive_laws(Subject(month))] == ["readable_json"]
