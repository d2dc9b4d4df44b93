"""A version in a mirror is what its record says, and a pulled artifact is the pushed one."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror import store, transfers
from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.transfers import MIRROR, fetched, stands
from gristmill.mirror.versions import Transfer, Version, lines
from gristmill.provenance import Input, published_version, raw_inputs
from gristmill.provenance.inventory import Entry
from gristmill.publish import publish
from gristmill.reading.folder import OpenFolder
from tests.mirror.roots import built, clean, files, objects, posted, pulled, pushed, versions
from tests.mirror.s3 import served
from tests.paths import ran
from tests.publish.tiny import TinyConfig, garbage, made_from, many_inputs, raw_file, tiny_build
from tests.read_only import read_only


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read and sent in several pieces."""
    monkeypatch.setattr(store, "PIECE", 64)


@pytest.mark.parametrize("name", ["train/steps.npy", "metadata.db", "place.json"])
@pytest.mark.parametrize("piece", [64, 1 << 20])
def test_a_wrong_byte_in_a_local_file_is_never_pushed(tmp_path, name, piece, monkeypatch):
    monkeypatch.setattr(store, "PIECE", piece)
    built(tmp_path / "a", "family/wrong")
    built(tmp_path / "a", "family/right", seed=2)
    file, pipe = tmp_path / "a/family/wrong" / name, tmp_path / "pipe"
    data = file.read_bytes()
    for wrong in (data[:-1] + bytes([data[-1] ^ 1]), data[:-1], data + b"x", None):
        file.unlink()
        if wrong is not None:
            file.write_bytes(wrong)
        done = pushed(tmp_path / "a", tmp_path / "m")
        assert [each.title for each in done if each.error] == ["family/wrong"]
        assert str(file) in str(done[1].error) and str(done[1]).startswith("failed     family/wron")
        assert versions(tmp_path / "m", "family/wrong") == []
        assert data not in [path.read_bytes() for path in objects(tmp_path / "m")]
        assert wrong not in [path.read_bytes() for path in objects(tmp_path / "m")]
        file.touch()
    pipe.write_bytes(data)
    file.unlink()
    file.symlink_to(pipe)
    assert pushed(tmp_path / "a", tmp_path / "m")[1].error is not None
    file.unlink()
    file.write_bytes(data)
    assert not any(each.error for each in pushed(tmp_path / "a", tmp_path / "m"))


def test_a_wrong_record_is_not_pushed(tmp_path, monkeypatch):
    built(tmp_path / "a")
    file = tmp_path / "a/family/tiny/provenance.json"
    record = json.loads(file.read_text())
    for change, said in (
        ({"seconds": 99.0}, "was changed after it was written: it is not pushed"),
        ({"schema_version": 99}, "schema version"),
    ):
        file.write_text(json.dumps(record | change))
        (sent,) = pushed(tmp_path / "a", tmp_path / "m")
        assert sent.error is not None and said in sent.error and str(file) in sent.error
    file.write_text(json.dumps(record))
    monkeypatch.setattr(transfers, "MOST", 1000)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.error is not None and "bytes, and a mirror takes 1,000: build" in sent.error
    shutil.move(tmp_path / "a/family/tiny", tmp_path / "a/family/moved")
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.error is not None and "is of family/tiny, which was moved" in sent.error
    shutil.move(tmp_path / "a/family/moved", tmp_path / "a/family/a b")
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.error is not None and "cannot be pushed: the name 'a b'" in sent.error
    assert objects(tmp_path / "m") == []


def test_what_is_there_is_not_sent_again_and_a_rebuild_of_the_same_is_no_version(tmp_path):
    first = posted(tmp_path)
    assert first.created and first.sent_bytes == sum(map(len, files(tmp_path / "a").values()))
    built(tmp_path / "a", rebuild=True)
    (again,) = pushed(tmp_path / "a", tmp_path / "m")
    assert (again.created, again.sent_bytes) == (False, 0) and str(again).startswith("unchanged  ")
    assert again.said == first.said.partition(",  ")[0].rpartition(", 5 files")[0]
    # Payload that another artifact or version has is there.
    two = posted(tmp_path, "family/two")
    assert two.created is False or two.sent_bytes < first.sent_bytes
    before = {path: path.stat().st_ino for path in objects(tmp_path / "m")}
    built(tmp_path / "a", seed=2)
    pushed(tmp_path / "a", tmp_path / "m")
    assert {path: path.stat().st_ino for path in before} == before
    assert len(versions(tmp_path / "m")) == 2


def test_a_push_that_was_stopped_goes_on(tmp_path, monkeypatch):
    built(tmp_path / "a")
    wrote: list[str] = []
    write = Store.write

    def failing(self: Store, key: str, pieces: Iterable[bytes], size: int) -> None:
        if len(wrote) == 2:
            raise OSError("the line is cut")
        wrote.append(key)
        write(self, key, pieces, size)

    monkeypatch.setattr(Store, "write", failing)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert sent.error is not None and "the line is cut" in sent.error
    assert len(objects(tmp_path / "m")) == 2 and versions(tmp_path / "m") == []
    monkeypatch.setattr(Store, "write", write)
    before = sum((tmp_path / "m" / key).stat().st_size for key in wrote)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.created
    assert sent.sent_bytes == sum(map(len, files(tmp_path / "a").values())) - before


def test_a_rebuild_meanwhile_is_pushed_whole(tmp_path, monkeypatch):
    built(tmp_path / "a", seed=1)
    rebuilt: list[int] = []
    right = Transfer._right

    def slow(self: Transfer, folder: OpenFolder, file: provenance.Output) -> object:
        if not rebuilt:
            rebuilt.append(1)
            built(tmp_path / "a", seed=2)
        return right(self, folder, file)

    monkeypatch.setattr(Transfer, "_right", slow)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert sent.error is None
    pulled(tmp_path / "b", tmp_path / "m")
    built(tmp_path / "c", seed=1)
    first, now = (files(tmp_path / root)["family/tiny/train/steps.npy"] for root in ("c", "a"))
    assert clean(tmp_path / "b")
    assert files(tmp_path / "b")["family/tiny/train/steps.npy"] in (first, now)


def test_versions_follow_whatever_the_clock_says_and_missing_inputs_are_counted(tmp_path):
    posted(tmp_path, seed=1)
    (old,) = versions(tmp_path / "m")
    old.rename(old.with_name("2999" + old.name[4:]))
    posted(tmp_path, seed=2)
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert not pushed(tmp_path / "a", tmp_path / "m")[0].created
    given = made_from(built(tmp_path / "a", "family/source").record)
    posted(tmp_path, "family/made", inputs=[given])
    (got,) = pulled(tmp_path / "b", tmp_path / "m", "family/made")
    assert got.absent == 1
    assert [item.law for item in provenance.verify(tmp_path / "b", check_laws=False)] == ["input"]
    # With what it was made from, lineage is followed as where it was built.
    assert not any(each.absent for each in pulled(tmp_path / "b", tmp_path / "m"))
    assert provenance.verify(tmp_path / "b", check_laws=False) == []


def test_a_wrong_object_in_a_folder_is_written_again_before_a_version_names_it(tmp_path):
    """Another artifact shares it, or a push that a power loss ended left it."""
    posted(tmp_path, "family/one")
    held = {path: path.read_bytes() for path in objects(tmp_path / "m") if "objects" in path.parts}
    for number, (path, data) in enumerate(held.items()):
        wrong = path.with_name("elsewhere")
        wrong.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        path.unlink()
        wrong.rename(path) if number else path.symlink_to(wrong)
    built(tmp_path / "b", "family/two")
    (sent,) = pushed(tmp_path / "b", tmp_path / "m")
    assert held and sent.created
    assert {path: path.read_bytes() for path in held} == held
    assert not any(each.error for each in pulled(tmp_path / "c", tmp_path / "m"))


@pytest.mark.parametrize("wrong", [b"", b"{}", None])
def test_a_damaged_version_is_followed_by_a_whole_one(tmp_path, wrong):
    posted(tmp_path)
    (path,) = versions(tmp_path / "m")
    path.unlink() if wrong is None else path.write_bytes(wrong)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.created
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert files(tmp_path / "b") == files(tmp_path / "a")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", pytest.param("s3", marks=pytest.mark.engines)])
def test_all_samples_go_there_and_back(kind, sample_root, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PIECE", 8 << 20)  # S3 takes no smaller part but the last
    root, got = sample_root.data, tmp_path / "b"

    def there_and_back(url: str) -> None:
        assert not any(each.error for each in pushed(root, url))
        assert not any(each.created for each in pushed(root, url))
        done = pulled(got, url)
        assert not any(each.error or each.skipped for each in done)
        assert len(done) == len(list(sample_root.records()))
        assert not any(each.changed for each in pulled(got, url))

    if kind == "folder":
        there_and_back(str(tmp_path / "m"))
    else:
        with served() as s3:
            there_and_back(s3.url)
    for _, record in sample_root.records():
        paths = [each.path for each in record.outputs] + [provenance.RECORD]
        for path in (f"{record.artifact}/{each}" for each in paths):
            if (root / path).exists():
                assert (got / path).read_bytes() == (root / path).read_bytes(), path
    assert clean(got) and len(files(got)) > 100


def test_a_pulled_artifact_is_the_pushed_one_also_of_a_shared_folder(tmp_path):
    sent = posted(tmp_path)
    assert sent.created
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.changed and got.error is None
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert clean(tmp_path / "b") and garbage(tmp_path / "b") == []
    # Nothing is to be done for a build of the same: sizes and times are those of the record.
    assert publish.is_current(tiny_build(tmp_path / "b", config=TinyConfig(seed=1, rows=20)))
    (got,) = pulled(tmp_path / "a", tmp_path / "m")
    assert not got.changed and str(got).startswith("unchanged  family/tiny: data version ")
    for seed, key in enumerate(("p1", "p2", "p3")):
        posted(tmp_path, "family/shared", seed, partition=key, shared=True)
    pulled(tmp_path / "b", tmp_path / "m", "family/shared@p2")
    assert [each.name for each in (tmp_path / "b/family/shared/provenance").iterdir()] == [
        "p2.json"
    ]
    built(tmp_path / "b", "family/shared", 9, partition="p9", shared=True)
    pulled(tmp_path / "b", tmp_path / "m")
    here = {path: data for path, data in files(tmp_path / "b").items() if "p9" not in path}
    assert here == files(tmp_path / "a") and clean(tmp_path / "b")


def test_another_local_artifact_is_replaced_only_if_asked_to(tmp_path):
    posted(tmp_path, seed=1)
    built(tmp_path / "b", seed=5)
    before = files(tmp_path / "b")
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is not None and "--replace" in got.error and not got.changed
    assert files(tmp_path / "b") == before
    (got,) = pulled(tmp_path / "b", tmp_path / "m", replace=True)
    assert got.changed and files(tmp_path / "b") == files(tmp_path / "a")
    # A version of the mirror is replaced, whoever built the same contents: nothing is lost.
    posted(tmp_path, seed=2)
    built(tmp_path / "c", seed=1)
    for root in ("b", "c"):
        assert pulled(tmp_path / root, tmp_path / "m")[0].changed
        assert files(tmp_path / root) == files(tmp_path / "a")
    (tmp_path / "d/family/tiny").mkdir(parents=True)
    (tmp_path / "d/family/tiny/mine").write_text("mine")
    (got,) = pulled(tmp_path / "d", tmp_path / "m", replace=True)
    assert got.error is not None and "has no provenance record" in got.error
    assert (tmp_path / "d/family/tiny/mine").read_text() == "mine"


def inside(root: Path, seed: int) -> None:
    """Build `family/outer/in/inner`, which is made from the artifact around it."""
    outer = provenance.read_record(root / "family/outer/provenance.json")
    given = [made_from(outer)]
    built(root, "family/outer/in/inner", seed, outer="family/outer", inputs=given)


def test_a_nested_version_stays_with_the_data_version_around_it(tmp_path):
    """It was made from that one: the next one has none until it is built again."""
    a, b, fresh, mirror = (tmp_path / name for name in ("a", "b", "fresh", "m"))
    built(a, "family/outer", 1)
    inside(a, 1)
    pushed(a, mirror)
    (got,) = pulled(b, mirror, "family/outer/in")
    assert got.error == "is nested in family/outer: pull that artifact first"
    pulled(b, mirror)
    assert files(a) == files(b) and clean(b)
    built(a, "family/outer", 2)
    assert not any(each.error for each in pushed(a, mirror))
    for root in (fresh, b):
        outer, inner = pulled(root, mirror)
        assert outer.changed and outer.error is None and inner.error is None
        assert str(inner).startswith("skipped    family/outer/in/inner: is of another data version")
        assert files(root) == files(a) and clean(root) and garbage(root) == []
    (got,) = pulled(b, mirror, "family/outer/in/inner")
    assert got.error is not None and "is of another data version of family/outer" in got.error
    # What stands here is right, and stays though the mirror has an older one.
    inside(b, 3)
    before = files(b)
    assert [each.changed for each in pulled(b, mirror, replace=True)] == [False, False]
    assert files(b) == before
    # The same bytes in another data version around them are another version.
    inside(a, 1)
    assert [each.created for each in pushed(a, mirror)] == [False, True]
    assert [each.changed for each in pulled(fresh, mirror)] == [False, True]
    assert files(fresh) == files(a)


def test_a_wrong_byte_on_the_store_is_never_published(tmp_path):
    posted(tmp_path, seed=1)
    pulled(tmp_path / "b", tmp_path / "m")
    before, old = files(tmp_path / "b"), set(objects(tmp_path / "m"))
    posted(tmp_path, seed=2)
    for wrong in (path for path in objects(tmp_path / "m") if path not in old):
        data, key = wrong.read_bytes(), wrong.relative_to(tmp_path / "m").as_posix()
        for bad in (bytes([data[0] ^ 1]) + data[1:], data[:-1], None):
            # What was fetched before, and is right, need not be in the mirror any more.
            shutil.rmtree(tmp_path / "b/family/.gristmill/slots/tiny", ignore_errors=True)
            wrong.unlink() if bad is None else wrong.write_bytes(bad)
            (got,) = pulled(tmp_path / "b", tmp_path / "m")
            assert got.error is not None and key in got.error and not got.changed
            assert files(tmp_path / "b") == before
        # As the error says: without that object and the version, a push sends both again.
        versions(tmp_path / "m")[-1].unlink()
        (sent,) = pushed(tmp_path / "a", tmp_path / "m")
        assert sent.created and wrong.read_bytes() == data
    wrong.write_bytes(data + b"x")  # no more is read than the record says
    shutil.rmtree(tmp_path / "b/family/.gristmill/slots/tiny")
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_a_pull_resumes_within_a_file_unless_its_beginning_is_wrong(tmp_path, monkeypatch):
    posted(tmp_path)
    data = (tmp_path / "a/family/tiny/train/steps.npy").read_bytes()
    (gone,) = (path for path in objects(tmp_path / "m") if path.read_bytes() == data)
    gone.write_bytes(data[:200])
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is not None
    (kept,) = (tmp_path / "b").rglob("fetched-*/train/steps.npy")
    assert kept.read_bytes() == data[:200]
    gone.write_bytes(b"-" * 200 + data[200:])
    read: list[int] = []
    pieces = store.Store.pieces

    def noted(self: store.Store, key: str, size: int, start: int = 0) -> object:
        read.append(start)
        return pieces(self, key, size, start)

    monkeypatch.setattr(store.Store, "pieces", noted)
    assert pulled(tmp_path / "b", tmp_path / "m")[0].error is None
    assert 200 in read and files(tmp_path / "b") == files(tmp_path / "a")
    gone.write_bytes(data)
    left = (
        tmp_path
        / "c/family/.gristmill/slots/tiny"
        / kept.relative_to(tmp_path / "b/family/.gristmill/slots/tiny")
    )
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x" * 200)
    assert pulled(tmp_path / "c", tmp_path / "m")[0].error is None
    assert files(tmp_path / "c") == files(tmp_path / "a") and garbage(tmp_path / "c") == []


def test_reading_makes_no_folder_and_an_empty_mirror_is_named(tmp_path):
    for read in (
        lambda: pulled(tmp_path / "b", tmp_path / "m"),
        lambda: list(lines(str(tmp_path / "m"))),
    ):
        with pytest.raises(MirrorError, match="there is no such folder: a push makes one"):
            read()
    assert not any(tmp_path.iterdir())
    (tmp_path / "m").mkdir()
    with pytest.raises(MirrorError, match="no version of any artifact is here"):
        pulled(tmp_path / "b", tmp_path / "m")


@pytest.mark.parametrize("damaged", ["provenance.json", "inputs.jsonl", "train/steps.npy"])
def test_what_was_edited_or_lost_is_fetched_again(tmp_path, damaged):
    posted(tmp_path, inputs=many_inputs(tmp_path / "a"))
    pulled(tmp_path / "b", tmp_path / "m")
    right, file = files(tmp_path / "b"), tmp_path / "b/family/tiny" / damaged
    times = file.stat().st_mtime_ns
    for wrong in (file.read_bytes()[:-2], file.read_bytes().replace(b"test/", b"best/")):
        file.write_bytes(wrong)
        if damaged != "train/steps.npy" or wrong != right[f"family/tiny/{damaged}"]:
            os.utime(file, ns=(times, times))
        (got,) = pulled(tmp_path / "b", tmp_path / "m", replace=True)
        assert got.changed and clean(tmp_path / "b") and files(tmp_path / "b") == right
        assert not pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert stands(tmp_path / "b", Version(Entry("family/tiny"), "", ""))
    file.unlink()
    assert not stands(tmp_path / "b", Version(Entry("family/tiny"), "", ""))


@pytest.mark.parametrize("shared", [False, True])
def test_the_record_of_another_host_tells_nothing_of_raw_files_here(tmp_path, shared):
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


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which the environment names."""
    monkeypatch.setenv(transfers.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The address of an artifact with two versions in a mirror."""
    for seed in (1, 2):
        built(tmp_path / f"a{seed}", seed=seed)
        pushed(tmp_path / f"a{seed}", tmp_path / "m")
    return f"mirror+{tmp_path}/m!family/tiny"


def pinned(address: str, tmp_path: Path, seed: int) -> str:
    """The address with the data version of a seed."""
    version = published_version(tmp_path / f"a{seed}/family/tiny", "p1")
    assert version is not None
    return f"{address}#{version[:12]}"


def test_the_newest_or_a_pinned_version_which_needs_no_mirror_again(tmp_path, address, monkeypatch):
    newest, first = fetched(address), fetched(pinned(address, tmp_path, 1))
    held = files(newest)
    assert held == files(tmp_path / "a2/family/tiny")
    assert files(first) == files(tmp_path / "a1/family/tiny")
    assert fetched(f"{pinned(address, tmp_path, 1)}//train/steps.npy") == first / "train/steps.npy"
    monkeypatch.setenv(MIRROR, str(tmp_path / "m"))
    assert fetched(address.replace(f"+{tmp_path}/m!", "://")) == newest
    built(tmp_path / "a3", seed=3)
    pushed(tmp_path / "a3", tmp_path / "m")
    after = fetched(address)
    assert after != newest and files(newest) == held
    assert files(after) == files(tmp_path / "a3/family/tiny")
    (tmp_path / "m").rename(tmp_path / "gone")
    assert fetched(pinned(address, tmp_path, 1)) == first
    for text in (address, pinned(address, tmp_path, 2)):
        with pytest.raises(MirrorError, match="there is no such folder"):
            fetched(text)
    assert not (tmp_path / "m").exists()


def test_partitions_of_a_shared_folder(tmp_path):
    for number in (1, 2):
        posted(tmp_path, "family/shared", number, partition=f"p{number}", shared=True)
    whole = fetched(f"mirror+{tmp_path}/m!family/shared")
    assert files(whole) == files(tmp_path / "a/family/shared")
    one = fetched(f"mirror+{tmp_path}/m!family/shared@p2")
    assert sorted(path.stem for path in (one / "provenance").iterdir()) == ["p2"]
    with pytest.raises(GristmillError, match="2 are asked for: name one"):
        fetched(f"mirror+{tmp_path}/m!family/shared#{'a' * 12}")


def test_a_number_is_refused_with_the_data_version_that_replaces_it(tmp_path, address):
    version = pinned(address, tmp_path, 2).partition("#")[2]
    with pytest.raises(MirrorError, match=f"'1' names no version: .* {version} for"):
        fetched(f"{address}#1")
    with pytest.raises(MirrorError, match="no version of family/tiny has the data version"):
        fetched(f"{address}#{'0' * 12}")
    with pytest.raises(GristmillError, match="no artifact or asset family/other is here"):
        fetched(address.replace("tiny", "other"))


def test_a_read_only_mount_is_a_cache(tmp_path, address):
    newest, kept = fetched(address), tmp_path / "cache"
    code = f"from gristmill.mirror.transfers import fetched; print(fetched({address!r}))"
    done = ran(read_only([kept], [sys.executable, "-c", code]), env={**os.environ})
    assert done.stdout.strip() == str(newest), done.stderr


def test_what_is_damaged_or_lost_is_fetched_again_and_the_rest_is_not(address):
    folder = fetched(address)
    held = files(folder)
    inode = (folder / "train/steps.npy").stat().st_ino
    assert (fetched(address) / "train/steps.npy").stat().st_ino == inode
    (folder / "trace.jsonl").write_bytes(b"short")
    assert fetched(address) == folder and files(folder) == held
    shutil.rmtree(folder.parents[1])
    assert fetched(address) == folder and files(folder) == held


def test_a_wrong_byte_in_the_mirror_does_not_enter(tmp_path, address):
    for wrong in objects(tmp_path / "m"):
        data = wrong.read_bytes()
        wrong.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(GristmillError, match="push the artifact again"):
        fetched(address)
    assert list((tmp_path / "cache").glob("*/family/tiny")) == []


def test_of_eight_at_once_one_fetches(address, monkeypatch):
    pieces, keys = Store.pieces, list[str]()

    def counting(store: Store, key: str, *rest: int) -> object:
        keys.append(key)
        return pieces(store, key, *rest)

    monkeypatch.setattr(Store, "pieces", counting)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(fetched, [address] * 8))
    assert len(found) == 1
    assert keys and len(keys) == len(set(keys)) and Version.of(keys[0])


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    assert transfers.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv(transfers.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert transfers.cache_folder() == tmp_path / "x/gristmill/mirror"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    assert transfers.cache_folder() == tmp_path / "h/.cache/gristmill/mirror"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((f"mirror+{text}", "write mirror://") for text in ("/mnt/m", "!a", "/m!", "/m!a@")),
        ("mirror+/m!a#", "write mirror://"),
        ("mirror+/m!a/../b", "may hold only"),
        ("mirror+/m!a@..", "may hold only"),
        ("mirror+/m!a//../b", "no path in the artifact"),
        ("mirror://a", "set GRISTMILL_MIRROR"),
    ],
)
def test_another_form_is_refused(text, says, monkeypatch):
    monkeypatch.delenv(MIRROR, raising=False)
    with pytest.raises(MirrorError, match=says):
        fetched(text)
