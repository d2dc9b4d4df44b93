"""What a commit and a removal keep, in which bounds, and what a kill leaves."""

import dataclasses
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gristmill import families
from gristmill.contract import BadInput, GristmillError
from gristmill.history import versions
from gristmill.history.rows import Kept
from gristmill.layout import HISTORY, WORK
from gristmill.provenance import verify
from gristmill.provenance.inventory import Entry
from gristmill.publish import doctor, remove
from gristmill.publish.publish import publish
from gristmill.run import locks
from tests.publish.tiny import TinyConfig, tiny_build

TINY = Entry("family/tiny")


def published(root: Path, seed: int, **more: Any) -> str:
    build = tiny_build(root, config=TinyConfig(seed=seed), **more)
    return publish(build).record.data_version


def kept(root: Path, entry: Entry = TINY) -> list[str]:
    found, wrong = versions.kept(root, entry)
    assert wrong == []
    return [each.record.data_version for each in found]


@pytest.mark.parametrize("shared", [False, True])
def test_the_oldest_versions_go_and_none_is_there_twice(tmp_path: Path, shared: bool) -> None:
    (tmp_path / "gristmill.toml").write_text("[history]\nkeep = 2\n")
    more = {"shared": True, "partition": "p0"} if shared else {}
    entry = Entry("family/tiny", "p0" if shared else None)
    made = [published(tmp_path, seed, **more) for seed in (1, 2, 3, 4)]
    assert kept(tmp_path, entry) == made[1:3]
    assert published(tmp_path, 3, **more) == made[2]
    assert kept(tmp_path, entry) == made[2:]
    listed = [each["data_version"] for each in versions.lines_of(tmp_path, entry)[0]]
    assert listed == [made[2], made[3]]
    (tmp_path / "gristmill.toml").write_text("[history]\nkeep = 0\n")
    published(tmp_path, 5, **more)
    assert kept(tmp_path, entry) == []
    assert verify(tmp_path) == []


def test_equal_contents_keep_nothing_and_a_copy_of_a_root_has_its_history(tmp_path: Path) -> None:
    published(tmp_path, 1)
    assert publish(tiny_build(tmp_path, config=TinyConfig(label="x"))).rebuilt
    assert not (tmp_path / WORK / HISTORY).exists()
    root = tmp_path / "one"
    root.mkdir()
    made = [published(root, seed) for seed in (1, 2)]
    shutil.copytree(root, tmp_path / "two")
    published(tmp_path / "two", 3)
    assert kept(root) == made[:1] and kept(tmp_path / "two") == made


@pytest.mark.parametrize("shared", [False, True])
def test_a_removed_artifact_is_kept_and_named_by_its_path(tmp_path: Path, shared: bool) -> None:
    more = {"shared": True, "partition": "p0"} if shared else {}
    entry = Entry("family/tiny", "p0" if shared else None)
    made = published(tmp_path, 1, **more)
    remove.remove_published(tmp_path, entry)
    assert kept(tmp_path, entry) == [made]
    assert versions.found(tmp_path, "family/tiny") == entry
    assert published(tmp_path, 2, **more) != made
    assert len(versions.lines_of(tmp_path, entry)[0]) == 2
    with pytest.raises(GristmillError, match="nothing is kept"):
        versions.found(tmp_path, "family/other")


def test_what_a_kill_left_is_counted_and_removed_but_not_under_a_builder(tmp_path: Path) -> None:
    published(tmp_path, 1)
    published(tmp_path, 2)
    new = versions.place_of(tmp_path, TINY) / versions.NEW
    new.mkdir()
    finding = doctor.of_history(tmp_path)
    assert "1 versions" in finding.found and "1 not whole" in finding.found
    ((left, lock),) = remove.abandoned_history(tmp_path)
    assert left == new
    with locks.locked(lock, "tiny"):
        assert [*remove.abandoned_history(tmp_path)] == []
    remove.clean_history(left, lock)
    assert not new.exists() and len(kept(tmp_path)) == 1
    new.mkdir()
    published(tmp_path, 3)
    assert not new.exists() and len(kept(tmp_path)) == 2


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Take what yields the rows of tiny artifacts; they have a small file to keep, too."""

    def patch(rows: Any) -> None:
        kind = dataclasses.replace(own("macroxue/pack"), history=rows, kept=["trace.jsonl"])
        monkeypatch.setattr(
            families, "kind_of_asset", lambda each: kind if "tiny" in each else own(each)
        )

    own: Any = families.kind_of_asset
    return patch


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("error", [BadInput("a", "is bad", 7), OSError(5, "is bad"), StopIteration])
def test_unreadable_artifacts_are_replaced(
    tmp_path: Path, read: Any, good: int, error: Any
) -> None:
    def rows(*_: Any) -> Iterator[Kept]:
        yield from [Kept("", "a", b"x", "", -1, -1, 0)] * good
        raise error

    read(rows)
    published(tmp_path, 1)
    done = publish(tiny_build(tmp_path, config=TinyConfig(seed=3)))
    assert any("cannot be read" in note and "not kept" in note for note in done.notes), done.notes
    found, _ = versions.kept(tmp_path, TINY)
    names = sorted(path.name for path in found[-1].folder.iterdir())
    assert names == ["provenance.json", "trace.jsonl"]
    with pytest.raises(GristmillError, match="no rows were kept"), found[-1].rows():
        raise AssertionError


@pytest.mark.parametrize(
    "damaged", ["family/tiny/provenance.json", ".gristmill/key", ".gristmill/history/key"]
)
def test_a_damaged_record_or_key_stops_no_build(tmp_path: Path, read: Any, damaged: str) -> None:
    read(lambda *_: [Kept("", "a", b"x", "", -1, -1, 0)])
    published(tmp_path, 1)
    published(tmp_path, 2)
    (tmp_path / damaged).write_text("{")
    done = publish(tiny_build(tmp_path, config=TinyConfig(seed=3)), rebuild=True)
    assert any("cannot be read" in note for note in done.notes), done.notes
    now = versions.published(tmp_path, TINY)
    assert now is not None and now.record == done.record


def test_a_full_disk_loses_none(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    read(lambda *_: [Kept("", "a", b"x", "", -1, -1, 0)])
    first = published(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_batch", full)
        with pytest.raises((GristmillError, OSError), match="space"):
            published(tmp_path, 2)
    (only,), wrong = versions.lines_of(tmp_path, TINY)
    assert (only["data_version"], only["published"], wrong) == (first, True, [])
    monkeypatch.undo()
    assert verify(tmp_path) == []
    published(tmp_path, 2)
    assert kept(tmp_path) == [first]
