"""What the laws noted before a commit: kept by data version, and taken for what the run built."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from assets.checking import noted, rules
from assets.checking.noted import NOTED
from assets.checking.rules import Scope
from assets.checking.verdict_file import opened
from assets.checking.verdicts import Place, Verdict, Verdicts
from gristmill.contract import Violation
from gristmill.publish.publish import publish
from resources import Lake
from tests.assets.words import words_build

ODD = [Violation("usual words", "line 3", "odd: \u2028 \udcff"), Violation("b", "", "")]


@pytest.fixture
def verdicts(tmp_path: Path) -> Iterator[Verdicts]:
    with opened(tmp_path) as made:
        yield made


def test_notes_are_kept_by_data_version(verdicts: Verdicts, tmp_path: Path) -> None:
    verdicts.published("words", "a", Place(tmp_path / "a", "1"))
    noted.keep(verdicts, "words", "a", "1", ODD)
    noted.keep(verdicts, "words", "b", "7", [])
    noted.keep(verdicts, "others", "c", "1", ODD)
    assert noted.kept(verdicts, "words") == {("a", "1"): ODD, ("b", "7"): []}
    verdicts.published("words", "a", Place(tmp_path / "a", "2"))
    assert noted.kept(verdicts, "words") == {("b", "7"): []}


@pytest.mark.parametrize("text", ["no json", "1", '[["law"]]', "[1]"])
def test_what_another_release_kept_is_not_taken(verdicts: Verdicts, text: str) -> None:
    verdicts.keep("words", NOTED, [Verdict("a", "1", text)])
    assert noted.kept(verdicts, "words") == {}


def test_notes_count_for_the_very_files_that_the_run_built(
    verdicts: Verdicts, tmp_path: Path
) -> None:
    began = datetime.now(UTC)
    build = words_build(tmp_path, "words/a", "words", "a", lambda: "odd")
    version = publish(build).record.data_version
    verdicts.published("words", "a", Place(build.record_path, version))
    read: list[Path] = []

    def notes(folder: Path) -> Iterator[Violation]:
        read.append(folder)
        yield Violation("usual words", "words.txt", "read")

    def found(since: datetime | None) -> list[str]:
        read.clear()
        lake = Lake(data_root=str(tmp_path))
        scope = Scope(lake, dg.AssetKey("words"), "words", ["a"], since, verdicts)
        return [
            one.found
            for _, one in rules.noteworthy(notes, lambda _: (), across=False)(scope).findings
        ]

    assert found(began) == ["read"]  # nothing was noted
    noted.keep(verdicts, "words", "a", version, [Violation("usual words", "words.txt", "kept")])
    assert (found(began), read) == (["kept"], [])
    assert found(None) == found(datetime.now(UTC)) == ["read"]
    noted.keep(verdicts, "words", "a", version, [])
    assert (found(began), read) == ([], [])
    (tmp_path / "words/a/words.txt").write_text("another")
    assert (found(began), read) == (["read"], [tmp_path / "words/a"])
