"""The cache of versions that readers fetch from a mirror."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.mirror import cache
from gristmill.mirror.cache import MIRROR, Address, parsed
from gristmill.mirror.store import MirrorError, Store
from gristmill.publish import locks
from tests.mirror.roots import built, files, objects, posted, pushed
from tests.read_only import read_only

pytestmark = pytest.mark.sampled(0.3)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which the environment names."""
    monkeypatch.setenv(cache.CACHE, str(tmp_path / "cache"))
    monkeypatch.delenv(cache.OFFLINE, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The address of an artifact with two versions in a mirror."""
    for seed in (1, 2):
        built(tmp_path / f"a{seed}", seed=seed)
        pushed(tmp_path / f"a{seed}", tmp_path / "m")
    return f"mirror+{tmp_path}/m!family/tiny"


def test_the_newest_or_a_pinned_version(tmp_path: Path, address: str) -> None:
    newest, first = cache.fetched(address), cache.fetched(f"{address}#1")
    assert files(newest) == files(tmp_path / "a2/family/tiny")
    assert files(first) == files(tmp_path / "a1/family/tiny")
    # The newest, by its number, is not fetched again.
    assert cache.fetched(f"{address}#2") == newest != first
    assert cache.fetched(f"{address}#1//train/steps.npy") == first / "train/steps.npy"


def test_a_new_version_changes_nothing_that_is_open(tmp_path: Path, address: str) -> None:
    before = cache.fetched(address)
    held = files(before)
    built(tmp_path / "a3", seed=3)
    pushed(tmp_path / "a3", tmp_path / "m")
    after = cache.fetched(address)
    assert after != before and files(before) == held
    assert files(after) == files(tmp_path / "a3/family/tiny")


def test_partitions_of_a_shared_folder(tmp_path: Path) -> None:
    for number in (1, 2):
        posted(tmp_path, "family/shared", number, partition=f"p{number}", shared=True)
    whole = cache.fetched(f"mirror+{tmp_path}/m!family/shared")
    assert files(whole) == files(tmp_path / "a/family/shared")
    one = cache.fetched(f"mirror+{tmp_path}/m!family/shared@p2#1")
    assert sorted(path.stem for path in (one / "provenance").iterdir()) == ["p2"]
    with pytest.raises(MirrorError, match="a number is of one artifact or one partition"):
        cache.fetched(f"mirror+{tmp_path}/m!family/shared#1")


def test_a_nested_version_of_another_data_version_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "a", "family/outer", 1)
    posted(tmp_path, "family/outer/in/inner", 1, outer="family/outer")
    address = f"mirror+{tmp_path}/m!family/outer"
    assert files(cache.fetched(address)) == files(tmp_path / "a/family/outer")
    posted(tmp_path, "family/outer", 2)
    newest = cache.fetched(address)
    assert files(newest) == files(tmp_path / "a/family/outer") and not (newest / "in").exists()
    monkeypatch.setattr(cache, "_fetch", None)
    assert cache.fetched(address) == newest


def test_without_the_mirror(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    newest, first = cache.fetched(address), cache.fetched(f"{address}#1")
    (tmp_path / "m").rename(tmp_path / "gone")
    assert cache.fetched(f"{address}#1") == first
    with pytest.raises(MirrorError, match="there is no such folder"):
        cache.fetched(address)
    assert not (tmp_path / "m").exists()
    monkeypatch.setenv(cache.OFFLINE, "1")
    assert cache.fetched(address) == newest
    with pytest.raises(MirrorError, match=r"#2: is not in the cache .*GRISTMILL_MIRROR_OFFLINE"):
        cache.fetched(f"{address}#2")
    (newest / "trace.jsonl").unlink()
    with pytest.raises(MirrorError, match="is not whole in the cache"):
        cache.fetched(address)


def test_a_cache_that_cannot_be_written_is_read(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, first = cache.fetched(address), cache.fetched(f"{address}#1")
    before = files(tmp_path / "cache")
    (first / "trace.jsonl").unlink()
    refused = [errno.EROFS]

    def refusing(path: str | Path, flags: int, *given: int, **more: int) -> int:
        if str(path).startswith(str(tmp_path / "cache")) and flags & (os.O_CREAT | os.O_RDWR):
            raise OSError(refused[0], os.strerror(refused[0]), str(path))
        return opened(path, flags, *given, **more)

    opened = os.open
    monkeypatch.setattr(os, "open", refusing)
    for offline in ("0", "1"):
        monkeypatch.setenv(cache.OFFLINE, offline)
        for refused[0] in (errno.EROFS, errno.EACCES):
            assert cache.fetched(address) == newest
        with pytest.raises(MirrorError, match=f"cannot be put into the cache .*{cache.CACHE}"):
            cache.fetched(f"{address}#1")
    refused[0] = errno.ENOSPC
    with pytest.raises(MirrorError, match="No space left on device"):
        cache.fetched(address)
    left = {path for path in before if not path.endswith("trace.jsonl")}
    assert left <= set(files(tmp_path / "cache"))


def test_a_read_only_mount_is_a_cache(tmp_path: Path, address: str) -> None:
    newest, kept = cache.fetched(address), tmp_path / "cache"
    code = f"from gristmill.mirror.cache import fetched; print(fetched({address!r}))"
    done = subprocess.run(
        read_only([kept], [sys.executable, "-c", code]),
        env={**os.environ, cache.OFFLINE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(newest), done.stderr


def test_what_is_not_there_is_named(tmp_path: Path, address: str) -> None:
    with pytest.raises(MirrorError, match=r"there is no version 9 of family/tiny"):
        cache.fetched(f"{address}#9")
    with pytest.raises(MirrorError, match=r"there is no artifact family/other in"):
        cache.fetched(f"mirror+{tmp_path}/m!family/other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MirrorError, match="is no mirror, or an empty one"):
        cache.fetched(f"mirror+{tmp_path}/empty!family/tiny")


def test_a_damaged_size_is_fetched_again_and_equal_ones_are_not(address: str) -> None:
    folder = cache.fetched(address)
    held = files(folder)
    (folder / "trace.jsonl").write_bytes(b"short")
    assert cache.fetched(address) == folder and files(folder) == held
    inode = (folder / "train/steps.npy").stat().st_ino
    assert (cache.fetched(address) / "train/steps.npy").stat().st_ino == inode


def test_a_wrong_byte_in_the_mirror_does_not_enter(tmp_path: Path, address: str) -> None:
    for wrong in objects(tmp_path / "m"):
        data = wrong.read_bytes()
        wrong.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(GristmillError, match="push"):
        cache.fetched(address)
    assert list((tmp_path / "cache").glob("*/sets/*/data/family/tiny")) == []


def test_of_eight_at_once_one_fetches(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, keys = Store.read, list[str]()

    def counting(store: Store, key: str, *most: int) -> bytes | None:
        keys.append(key)
        return read(store, key, *most)

    monkeypatch.setattr(Store, "read", counting)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(cache.fetched, [address] * 8))
    assert len(found) == 1
    fetched = [key for key in keys if key.startswith("objects/")]
    assert fetched and len([key for key in keys if key.startswith("artifacts/")]) == 1


def test_prune_removes_what_was_not_opened(kept: Path, address: str) -> None:
    newest, first = cache.fetched(address), cache.fetched(f"{address}#1")
    old = time.time() - 3 * 86_400
    os.utime(first.parents[2] / "versions.json", (old, old))
    with locks.locked(first.parents[2] / "lock", "test"):
        assert cache.prune(kept, 2) == []
    assert cache.prune(kept, 4) == []
    assert cache.prune(kept, 2) == [first.parents[2]]
    assert newest.exists() and not first.exists()
    assert cache.fetched(f"{address}#1") == first and first.exists()
    assert len(cache.prune(kept, 0)) == 2
    with pytest.raises(ValueError, match="at least 0"):
        cache.prune(kept, -1)


def test_the_folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv(cache.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.cache_folder() == tmp_path / "x/gristmill/mirror"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    assert cache.cache_folder() == tmp_path / "h/.cache/gristmill/mirror"


def test_a_cache_with_a_wrong_note_asks_the_mirror(kept: Path, address: str) -> None:
    folder = cache.fetched(f"{address}#1")
    (note,) = kept.glob("*/names/*.json")
    right = note.read_text()
    assert json.loads(right) == [["family/tiny", None, 1]]
    wrong = [["family/tiny", None, 0], ["family/tiny", None, True], ["../tiny", None, 1]]
    wrong += [["family/tiny", "..", 1], [7, None, 1], ["family/tiny", 7, 1], ["family/tiny", 1]]
    for text in ("{", "7", "[7]", "[" * 100_000, *(json.dumps([each]) for each in wrong)):
        note.write_text(text)
        assert cache.fetched(f"{address}#1") == folder
        assert note.read_text() == right, text
    shutil.rmtree(kept)
    assert cache.fetched(f"{address}#1") == folder


def test_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, "s3://b/p")
    assert parsed("mirror://a/b") == Address("s3://b/p", "a/b")
    assert parsed("mirror://a/b@p#3") == Address("s3://b/p", "a/b", "p", 3)
    assert parsed("mirror://a@p//x/y_tokens") == Address("s3://b/p", "a", "p", None, "x/y_tokens")
    assert parsed("mirror+/mnt/m!a#12//x") == Address("/mnt/m", "a", None, 12, "x")
    assert parsed("mirror+gs://b!a/b").url == "gs://b"
    assert (parsed("mirror://a@p").name, parsed("mirror://a").name) == ("a@p", "a")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mirror+/mnt/m", "write mirror://"),
        ("mirror+!a", "write mirror://"),
        ("mirror+/m!", "write mirror://"),
        ("mirror+/m!a@", "write mirror://"),
        ("mirror+/m!a/../b", "may hold only"),
        ("mirror+/m!a@..", "may hold only"),
        ("mirror+/m!a#0", "no number from 1"),
        ("mirror+/m!a#", "no number from 1"),
        ("mirror+/m!a#x", "no number from 1"),
        ("mirror+/m!a//../b", "no path in the artifact"),
        ("mirror://a", "set GRISTMILL_MIRROR"),
    ],
)
def test_another_form_is_refused(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRROR, raising=False)
    with pytest.raises(MirrorError, match=says):
        parsed(text)
