"""Readers of all families over versions in a mirror, through the cache of this host."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.mirror import push
from gristmill.mirror.pulling import CACHE
from gristmill.mirror.store import MirrorError
from gristmill.reading.reader import located
from tests.reading.readers import Reader
from tests.reading.test_reader import all_samples, loader_of, samples_in

pytestmark = [pytest.mark.filterwarnings("ignore")]


@dataclass(frozen=True)
class Addresses:
    """Gives addresses where a data root gives paths: `addresses / PATH`.

    mirror: URL.
    reader: what is in it.
    """

    mirror: str
    reader: Reader

    def __truediv__(self, path: str) -> str:
        artifacts = [part.artifact for part in self.reader.parts]
        outer = [name for name in artifacts if path.startswith(f"{name}/")]
        inside = (
            f"{outer[0]}//{path[len(outer[0]) + 1 :]}" if path not in artifacts and outer else path
        )
        return f"mirror+{self.mirror}!{inside}"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which the environment names."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def _pushed(reader: Reader, folder: Path, version: int = 0) -> tuple[Path, Any]:
    reader.publish(folder / "data", version)
    done = push(folder / "data", str(folder / "m"))
    assert not any(each.error for each in done)
    return folder / "data", Addresses(str(folder / "m"), reader)


def test_a_mirror_is_read_as_the_data_root(reader: Reader, tmp_path: Path) -> None:
    root, addresses = _pushed(reader, tmp_path)
    expected = all_samples(reader.open(root, "hash"))
    opened = reader.open(addresses, "hash")
    assert all_samples(opened) == expected and sum(expected.values()) > 0
    # A pickle holds local paths: who loads it needs no mirror, and keeps the version.
    kept = pickle.dumps(opened)
    _pushed(reader, tmp_path, 1)
    shutil.rmtree(tmp_path / "m")
    assert all_samples(pickle.loads(kept)) == expected


def test_a_wrong_byte_in_the_cache_is_refused_by_its_hash(
    reader_of: Callable[[str], Reader], tmp_path: Path, kept: Path
) -> None:
    reader = reader_of("StepDataset")
    _, addresses = _pushed(reader, tmp_path)
    reader.open(addresses, "hash")
    (file,) = kept.rglob("macroxue/packs/p/steps-00001.npy")
    data, found = file.read_bytes(), file.stat()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(BadInput, match="does not have the sha256"):
        reader.open(addresses, "hash")
    # A time that is not that of the record has it fetched again.
    os.utime(file)
    reader.open(addresses, "hash")
    assert file.read_bytes() == data


@pytest.mark.slow
def test_spawned_workers_read_the_version_of_their_parent(
    reader_of: Callable[[str], Reader], tmp_path: Path
) -> None:
    reader = reader_of("StepDataset")
    root, addresses = _pushed(reader, tmp_path)
    expected = all_samples(reader.open(root, "sizes"))
    opened = reader.open(addresses, "sizes")
    _pushed(reader, tmp_path, 1)
    loader = loader_of(opened, 7, num_workers=2, multiprocessing_context="spawn")
    found = [sample for batch in loader for sample in samples_in(batch)]
    assert sorted(found) == sorted(expected.elements())


def test_an_address_as_a_path_is_refused() -> None:
    for text in ("mirror://a/b", "mirror+s3://b/p!a"):
        with pytest.raises(BadInput, match="give it as text"):
            located(Path(text))
    assert located("/a/b") == located(Path("/a/b")) == Path("/a/b")


def test_a_relative_path_is_absolute_from_its_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("a/b") == located(Path("a/b")) == tmp_path / "a/b"
    # The place of `..` behind a link is not that of its text.
    assert located("a/../b") == tmp_path / "a/../b"


def test_errors_name_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MirrorError, match="is no address in a mirror"):
        located("mirror+file:///x")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MirrorError, match=r"gristmill\[mirror\]"):
        located(f"mirror+{tmp_path}/m!a")


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr("gristmill.mirror.store._RETRIES", {"max_retries": 0})
    with pytest.raises(MirrorError, match="s3://b/p: artifacts/a"):
        located("mirror+s3://b/p!a")
