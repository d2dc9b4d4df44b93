"""What a store gives: whole objects and errors with a name; over S3 also cut lines."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from gristmill.mirror import store as module
from gristmill.mirror.store import PIECE, MirrorError, Store
from gristmill.mirror.versions import Transfer, listed, transferring
from gristmill.provenance.inventory import Entry
from gristmill.run.progress import SILENT
from tests.mirror.roots import built, clean, files, pulled, pushed
from tests.mirror.s3 import S3, CuttingProxy, served

BACKOFF = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=100)}
FAST = {"max_retries": 4, "backoff": {**BACKOFF, "base": 2}}


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.engines)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty mirror."""
    if request.param == "folder":
        yield str(tmp_path / "mirror")
        return
    with served() as s3:
        yield s3.url


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    monkeypatch.setattr(module, "_RETRIES", FAST)
    with served() as server:
        yield server


@pytest.fixture
def proxy(s3: S3) -> Iterator[CuttingProxy]:
    """A proxy before the server, to which the environment leads."""
    proxy = CuttingProxy(s3.host, s3.port)
    with mock.patch.dict(os.environ, s3.client(proxy.port)):
        yield proxy
    proxy.close()


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 2 * PIECE + 5])
def test_an_object_is_written_whole_or_not_at_all_and_read_by_pieces(url, size):
    store, data = Store(url), os.urandom(size)
    pieces = [data[at : at + 3_000_000] for at in range(0, size, 3_000_000)]

    def broken() -> Iterator[bytes]:
        yield from pieces
        raise KeyError("its sha256")

    with pytest.raises(KeyError):
        store.write("a/b", broken(), size)
    assert store.size("a/b") is None and list(store.keys("a")) == []
    with pytest.raises(MirrorError, match="a/b: is gone"):
        store.read("a/b")
    with pytest.raises(MirrorError, match="a/b: is gone"):
        list(store.pieces("a/b", 10))
    for _ in range(2):
        store.write("a/b", pieces, size)
    store.write("ab/c", [b"other"], 5)
    store.flush(["a/b", "ab/c"])
    assert (store.read("a/b"), store.size("a/b"), store.keys("a")) == (data, size, ["a/b"])
    assert b"".join(store.pieces("a/b", size, size // 2)) == data[size // 2 :]
    assert store.holds("a/b", size, hashlib.sha256(data).hexdigest())
    assert not store.holds("a/b", size + 1, hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_of_a_folder_only_regular_files_are_read(tmp_path, kind):
    store, path = Store(str(tmp_path / "m")), tmp_path / "m/a/b"
    path.parent.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    {
        "link": lambda: path.symlink_to(tmp_path / "secret"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    assert store.size("a/b") is None
    assert not store.holds("a/b", 6, hashlib.sha256(b"secret").hexdigest())
    with pytest.raises(MirrorError, match="a/b: is gone, or no regular file"):
        list(store.pieces("a/b", 6))


def test_versions_of_two_pushers_at_once_go_there_and_back(url, tmp_path):
    for seed in range(3):
        built(tmp_path / str(seed), seed=seed)
        built(tmp_path / str(seed), "family/shared", seed, partition="p1", shared=True)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda seed: pushed(tmp_path / str(seed), url), range(3)))
    assert all(each.created for both in done for each in both)
    for entry, versions in listed(Store(url)).items():
        assert len(versions) == 3
        for version in versions:
            got = pulled(tmp_path / "b", url, entry.name, sha256=version.sha256)
            assert [each.error for each in got] == [None] and clean(tmp_path / "b")
    whole = [files(tmp_path / str(seed)) for seed in range(3)]
    assert pulled(tmp_path / "c", url)[0].error is None
    last = {name: data for name, data in files(tmp_path / "c").items() if "tiny" in name}
    assert any(last.items() <= each.items() for each in whole)


@pytest.mark.engines
@pytest.mark.parametrize("answers", [True, False], ids=["answers", "requests"])
@pytest.mark.parametrize("after", [0, 100, 700])
def test_cut_connections_are_made_again(s3, proxy, tmp_path, answers, after):
    built(tmp_path / "a")
    proxy.cuts, proxy.after, proxy.answers = 3, after, answers
    (sent,) = pushed(tmp_path / "a", s3.url)
    assert sent.error is None and sent.created
    # A lost answer to a version is no second one.
    assert [*map(len, listed(Store(s3.url)).values())] == [1]
    proxy.cuts = 2
    (got,) = pulled(tmp_path / "b", s3.url)
    assert got.error is None and files(tmp_path / "b") == files(tmp_path / "a")
    assert proxy.cut >= 4


@pytest.mark.engines
def test_a_server_that_is_gone_is_an_error_with_its_name(s3, proxy, tmp_path):
    built(tmp_path / "a")
    proxy.cuts = 10_000
    with pytest.raises(MirrorError, match="s3://bucket/some/prefix: artifacts"):
        pushed(tmp_path / "a", s3.url)


@pytest.mark.engines
def test_a_wrong_byte_on_the_way_is_fetched_again(s3, proxy, tmp_path):
    built(tmp_path / "a")
    built(tmp_path / "b", seed=9)
    pushed(tmp_path / "a", s3.url)
    # Of the answers with more than 1,000 bytes, the record's is refused, a file's asked for again.
    before, ends = files(tmp_path / "b"), set()
    for _ in range(4):
        proxy.wrong = 1
        try:
            (got,) = pulled(tmp_path / "b", s3.url, replace=True)
        except MirrorError:  # the listing was wrong
            ends.add("refused")
            continue
        ends.add("refused" if got.error else "pulled")
        assert files(tmp_path / "b") == (before if got.error else files(tmp_path / "a"))
    proxy.wrong = 0
    assert ends and pulled(tmp_path / "b", s3.url, replace=True)[0].error is None
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert list(listed(Store(s3.url))) == [Entry("family/tiny")]


@pytest.mark.parametrize("url", ["", "file://"])
def test_an_empty_url_is_not_the_current_folder(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MirrorError, match=r"the URL of the mirror is '.*': name a folder"):
        Store(url, make=True)
    assert not list(tmp_path.iterdir())


def test_after_an_interrupt_no_thread_goes_on_with_its_file(tmp_path):
    def endless(transfer: Transfer) -> None:
        while True:
            transfer._advance(1)

    begun: list[Future[None]] = []

    def interrupted() -> None:
        with (
            SILENT.stage("pull", "bytes", 0) as stage,
            transferring(Store(str(tmp_path)), 2, stage) as (transfer, artifacts),
        ):
            begun.extend(transfer.threads.submit(endless, transfer) for _ in range(3))
            begun.append(artifacts.submit(begun[0].result))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(each.cancelled() or isinstance(each.exception(), MirrorError) for each in begun)
