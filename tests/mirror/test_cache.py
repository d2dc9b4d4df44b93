"""The versions that readers fetch from a mirror."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.mirror import pulling
from gristmill.mirror.pulling import MIRROR, fetched
from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.versions import Version
from gristmill.provenance import published_version
from tests.mirror.roots import built, files, objects, posted, pushed
from tests.read_only import read_only


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which the environment names."""
    monkeypatch.setenv(pulling.CACHE, str(tmp_path / "cache"))
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


def test_the_newest_or_a_pinned_version_which_needs_no_mirror_again(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_partitions_of_a_shared_folder(tmp_path: Path) -> None:
    for number in (1, 2):
        posted(tmp_path, "family/shared", number, partition=f"p{number}", shared=True)
    whole = fetched(f"mirror+{tmp_path}/m!family/shared")
    assert files(whole) == files(tmp_path / "a/family/shared")
    one = fetched(f"mirror+{tmp_path}/m!family/shared@p2")
    assert sorted(path.stem for path in (one / "provenance").iterdir()) == ["p2"]
    with pytest.raises(GristmillError, match="2 are asked for: name one"):
        fetched(f"mirror+{tmp_path}/m!family/shared#{'a' * 12}")


def test_a_number_is_refused_with_the_data_version_that_replaces_it(
    tmp_path: Path, address: str
) -> None:
    for number, seed in (("1", 1), ("2", 2), ("3", 2)):
        version = pinned(address, tmp_path, seed).partition("#")[2]
        with pytest.raises(MirrorError, match=f"'{number}' names no version: .* {version} for"):
            fetched(f"{address}#{number}")
    with pytest.raises(MirrorError, match="no version of family/tiny has the data version"):
        fetched(f"{address}#{'0' * 12}")
    with pytest.raises(GristmillError, match="no artifact or asset family/other is here"):
        fetched(address.replace("tiny", "other"))


def test_a_read_only_mount_is_a_cache(tmp_path: Path, address: str) -> None:
    newest, kept = fetched(address), tmp_path / "cache"
    code = f"from gristmill.mirror.pulling import fetched; print(fetched({address!r}))"
    done = subprocess.run(
        read_only([kept], [sys.executable, "-c", code]),
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(newest), done.stderr


def test_what_is_damaged_or_lost_is_fetched_again_and_the_rest_is_not(address: str) -> None:
    folder = fetched(address)
    held = files(folder)
    inode = (folder / "train/steps.npy").stat().st_ino
    assert (fetched(address) / "train/steps.npy").stat().st_ino == inode
    (folder / "trace.jsonl").write_bytes(b"short")
    assert fetched(address) == folder and files(folder) == held
    shutil.rmtree(folder.parents[1])
    assert fetched(address) == folder and files(folder) == held


def test_a_wrong_byte_in_the_mirror_does_not_enter(tmp_path: Path, address: str) -> None:
    for wrong in objects(tmp_path / "m"):
        data = wrong.read_bytes()
        wrong.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(GristmillError, match="push the artifact again"):
        fetched(address)
    assert list((tmp_path / "cache").glob("*/family/tiny")) == []


def test_of_eight_at_once_one_fetches(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, keys = Store.pieces, list[str]()

    def counting(store: Store, key: str, *rest: int) -> object:
        keys.append(key)
        return pieces(store, key, *rest)

    monkeypatch.setattr(Store, "pieces", counting)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(fetched, [address] * 8))
    assert len(found) == 1
    assert keys and len(keys) == len(set(keys)) and Version.of(keys[0])


def test_the_folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pulling.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv(pulling.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert pulling.cache_folder() == tmp_path / "x/gristmill/mirror"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    assert pulling.cache_folder() == tmp_path / "h/.cache/gristmill/mirror"


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
def test_another_form_is_refused(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRROR, raising=False)
    with pytest.raises(MirrorError, match=says):
        fetched(text)
