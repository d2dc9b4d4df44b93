"""Laws of validated games: each one finds the damage that it is there for."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess.laws.validate import validated_laws
from gristmill.families import Subject
from tests.chess.laws.damage import edit, edit_json, flip, grow


@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("rows_as_sidecar", lambda p: edit(p / "valid_games.jsonl", b'"e2e4"', b'"e2e3"')),
        (
            "winner_of_result",
            lambda p: edit(p / "valid_games.jsonl", b'"W", "plies"', b'"B", "plies"'),
        ),
        ("moves_packed", lambda p: flip(p / "sidecar" / "games.moves.u16.bin", 40)),
        ("moves_packed", lambda p: grow(p / "sidecar" / "games.moves.u16.bin")),
        ("rows_as_sidecar", lambda p: flip(p / "sidecar" / "games.games.bin", 32)),
        ("has_sidecar", lambda p: (p / "sidecar" / "games.games.bin").unlink()),
        (
            "valid_counted",
            lambda p: edit_json(p / "summary.json", lambda s: s.update(valid_games=3)),
        ),
        ("invalid_counted", lambda p: edit(p / "invalid_games.csv", b"\r\n", b"\r\nx,y\r\n")),
        ("plies_profiled", lambda p: edit_json(p / "profile.json", lambda s: s.update(plies=1))),
        ("readable_json", lambda p: (p / "summary.json").write_text("{")),
        ("readable_json", lambda p: (p / "summary.json").write_text("{}")),
        ("readable_json", lambda p: (p / "profile.json").unlink()),
        (
            "reasons_counted",
            lambda p: edit_json(p / "summary.json", lambda s: s["invalid_reason_counts"].clear()),
        ),
        (
            "total_counted",
            lambda p: edit_json(p / "summary.json", lambda s: s.update(total_games=1)),
        ),
        ("plies_counted", lambda p: edit(p / "valid_games.jsonl", b'"plies": 1', b'"plies": 2')),
        ("moves_legal", lambda p: flip(p / "sidecar" / "games.phases.bin", 0, 1)),
        ("plies_profiled", lambda p: edit_json(p / "profile.json", lambda s: s.pop("plies"))),
        ("has_key", lambda p: edit_json(p / "summary.json", lambda s: s.pop("total_games"))),
        (
            "artifact_complete",
            lambda p: edit_json(p / "summary.json", lambda s: s.update(invalid_reason_counts=1)),
        ),
        ("readable_csv", lambda p: (p / "invalid_games.csv").unlink()),
        ("readable_csv", lambda p: (p / "invalid_games.csv").write_bytes(b"\xff\xfe\r\n")),
        ("rows_as_sidecar", lambda p: (p / "valid_games.jsonl").unlink()),
    ],
)
def test_damage_to_validated_games_breaks_its_law(
    copy: Path, law: str, damage: Callable[[Path], object]
) -> None:
    damage(copy / "valid")
    violations = list(validated_laws(Subject(copy / "valid")))
    assert law in {violation.law for violation in violations}
    assert not any(str(copy) in violation.where for violation in violations)


def test_an_error_text_may_be_longer_than_a_csv_field_is_by_default(copy: Path) -> None:
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


def test_games_of_another_program_need_no_sidecar_and_no_profile(copy: Path) -> None:
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
