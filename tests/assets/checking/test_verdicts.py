"""Verdicts: kept in a file, and gone on without where it cannot be used."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from assets.checking import verdicts as module
from assets.checking.verdicts import Place, Verdict, Verdicts, kept, opened, stamp_of
from gristmill.data_root.states import BUILT, FILE, Reports, reports
from gristmill.layout import WORK
from gristmill.publish.publish import publish
from tests.publish.tiny import TinyConfig, tiny_build

ASSET = "test/tiny"


@pytest.fixture
def verdicts(tmp_path: Path) -> Iterator[Verdicts]:
    with opened(tmp_path) as kept:
        yield kept


def built(root: Path, key: str, seed: int = 1) -> Place:
    build = tiny_build(root, f"family/{key}", partition=key, config=TinyConfig(seed=seed))
    return Place(build.record_path, publish(build).record.data_version)


def test_a_verdict_counts_for_the_data_version_that_stands(verdicts, tmp_path):
    place = built(tmp_path, "a")
    verdicts.published(ASSET, "a", place)
    assert verdicts.missing(ASSET, "lawful") == ["a"]
    verdicts.keep(ASSET, "lawful", [Verdict("a", place.data_version, "wrong", "mend it")])
    assert verdicts.of(ASSET, "lawful") == [Verdict("a", place.data_version, "wrong", "mend it")]
    assert verdicts.problems(ASSET, "lawful") == verdicts.of(ASSET, "lawful")
    assert verdicts.missing(ASSET, "lawful") == []
    verdicts.published(ASSET, "a", built(tmp_path, "a", seed=2))
    assert verdicts.of(ASSET, "lawful") == verdicts.problems(ASSET, "lawful") == []
    assert verdicts.missing(ASSET, "lawful") == ["a"]


def test_a_later_verdict_replaces_that_of_its_partition_alone_and_only_verdicts_are_kept(verdicts):
    verdicts.keep(ASSET, "lawful", [Verdict("a", "", "wrong"), Verdict("b", "", "wrong")])
    verdicts.keep(ASSET, "lawful", [Verdict("a", "")])
    verdicts.keep(ASSET, "intact", [Verdict("b", "")])
    assert verdicts.problems(ASSET, "lawful") == [Verdict("b", "", "wrong")]
    verdicts.replace(ASSET, "lawful", [Verdict("c", "")])
    assert verdicts.of(ASSET, "lawful") == [Verdict("c", "")]
    assert verdicts.of(ASSET, "intact") == [Verdict("b", "")]
    verdicts.keep(ASSET, BUILT, [Verdict("a", "", "no game"), Verdict("b", "", "no game")])
    verdicts.only(ASSET, BUILT, [Verdict("b", "", "no word")])
    assert verdicts.of(ASSET, BUILT) == [Verdict("b", "", "no word")]


def test_a_failed_build_is_forgotten_when_one_succeeds_or_finds_nothing_to_do(verdicts, tmp_path):
    for key in "abc":
        verdicts.keep(ASSET, BUILT, [Verdict(key, "", "no game", "mend it")])
    verdicts.published(ASSET, "a", built(tmp_path, "a"))
    verdicts.not_failed(ASSET, "b")
    assert verdicts.problems(ASSET, BUILT) == [Verdict("c", "", "no game", "mend it")]
    assert verdicts.unpublished(ASSET, BUILT) == ["c"]


def test_what_was_built_elsewhere_is_checked_again(verdicts, tmp_path):
    places = {key: built(tmp_path, key) for key in "abc"}
    verdicts.register_all(ASSET, places)
    verdicts.keep(ASSET, BUILT, [Verdict("c", "", "no game", "mend it")])
    for name in ("intact", "lawful"):
        verdicts.keep(ASSET, name, [Verdict(key, places[key].data_version) for key in "abc"])
    verdicts.refresh(ASSET, ["intact"])
    assert verdicts.missing(ASSET, "intact") == []
    # a: other contents. b: the same contents in other files. c: gone.
    built(tmp_path, "a", seed=2)
    copy = places["b"].record.with_name("copy")
    copy.write_bytes(places["b"].record.read_bytes())
    copy.rename(places["b"].record)
    places["c"].record.unlink()
    verdicts.refresh(ASSET, ["intact"])
    assert verdicts.missing(ASSET, "intact") == ["a", "b"]
    assert verdicts.missing(ASSET, "lawful") == ["a"]
    assert verdicts.subjects(ASSET) == ["a", "b"]
    assert [one.subject for one in verdicts.problems(ASSET, BUILT)] == ["c"]


def test_a_build_leaves_no_verdict_on_the_old_files(verdicts, tmp_path):
    place = built(tmp_path, "a")
    verdicts.published(ASSET, "a", place)
    for name in ("intact", "lawful"):
        verdicts.keep(ASSET, name, [Verdict("a", place.data_version, "damaged")])
    verdicts.published(ASSET, "a", place, ["intact"])
    assert verdicts.problems(ASSET, "intact") == []
    assert len(verdicts.problems(ASSET, "lawful")) == 1


def test_a_place_is_below_the_data_root_which_may_move(tmp_path):
    (tmp_path / "old").mkdir()
    with opened(tmp_path / "old") as kept:
        place = built(tmp_path / "old", "a")
        kept.published(ASSET, "a", place)
        assert kept.place(ASSET, "a") == place.record
        assert kept.place(ASSET, "b") is None
        assert not kept.knows(ASSET)
        kept.register_all(ASSET, {"a": place})
    (tmp_path / "old").rename(tmp_path / "new")
    with opened(tmp_path / "new") as kept:
        assert kept.knows(ASSET)
        assert kept.place(ASSET, "a") == tmp_path / "new/family/a/provenance.json"


def test_another_process_sees_what_is_kept_and_the_revision_says_so(verdicts, tmp_path):
    before = verdicts.revision()
    verdicts.keep(ASSET, "lawful", [Verdict("a", "")])
    assert verdicts.revision() == before
    with opened(tmp_path) as other:
        assert other.of(ASSET, "lawful") == [Verdict("a", "")]
        other.keep(ASSET, "lawful", [Verdict("b", "")])
    assert verdicts.revision() != before


def test_a_record_that_cannot_be_read_keeps_findings_and_loses_good_verdicts(verdicts, tmp_path):
    places = {key: built(tmp_path, key) for key in "abc"}
    verdicts.register_all(ASSET, places)
    verdicts.keep(ASSET, "intact", [Verdict(key, places[key].data_version) for key in "abc"])
    verdicts.keep(ASSET, "lawful", [Verdict("a", places["a"].data_version, "wrong")])
    places["a"].record.write_bytes(b"{")
    places["b"].record.unlink()
    places["b"].record.symlink_to("nowhere")
    verdicts.refresh(ASSET, ["intact"])
    assert verdicts.subjects(ASSET) == ["a", "b", "c"]
    assert verdicts.missing(ASSET, "intact") == ["a", "b"]
    assert [one.subject for one in verdicts.problems(ASSET, "lawful")] == ["a"]


def test_a_check_of_everything_leaves_what_was_published_meanwhile(verdicts, tmp_path):
    before = {key: built(tmp_path, key) for key in "ab"}
    verdicts.register_all(ASSET, before)
    verdicts.keep(ASSET, "lawful", [Verdict("gone", "", "wrong")])
    # While the check looks at a and b, another run builds b again, and c.
    after = {"b": built(tmp_path, "b", seed=2), "c": built(tmp_path, "c")}
    for key, place in after.items():
        verdicts.published(ASSET, key, place)
        verdicts.keep(ASSET, "lawful", [Verdict(key, place.data_version, "odd")])
    verdicts.replace(ASSET, "lawful", [Verdict(key, before[key].data_version) for key in "ab"])
    assert [one.subject for one in verdicts.of(ASSET, "lawful")] == ["a", "b", "c"]
    assert [one.subject for one in verdicts.problems(ASSET, "lawful")] == ["b", "c"]


def test_a_record_that_is_replaced_after_it_was_read_is_read_again(verdicts, tmp_path):
    before = built(tmp_path, "a")
    read = Place(before.record, before.data_version, stamp_of(str(before.record)))
    built(tmp_path, "a", seed=2)
    verdicts.register_all(ASSET, {"a": read})
    verdicts.keep(ASSET, "lawful", [Verdict("a", before.data_version)])
    verdicts.refresh(ASSET, [])
    assert verdicts.missing(ASSET, "lawful") == ["a"]


ASSET = "test/tiny"
FOUND = [Verdict("a", "")]


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the file as another process that is in the middle of a change."""
    with closing(sqlite3.connect(root / WORK / FILE, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield


def of(root: Path) -> list[Verdict]:
    with opened(root) as verdicts:
        return verdicts.of(ASSET, "lawful")


def keep(root: Path) -> list[str]:
    """Keep a verdict; the lines that say why it is lost."""
    lines: list[str] = []
    with kept(root, lines.append) as file:
        file.do(lambda verdicts: verdicts.keep(ASSET, "lawful", FOUND))
        assert file.do(lambda verdicts: verdicts.of(ASSET, "lawful")) == FOUND
        assert file.is_lost is bool(lines)
    return lines


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_replaced(tmp_path, content):
    (tmp_path / WORK).mkdir()
    (tmp_path / WORK / FILE).write_bytes(content)
    assert keep(tmp_path) == []
    assert of(tmp_path) == FOUND


def test_a_data_root_that_cannot_be_written_to_keeps_nothing(tmp_path):
    with opened(Path(os.devnull)) as kept:
        kept.keep(ASSET, "lawful", FOUND)
        assert kept.of(ASSET, "lawful") == FOUND
    assert of(Path(os.devnull)) == []


def test_a_file_that_stays_locked_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0)
    with opened(tmp_path) as verdicts:
        verdicts.register_all(ASSET, {})
        verdicts.keep(ASSET, "intact", FOUND)
    with locked(tmp_path):
        (line,) = keep(tmp_path)
        assert "locked" in line
    with opened(tmp_path) as verdicts:
        assert not verdicts.knows(ASSET)
        assert verdicts.of(ASSET, "intact") == []
    assert keep(tmp_path) == []


OF_0_9 = (
    "create table assets (asset text primary key); "
    "create table verdicts (asset text, name text, subject text, data_version text, "
    "problem text, cure text, primary key (asset, name, subject)); "
    f"insert into assets values ('{ASSET}'); "
    f"insert into verdicts values ('{ASSET}', 'lawful', 'b', '', null, '')"
)


@pytest.mark.parametrize("tables", ["create table verdicts (asset text)", OF_0_9])
def test_a_file_with_other_tables_is_begun_again_and_nothing_counts_as_checked(tmp_path, tables):
    (tmp_path / WORK).mkdir()
    with closing(sqlite3.connect(tmp_path / WORK / FILE)) as old:
        old.executescript(tables)
    assert reports(tmp_path) == Reports()
    with opened(tmp_path) as verdicts:
        assert not verdicts.knows(ASSET)
        assert verdicts.of(ASSET, "lawful") == []
    assert keep(tmp_path) == []
    assert of(tmp_path) == FOUND


def test_on_a_full_disk_the_work_goes_on_in_memory(tmp_path, monkeypatch):
    prepared = module._prepared

    def full(path: Path | str) -> sqlite3.Connection:
        connection = prepared(path)
        if path != ":memory:":
            connection.execute("pragma max_page_count = 1")
        return connection

    monkeypatch.setattr(module, "_prepared", full)
    long = [Verdict(f"k{n}", "", "x" * 1000) for n in range(100)]
    lines: list[str] = []
    with kept(tmp_path, lines.append) as file:
        file.do(lambda verdicts: verdicts.keep(ASSET, "lawful", long))
        assert len(file.do(lambda verdicts: verdicts.of(ASSET, "lawful"))) == 100
    assert "full" in lines[0]
    assert not (tmp_path / WORK / FILE).exists()


def test_errors_of_the_work_are_raised_and_broken_files_begun_again(tmp_path):
    def work(_: object) -> None:
        raise sqlite3.ProgrammingError("no error of the file")

    with kept(tmp_path, lambda _: None) as file, pytest.raises(sqlite3.ProgrammingError):
        file.do(work)
    with opened(tmp_path) as verdicts:
        verdicts.keep(ASSET, "lawful", [Verdict(f"k{n}", "", "x" * 1000) for n in range(20)])
    path = tmp_path / WORK / FILE
    octets = path.read_bytes()
    path.write_bytes(octets[:8192] + b"\xff" * (len(octets) - 8192))
    lines: list[str] = []
    with kept(tmp_path, lines.append) as file:
        assert file.do(lambda verdicts: verdicts.of(ASSET, "lawful")) == []
    assert "malformed" in lines[0]
    assert not path.exists()
    assert keep(tmp_path) == []


def test_a_data_root_that_is_gone_is_not_made(tmp_path: Path) -> None:
    lines: list[str] = []
    with kept(tmp_path / "gone", lines.append) as file:
        assert file.is_lost
    assert not (tmp_path / "gone").exists()
    assert "No such file or directory" in lines[0]
