"""The file of verdicts: what counts, what is forgotten, and what happens without it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.checking.verdicts import BUILT, FILE, Place, Verdict, Verdicts, opened
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


def test_a_later_verdict_replaces_the_earlier_one_of_the_same_partition_alone(verdicts):
    verdicts.keep(ASSET, "lawful", [Verdict("a", "", "wrong"), Verdict("b", "", "wrong")])
    verdicts.keep(ASSET, "lawful", [Verdict("a", "")])
    verdicts.keep(ASSET, "intact", [Verdict("b", "")])
    assert verdicts.problems(ASSET, "lawful") == [Verdict("b", "", "wrong")]
    verdicts.replace(ASSET, "lawful", [Verdict("c", "")])
    assert verdicts.of(ASSET, "lawful") == [Verdict("c", "")]
    assert verdicts.of(ASSET, "intact") == [Verdict("b", "")]


def test_a_failed_build_is_forgotten_when_one_succeeds_or_finds_nothing_to_do(verdicts, tmp_path):
    for key in "abc":
        verdicts.failed(ASSET, key, "no game", "mend it")
    verdicts.published(ASSET, "a", built(tmp_path, "a"))
    verdicts.not_failed(ASSET, "b")
    assert verdicts.problems(ASSET, BUILT) == [Verdict("c", "", "no game", "mend it")]
    assert verdicts.unpublished(ASSET, BUILT) == ["c"]


def test_what_was_built_elsewhere_is_checked_again(verdicts, tmp_path):
    places = {key: built(tmp_path, key) for key in "abc"}
    verdicts.register_all(ASSET, places)
    verdicts.failed(ASSET, "c", "no game", "mend it")
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


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_replaced(tmp_path, content):
    (tmp_path / WORK).mkdir()
    (tmp_path / WORK / FILE).write_bytes(content)
    with opened(tmp_path) as kept:
        kept.keep(ASSET, "lawful", [Verdict("a", "")])
    with opened(tmp_path) as kept:
        assert kept.of(ASSET, "lawful") == [Verdict("a", "")]


def test_a_data_root_that_cannot_be_written_to_keeps_nothing(tmp_path):
    with opened(Path(os.devnull)) as kept:
        kept.keep(ASSET, "lawful", [Verdict("a", "")])
        assert kept.of(ASSET, "lawful") == [Verdict("a", "")]
    with opened(Path(os.devnull)) as kept:
        assert kept.of(ASSET, "lawful") == []
