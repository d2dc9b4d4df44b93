"""The file of verdicts: what counts, and what is forgotten."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.checking.verdict_file import opened
from assets.checking.verdicts import Place, Verdict, Verdicts, stamp_of
from gristmill.data_root.reports import BUILT
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


def test_only_these_verdicts_are_kept(verdicts):
    verdicts.keep(ASSET, BUILT, [Verdict("a", "", "no game"), Verdict("b", "", "no game")])
    verdicts.only(ASSET, BUILT, [Verdict("b", "", "no word")])
    assert verdicts.of(ASSET, BUILT) == [Verdict("b", "", "no word")]
