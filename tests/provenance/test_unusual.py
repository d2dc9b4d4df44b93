"""What is unusual in an artifact: one place says it, each command prints it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import families
from gristmill.cli import main
from gristmill.contract import Violation
from gristmill.families import Kind
from gristmill.provenance import RECORD, Input, Notes, Record, read_record, unusual
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.list_artifacts import list_artifacts
from gristmill.provenance.unusual import equal_inputs, equal_notes, named, raw_hashes
from gristmill.publish.publish import publish
from tests.publish.tiny import raw_file, raw_input, tiny_build


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[str]]:
    """Publishes a partition of two equal files with three notes; returns what the build says."""

    def counted(record: Record, folder: Path) -> Iterator[Violation]:
        yield Violation("odd", record.artifact, f"{record.counts['rows']} rows")

    def compared(record: Record, folder: Path) -> Iterator[Violation]:
        yield Violation("beside", record.artifact, "read")

    kind = Kind("test/tiny", counted=counted, compared=compared, across=True)
    monkeypatch.setattr(families, "kind_of_asset", lambda _: kind)

    def publish_one(key: str, text: str) -> list[str]:
        files = [raw_file(tmp_path, f"drops/raw/{key}/{name}", text.encode()) for name in "ab"]
        inputs = [raw_input(tmp_path, str(file.relative_to(tmp_path))) for file in files]
        build = tiny_build(tmp_path, f"family/{key}", partition=key, inputs=inputs)
        found = [Violation("twice", f"run {number}", "as run 0") for number in (1, 2, 3)]
        return publish(replace(build, noted=found)).notes

    return publish_one


def test_a_build_ls_and_verify_say_the_same(tmp_path: Path, noted) -> None:
    said = [
        "twice: run 1: as run 0 (and 2 more)",
        "odd: 6 rows",
        "beside: read",
        "equal_inputs: raw files with the bytes of another one, 1: drops/raw/one/a = "
        "drops/raw/one/b",
    ]
    assert noted("one", "x") == said
    # After a line that nothing was to be done, and without what takes reading.
    assert noted("one", "x")[1:] == [each for each in said if each != "beside: read"]
    (listed,) = list_artifacts(tmp_path)
    assert listed.notes == 5
    noted("two", "y"), noted("three", "x")
    by_key = {item.partition: item.notes for item in list_artifacts(tmp_path)}
    assert by_key == {"one": 9, "two": 5, "three": 9}, "each of two files is twice in the other"
    verified = CliRunner().invoke(main, ["verify", str(tmp_path)]).output
    assert verified.count(": twice: as run 0") == 9
    assert verified.count(": odd: 6 rows") == verified.count(": beside: read") == 3
    assert "drops/raw/one/a has the bytes of drops/raw/three/b, of three" in verified


def test_notes_that_a_record_only_counts_are_counted(tmp_path: Path, noted) -> None:
    folder = tmp_path / "family/one"
    noted("one", "x")
    item = Artifact(folder, folder / RECORD)
    more = Notes(counts={"twice": 40}, named=[Violation("twice", "run 1", "as run 0")])
    record = read_record(item.record_path).model_copy(update={"notes": more})
    assert unusual.lines(item, record)[0] == "twice: run 1: as run 0 (and 39 more)"
    assert unusual.count(item, record) == 42
    old = record.model_copy(update={"notes": None})
    assert unusual.count(item, old) == 2


def test_counts_that_cannot_be_looked_at_end_nothing(tmp_path: Path, noted, monkeypatch) -> None:
    def counted(*_: object) -> Iterator[Violation]:
        raise ValueError("no profile")

    monkeypatch.setattr(families, "kind_of_asset", lambda key: Kind(key, counted=counted))
    assert "check: cannot be looked at: ValueError: no profile" in noted("one", "x")


def _input(path: str | None, sha256: str | None, size: int = 5, **more: str) -> Input:
    return Input(path=path, sha256=sha256, bytes=size, **more)


def test_only_raw_files_that_hold_something_are_compared() -> None:
    inputs = [
        _input("drops/f/d/b", "1"),
        _input("drops/f/d/c", "2"),
        _input("drops/f/d/a", "1"),
        _input("drops/f/d/empty", "0", 0),
        _input("drops/f/d/empty2", "0", 0),
        _input("drops/macroxue/d/1.meta.json", "3"),
        _input("drops/macroxue/d/2.meta.json", "3"),
        _input("synth_harmony/manifest.json", "4"),
        _input("synth_harmony/other.json", "4"),
        Input(path="drops/x", asset="a", data_version="v"),
        Input(path="drops/y", asset="a", data_version="v"),
        Input(asset="a", data_version="v"),
    ]
    assert equal_inputs(inputs) == [["drops/f/d/a", "drops/f/d/b"]]
    assert raw_hashes(inputs) == {"drops/f/d/b": "1", "drops/f/d/c": "2", "drops/f/d/a": "1"}
    assert equal_inputs(inputs[:2]) == []


def test_some_are_named_all_are_counted_and_equal_tasks_are_no_note() -> None:
    assert named([["a", "b"], ["c\x1b", "d", "e"]]) == "3: a = b; c\ufffd = d = e"
    long = [[f"{number}{name}" for name in "abcdefg"] for number in range(7)]
    shown = "; ".join(" = ".join(group[:5]) + " and 2 more" for group in long[:5])
    assert named(long) == f"42: {shown}; and 2 more"
    inputs = [_input("drops/f/d/b", "1"), _input("drops/f/d/a", "1")]
    (note,) = equal_notes("toy", "toy/one", "one", inputs)
    assert (note.law, note.where) == ("equal_inputs", "toy/one")
    assert list(equal_notes("puzzles/arc_dataset", "toy/one", "one", inputs)) == []
