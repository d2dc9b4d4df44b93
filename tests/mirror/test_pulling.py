"""A pulled artifact is the pushed one; nothing else is ever published in its place."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror import MirrorError, versions
from gristmill.mirror.pulling import is_whole
from gristmill.provenance import Input, raw_inputs
from gristmill.publish import publish
from tests.mirror.roots import PART, built, clean, files, object_of, objects, posted, pulled, pushed
from tests.publish.tiny import TinyConfig, garbage, made_from, many_inputs, raw_file, tiny_build

pytestmark = pytest.mark.sampled(0.2)


def test_a_pulled_artifact_is_the_pushed_one(tmp_path: Path) -> None:
    sent = posted(tmp_path)
    assert sent.created and sent.version is not None and sent.version.number == 1
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.changed and got.error is None
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert clean(tmp_path / "b")
    assert garbage(tmp_path / "b") == []
    # Nothing is to be done for a build of the same: sizes and times are those of the record.
    config = TinyConfig(seed=1, rows=20)
    assert publish.is_current(tiny_build(tmp_path / "b", config=config))


def test_what_stands_is_unchanged_and_costs_nothing(tmp_path: Path) -> None:
    posted(tmp_path)
    before = objects(tmp_path / "m")
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert not sent.created and sent.sent_bytes == 0 and objects(tmp_path / "m") == before
    assert str(sent).startswith("unchanged")
    (got,) = pulled(tmp_path / "a", tmp_path / "m")
    assert not got.changed and str(got) == "unchanged  family/tiny: version 1"


def test_old_versions_stay_and_are_pulled_by_number(tmp_path: Path) -> None:
    first = built(tmp_path / "a", seed=1).record
    pushed(tmp_path / "a", tmp_path / "m")
    second = built(tmp_path / "a", seed=2).record
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.version is not None and sent.version.number == 2
    pulled(tmp_path / "b", tmp_path / "m", "family/tiny", number=1)
    assert provenance.read_record(tmp_path / "b/family/tiny/provenance.json") == first
    # A version of the mirror is replaced by another one: nothing is lost.
    pulled(tmp_path / "b", tmp_path / "m")
    assert provenance.read_record(tmp_path / "b/family/tiny/provenance.json") == second
    with pytest.raises(MirrorError, match="there is no version 3 of family/tiny"):
        pulled(tmp_path / "b", tmp_path / "m", "family/tiny", number=3)


def test_another_local_artifact_is_replaced_only_if_asked_to(tmp_path: Path) -> None:
    posted(tmp_path, seed=1)
    built(tmp_path / "b", seed=5)
    before = files(tmp_path / "b")
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is not None and "--replace" in got.error and not got.changed
    assert files(tmp_path / "b") == before
    (got,) = pulled(tmp_path / "b", tmp_path / "m", replace=True)
    assert got.changed and files(tmp_path / "b") == files(tmp_path / "a")


def test_partitions_of_a_shared_folder_are_artifacts_of_their_own(tmp_path: Path) -> None:
    for seed, key in enumerate(("p1", "p2", "p3")):
        posted(tmp_path, "family/shared", seed, partition=key, shared=True)
    pulled(tmp_path / "b", tmp_path / "m", "family/shared@p2")
    assert sorted(path.name for path in (tmp_path / "b/family/shared/provenance").iterdir()) == [
        "p2.json"
    ]
    built(tmp_path / "b", "family/shared", 9, partition="p9", shared=True)
    pulled(tmp_path / "b", tmp_path / "m")
    built(tmp_path / "a", "family/shared", 9, partition="p9", shared=True)
    names = set(files(tmp_path / "a")) - {"family/shared/provenance/p9.json"}
    assert set(files(tmp_path / "b")) - {"family/shared/provenance/p9.json"} == names
    assert clean(tmp_path / "b")


def test_a_nested_artifact_comes_after_the_one_around_it(tmp_path: Path) -> None:
    built(tmp_path / "a", "family/outer")
    posted(tmp_path, "family/outer/in/inner", outer="family/outer")
    (got,) = pulled(tmp_path / "b", tmp_path / "m", "family/outer/in")
    assert got.error == "is nested in family/outer: pull that artifact first"
    assert not any(each.error for each in pulled(tmp_path / "b", tmp_path / "m"))
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_a_nested_version_stays_with_the_data_version_around_it(tmp_path: Path) -> None:
    """It was made from that one: the next one has none until it is built again."""
    a, b, fresh, mirror = (tmp_path / name for name in ("a", "b", "fresh", "m"))
    built(a, "family/outer", 1)
    built(a, "family/outer/in/inner", 1, outer="family/outer")
    pushed(a, mirror)
    pulled(b, mirror)
    built(a, "family/outer", 2)
    assert not any(each.error for each in pushed(a, mirror))
    for root in (fresh, b):
        outer, inner = pulled(root, mirror)
        assert outer.changed and outer.error is None and inner.error is None
        assert str(inner).startswith("skipped    family/outer/in/inner: version 1 is of another ")
        assert files(root) == files(a) and clean(root) and garbage(root) == []
    (got,) = pulled(b, mirror, "family/outer/in/inner")
    assert got.error is not None and "is of another data version of family/outer" in got.error
    # What stands here is right, and stays though the mirror has an older one.
    built(b, "family/outer/in/inner", 1, outer="family/outer")
    before = files(b)
    assert [each.changed for each in pulled(b, mirror, replace=True)] == [False, False]
    assert files(b) == before
    # The same bytes in another data version around them are another version.
    built(a, "family/outer/in/inner", 1, outer="family/outer")
    _, sent = pushed(a, mirror)
    assert sent.created and sent.version is not None and sent.version.number == 2
    assert not pushed(a, mirror)[1].created
    outer, inner = pulled(fresh, mirror)
    assert inner.changed and inner.skipped is None and files(fresh) == files(a)


def test_a_version_that_is_nested_elsewhere_is_refused(tmp_path: Path) -> None:
    built(tmp_path / "a", "family/outer", 1)
    posted(tmp_path, "family/outer/inner", 1, outer="family/outer")
    file = tmp_path / "m/artifacts/family/outer/inner/@/00000001.json"
    file.write_text(file.read_text().replace('"family/outer"', '"family/other"'))
    outer, inner = pulled(tmp_path / "b", tmp_path / "m")
    assert outer.changed
    assert inner.error is not None and "says that it is nested in family/other" in inner.error


def test_names_are_paths_folders_and_assets(tmp_path: Path) -> None:
    built(tmp_path / "a", "one/x", asset="test/x")
    built(tmp_path / "a", "one/y", asset="test/y")
    posted(tmp_path, "two/z", asset="test/x")

    def names(*wanted: str) -> list[str]:
        return [each.title for each in pulled(tmp_path / "b", tmp_path / "m", *wanted)]

    assert names("one") == ["one/x", "one/y"]
    assert names("one/y/") == ["one/y"]
    assert names("test/x") == ["one/x", "two/z"]
    assert names("test/y", "two") == ["one/y", "two/z"]
    with pytest.raises(GristmillError, match="no artifact or asset on is here"):
        names("on")
    with pytest.raises(GristmillError, match="no artifact or asset on is here"):
        pushed(tmp_path / "a", tmp_path / "m", "on")
    with pytest.raises(GristmillError, match="2 are asked for: name one"):
        pulled(tmp_path / "b", tmp_path / "m", "one", number=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MirrorError, match="no version of any artifact is here"):
        pulled(tmp_path / "b", tmp_path / "empty")


def test_a_wrong_byte_on_the_store_is_never_published(tmp_path: Path) -> None:
    posted(tmp_path, seed=1)
    pulled(tmp_path / "b", tmp_path / "m")
    before = files(tmp_path / "b")
    built(tmp_path / "a", seed=2)
    old = set(objects(tmp_path / "m"))
    pushed(tmp_path / "a", tmp_path / "m")

    def refused() -> str:
        shutil.rmtree(tmp_path / "b/family/.gristmill/slots/tiny", ignore_errors=True)
        (got,) = pulled(tmp_path / "b", tmp_path / "m")
        assert got.error is not None and not got.changed and files(tmp_path / "b") == before
        return got.error

    new = sorted(set(objects(tmp_path / "m")) - old)
    for wrong in new[:: len(new) // 6]:
        data = wrong.read_bytes()
        wrong.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        assert wrong.name in refused()
        wrong.write_bytes(data[:-1])
        assert wrong.name in refused()
        wrong.unlink()
        assert "is gone" in refused()
        # A push that reads back writes again what is wrong or gone.
        wrong.write_bytes(data[:1] * len(data))
        (sent,) = pushed(tmp_path / "a", tmp_path / "m", read_back=True)
        assert sent.error is None and sent.sent_bytes in (len(data), 2 * len(data))  # a part twice
        assert wrong.read_bytes() == data
    # The store may have been refused before a slot was made.
    shutil.rmtree(tmp_path / "b/family/.gristmill/slots/tiny", ignore_errors=True)
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_a_wrong_version_file_is_refused(tmp_path: Path) -> None:
    posted(tmp_path)
    file = tmp_path / "m/artifacts/family/tiny/@/00000001.json"
    good = file.read_text()
    for old, new in (
        ('"number": 1', '"number": 2'),
        ("family/tiny", "family/else"),
        ('"format": 1', '"format": 9'),
        ('"format"', '"other"'),
    ):
        file.write_text(good.replace(old, new))
        (got,) = pulled(tmp_path / "b", tmp_path / "m")
        assert got.error is not None and "version 1 of family/tiny" in got.error
        assert str(got).startswith("failed     family/tiny: ")
    # The record must be that of the version.
    version = provenance.read_record(tmp_path / "a/family/tiny/provenance.json").data_version
    file.write_text(good.replace(version, "0" * 64))
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is not None and "its record is not of what the mirror lists" in got.error
    assert files(tmp_path / "b") == {}


@pytest.mark.parametrize("left", ["", '{"format": 1, "num', "[]"])
def test_a_version_that_cannot_be_read_stops_no_other(tmp_path: Path, left: str) -> None:
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    for name in ("family/x", "family/y"):
        built(a, name, 1)
    pushed(a, mirror)
    built(a, "family/x", 2)
    pushed(a, mirror)
    (mirror / "artifacts/family/x/@/00000002.json").write_text(left)
    bad, good = pulled(b, mirror)
    assert good.changed and not bad.changed
    assert (
        bad.error is not None and "push it again, or pull an earlier one by --version" in bad.error
    )
    (got,) = pulled(b, mirror, "family/x", number=1)
    assert got.changed and clean(b)
    listed = list(versions.lines(str(mirror)))
    assert len(listed) == 3 and "version 2 of family/x" in listed[0]
    assert [each.error is None for each in pulled(b, mirror, "test/tiny")] == [True, False]
    x, y = pushed(a, mirror)
    assert x.created and x.version is not None and x.version.number == 3 and not y.created
    assert "it comes after one that cannot be read: version 2 of family/x" in str(x)
    assert [each.error for each in pulled(b, mirror)] == [None, None]
    assert files(b) == files(a)


@pytest.mark.parametrize("what", ["large", "link"])
@pytest.mark.parametrize("place", ["version", "manifest", "part"])
def test_what_is_too_large_or_no_file_is_not_read(tmp_path: Path, place: str, what: str) -> None:
    """It fails its artifact alone, and --read-back writes what was an object again."""
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    for seed, name in enumerate(("family/x", "family/y")):
        built(a, name, seed)
    version = pushed(a, mirror)[0].version
    part = (a / "family/x/train/steps.npy").read_bytes()[-PART:]
    assert version is not None
    path = {
        "version": mirror / "artifacts/family/x/@/00000001.json",
        "manifest": mirror / "objects" / version.manifest[:2] / version.manifest,
        "part": object_of(mirror, part),
    }[place]
    if what == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        reason = "is no regular file, and is not read: "
    else:
        os.truncate(path, (64 << 20) + 1)
        most = f"{len(part)}" if place == "part" else "67,108,864"
        reason = f"has 67,108,865 bytes, and {most} at most are read: "
    bad, good = pulled(b, mirror)
    cure = "push it again" if place == "version" else "push the artifact again with --read-back"
    assert bad.error is not None and f"{path.relative_to(mirror)}: {reason}{cure}" in bad.error
    assert good.changed and not (b / "family/x").exists()
    assert not any(each.error for each in pushed(a, mirror, read_back=True))
    assert [each.error for each in pulled(b, mirror)] == [None, None] and files(b) == files(a)


def test_a_sha256_pins_a_version(tmp_path: Path) -> None:
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    pins = []
    for seed in (1, 2):
        built(a, seed=seed)
        (sent,) = pushed(a, mirror)
        assert sent.version is not None and str(sent).endswith(f", sha256 {sent.version.sha256}")
        pins.append(sent.version.sha256)
    first, second = pins
    assert str(pushed(a, mirror)[0]) == f"unchanged  family/tiny: version 2, sha256 {second}"
    paths = sorted((mirror / "artifacts/family/tiny/@").iterdir())
    assert pins == [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert [line[-64:] for line in versions.lines(str(mirror))] == [second, first]
    (got,) = pulled(b, mirror, "test/tiny", sha256=first)
    assert got.changed and got.version is not None and got.version.number == 1
    (got,) = pulled(b, mirror, "family/tiny", number=1, sha256=first)
    assert not got.changed and got.error is None
    before = files(b)
    with pytest.raises(MirrorError, match=f"version 2 of .* has the sha256 {second}, and {first}"):
        pulled(b, mirror, "family/tiny", number=2, sha256=first)
    # Another version under the number: it is not what was pinned, nor is one that is no version.
    for text in (paths[1].read_text().replace('"files": 5', '"files": 6'), "[]"):
        paths[1].write_text(text)
        says = f"no version of family/tiny has the sha256 {second}: `gristmill pull"
        with pytest.raises(MirrorError, match=says):
            pulled(b, mirror, "family/tiny", sha256=second)
    assert files(b) == before
    assert pulled(b, mirror, "family/tiny", sha256=first)[0].error is None
    with pytest.raises(GristmillError, match="a version is of one artifact, and 2 are asked for"):
        built(a, "family/other", 1)
        pushed(a, mirror)
        pulled(b, mirror, "family", sha256=pins[0])


def test_a_number_is_of_the_artifact_itself_where_others_are_nested_in_it(tmp_path: Path) -> None:
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    built(a, "family/outer", 1)
    built(a, "family/outer/in/inner", 1, outer="family/outer")
    pushed(a, mirror)
    (got,) = pulled(b, mirror, "family/outer", number=1)
    assert got.changed and got.title == "family/outer" and not (b / "family/outer/in").exists()
    (got,) = pulled(b, mirror, "family/outer/in/inner/", number=1)
    assert got.changed and files(a) == files(b)
    with pytest.raises(GristmillError, match="name one"):
        pulled(b, mirror, "family", number=1)


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    for read in (
        lambda: pulled(tmp_path / "b", tmp_path / "m"),
        lambda: list(versions.lines(str(tmp_path / "m"))),
    ):
        with pytest.raises(MirrorError, match="there is no such folder: a push makes one"):
            read()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("damaged", ["provenance.json", "inputs.jsonl"])
def test_a_record_that_was_edited_is_fetched_again(tmp_path: Path, damaged: str) -> None:
    posted(tmp_path, inputs=many_inputs(tmp_path / "a"))
    pulled(tmp_path / "b", tmp_path / "m")
    file = tmp_path / "b/family/tiny" / damaged
    edited = file.read_bytes().replace(b"test/", b"best/")
    assert edited != file.read_bytes()
    file.write_bytes(edited)
    if damaged == "inputs.jsonl":
        file.unlink()
        (got,) = pulled(tmp_path / "b", tmp_path / "m")
        assert got.changed
        file.write_bytes(edited)
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.changed and clean(tmp_path / "b")
    assert files(tmp_path / "b")["family/tiny/" + damaged] != edited
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert not got.changed


def test_parts_that_were_fetched_are_kept(tmp_path: Path) -> None:
    posted(tmp_path)
    data = (tmp_path / "a/family/tiny/train/steps.npy").read_bytes()
    gone = object_of(tmp_path / "m", data[2 * PART : 3 * PART])
    kept = gone.read_bytes()
    gone.unlink()
    (got,) = pulled(tmp_path / "b", tmp_path / "m", parallel=1)
    assert got.error is not None
    # What is in the slot already need not be in the mirror any more.
    first = object_of(tmp_path / "m", data[:PART])
    first.unlink()
    gone.write_bytes(kept)
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is None and files(tmp_path / "b") == files(tmp_path / "a")


def test_inputs_that_are_not_here_are_counted(tmp_path: Path) -> None:
    given = made_from(built(tmp_path / "a", "family/source").record)
    posted(tmp_path, "family/made", inputs=[given])
    (got,) = pulled(tmp_path / "b", tmp_path / "m", "family/made")
    assert got.absent == 1
    assert [item.law for item in provenance.verify(tmp_path / "b", check_laws=False)] == ["input"]
    assert clean(tmp_path / "b")
    # With what it was made from, lineage is followed as where it was built.
    assert not any(each.absent for each in pulled(tmp_path / "b", tmp_path / "m"))
    assert provenance.verify(tmp_path / "b", check_laws=False) == []


def test_a_folder_without_a_record_is_never_replaced(tmp_path: Path) -> None:
    posted(tmp_path)
    (tmp_path / "b/family/tiny").mkdir(parents=True)
    (tmp_path / "b/family/tiny/mine").write_text("mine")
    (got,) = pulled(tmp_path / "b", tmp_path / "m", replace=True)
    assert got.error is not None and "has no provenance record" in got.error
    assert (tmp_path / "b/family/tiny/mine").read_text() == "mine"


def test_contents_of_an_earlier_version_are_replaced_whoever_built_them(tmp_path: Path) -> None:
    for root in ("a", "b"):
        built(tmp_path / root, seed=1)
    pushed(tmp_path / "a", tmp_path / "m")
    posted(tmp_path, seed=2)
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is None and got.changed
    assert files(tmp_path / "b") == files(tmp_path / "a")


@pytest.mark.parametrize("shared", [False, True])
def test_the_record_of_another_host_tells_nothing_of_raw_files_here(
    tmp_path: Path, shared: bool
) -> None:
    for root in ("a", "b"):
        os.utime(raw_file(tmp_path / root, data=b"raw " + root.encode()), ns=(0, 0))

    def inputs(root: str) -> list[Input]:
        record = provenance.record_path(tmp_path / root / "family/tiny", "p", shared)
        known = raw_inputs.known_hashes(record)
        files = [tmp_path / root / "drops/raw"]
        return raw_inputs.raw_inputs(tmp_path / root, files, "raw", "p", known)

    posted(tmp_path, inputs=inputs("a"), shared=shared, partition="p")
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is None
    assert inputs("b")[0].sha256 == hashlib.sha256(b"raw b").hexdigest()
    assert built(tmp_path / "b", inputs=inputs("b"), shared=shared, partition="p").rebuilt
    assert provenance.verify(tmp_path / "b", check_laws=False) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built(tmp_path)
    return tmp_path / "family/tiny"


def test_an_artifact_is_whole_until_a_file_of_it_is_gone_or_another(folder: Path) -> None:
    record = provenance.read_record(folder / provenance.RECORD)
    assert is_whole(folder, record)
    file = folder / record.outputs[0].path
    data, times = file.read_bytes(), file.stat()
    file.unlink()
    assert not is_whole(folder, record)
    for wrong in (data[:-1], data + b"x"):
        file.write_bytes(wrong)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not is_whole(folder, record)
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert not is_whole(folder, record)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_whole(folder, record)
