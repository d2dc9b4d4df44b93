"""What a store gives: whole objects, one creator, errors with a name; over S3 also cut lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from gristmill.mirror import versions
from gristmill.mirror.layout import Place
from gristmill.mirror.store import MOST, MirrorError, Store, WrongObject
from tests.mirror.roots import built, clean, files, pulled, pushed
from tests.mirror.s3 import S3, CuttingProxy, served

pytestmark = pytest.mark.sampled(0.3)

BACKOFF = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=100)}
FAST = {"max_retries": 4, "backoff": {**BACKOFF, "base": 2}}
BIG = 4096
"""Bytes of a part: the server of the tests takes 10 ms for each."""


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.engines)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty mirror."""
    if request.param == "folder":
        yield str(tmp_path / "mirror")
        return
    with served() as s3:
        yield s3.url


@pytest.fixture
def s3() -> Iterator[S3]:
    with served() as server:
        yield server


@pytest.fixture
def proxy(s3: S3) -> Iterator[CuttingProxy]:
    """A proxy before the server, to which the environment leads."""
    proxy = CuttingProxy(s3.host, s3.port)
    with mock.patch.dict(os.environ, s3.client(proxy.port)):
        yield proxy
    proxy.close()


def test_objects_are_written_created_once_and_listed(url: str) -> None:
    store = Store(url)
    assert store.read("a/b") is None and store.size("a/b") is None
    assert list(store.keys("a")) == []
    store.write("a/b", b"one")
    store.write("a/b", b"three")
    assert (store.read("a/b"), store.size("a/b")) == (b"three", 5)
    assert store.create("a/c", b"new") and not store.create("a/c", b"late")
    assert store.read("a/c") == b"new"
    store.write("ab/d", b"")
    assert sorted(store.keys("a")) == ["a/b", "a/c"]
    assert store.read("ab/d") == b""
    store.flush(["a/b", "a/c"])


def test_of_a_large_object_nothing_is_read(url: str) -> None:
    store = Store(url)
    store.write("a/b", b"three")
    assert store.read("a/b", 5) == b"three"
    with pytest.raises(WrongObject, match=r": a/b: has 5 bytes, and 4 at most are read$"):
        store.read("a/b", 4)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_of_a_folder_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    store, path = Store(str(tmp_path / "m")), tmp_path / "m/a/b"
    path.parent.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    {
        "link": lambda: path.symlink_to(tmp_path / "secret"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    with pytest.raises(WrongObject, match=r"/m: a/b: is no regular file, and is not read$"):
        store.read("a/b")


def test_an_object_of_unknown_size_has_a_limit(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "m"))
    store.write("a/b", b"")
    os.truncate(tmp_path / "m/a/b", MOST + 1)
    with pytest.raises(WrongObject, match=r"has 67,108,865 bytes, and 67,108,864 at most are read"):
        store.read("a/b")


def test_of_many_creators_one_wins(url: str) -> None:
    store = Store(url)
    with ThreadPoolExecutor(8) as pool:
        for turn in range(5):
            key = f"turn/{turn}"
            won = list(pool.map(lambda n, key=key: store.create(key, b"%d" % n), range(8)))
            assert sum(won) == 1
            assert store.read(key) == b"%d" % won.index(True)


def test_versions_go_there_and_back(url: str, tmp_path: Path) -> None:
    for seed in (1, 2):
        built(tmp_path / "a", seed=seed)
        built(tmp_path / "a", "family/shared", seed, partition="p1", shared=True)
        assert not any(
            each.error for each in pushed(tmp_path / "a", url, read_back=True, part_bytes=BIG)
        )
    assert not any(each.error for each in pulled(tmp_path / "b", url))
    assert files(tmp_path / "b") == files(tmp_path / "a") and clean(tmp_path / "b")
    assert {len(numbers) for numbers in versions.numbers(Store(url)).values()} == {2}
    (got,) = pulled(tmp_path / "b", url, "family/tiny", number=1)
    assert got.changed and got.version.number == 1


def test_two_pushers_at_once(url: str, tmp_path: Path) -> None:
    for seed in range(4):
        built(tmp_path / str(seed), seed=seed)
    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda seed: pushed(tmp_path / str(seed), url, part_bytes=BIG)[0], range(4))
        )
    assert sorted(each.version.number for each in done if each.version) == [1, 2, 3, 4]
    for number in range(1, 5):
        assert pulled(tmp_path / "b", url, "family/tiny", number=number)[0].error is None
        assert clean(tmp_path / "b")


@pytest.mark.engines
@pytest.mark.parametrize("answers", [True, False], ids=["answers", "requests"])
@pytest.mark.parametrize("after", [0, 100, 700])
def test_cut_connections_are_made_again(
    s3: S3, proxy: CuttingProxy, tmp_path: Path, answers: bool, after: int
) -> None:
    built(tmp_path / "a")
    proxy.cuts, proxy.after, proxy.answers = 3, after, answers
    (sent,) = pushed(tmp_path / "a", Store(s3.url, retries=FAST), part_bytes=BIG)
    assert sent.error is None and sent.created
    # A lost answer to the creation of a version is no conflict.
    ((_, numbers),) = versions.numbers(Store(s3.url)).items()
    assert numbers == [1]
    proxy.cuts = 2
    (got,) = pulled(tmp_path / "b", Store(s3.url, retries=FAST))
    assert got.error is None and files(tmp_path / "b") == files(tmp_path / "a")
    assert proxy.cut >= 4


@pytest.mark.engines
def test_a_lost_answer_to_the_version_is_read_back(
    s3: S3, proxy: CuttingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "a")
    seen: list[bool] = []
    create = Store.create

    def cut(store: Store, key: str, data: bytes) -> bool:
        fresh = Store(s3.url, retries=FAST)  # its connection is new, so that it is cut
        proxy.cuts, proxy.after, proxy.answers = 1, 20, True
        seen.append(create(fresh, key, data))
        return seen[-1]

    monkeypatch.setattr(Store, "create", cut)
    (sent,) = pushed(tmp_path / "a", s3.url, part_bytes=BIG)
    assert seen == [False], "the answer was not lost, or the library did not try again"
    assert sent.created and sent.version is not None and sent.version.number == 1


@pytest.mark.engines
def test_a_server_that_is_gone_is_an_error_with_its_name(
    s3: S3, proxy: CuttingProxy, tmp_path: Path
) -> None:
    built(tmp_path / "a")
    proxy.cuts = 10_000
    with pytest.raises(MirrorError, match="s3://bucket/some/prefix: artifacts"):
        pushed(tmp_path / "a", Store(s3.url, retries={**FAST, "max_retries": 1}))


@pytest.mark.engines
def test_a_wrong_byte_on_the_way_is_fetched_again(
    s3: S3, proxy: CuttingProxy, tmp_path: Path
) -> None:
    built(tmp_path / "a")
    pushed(tmp_path / "a", s3.url, part_bytes=1 << 20)
    # The metadata.db has 8 KiB; the answers with JSON that are wrong end in an error of their own.
    built(tmp_path / "b", seed=9)
    before = files(tmp_path / "b")
    ends = set()
    for _ in range(4):
        proxy.wrong = 1
        try:
            (got,) = pulled(tmp_path / "b", s3.url, replace=True)
        except MirrorError:
            ends.add("refused")
            continue
        ends.add("refused" if got.error else "pulled")
        assert files(tmp_path / "b") == (before if got.error else files(tmp_path / "a"))
    proxy.wrong = 0
    assert pulled(tmp_path / "b", s3.url, replace=True)[0].error is None
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_a_place_of_no_version_is_none() -> None:
    for key in ("artifacts/a/@/1.json", "artifacts/a/00000001.json", "objects/a/@/00000001.json"):
        assert Place.of(key) is None
    for name in ("../x", "a/../b", ".gristmill/x", "drops/x"):
        assert Place.of(f"artifacts/{name}/@/00000001.json") is None
    assert Place.of("artifacts/a/@../00000001.json") is None
    for number in ("00000000", "100000000"):
        assert Place.of(f"artifacts/a/@/{number}.json") is None


def test_a_file_is_created_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "m"))
    assert store.create("a/b.json", b"first")
    flushed: list[str] = []

    def broken(self: Path, other: Path) -> None:
        flushed.append(other.read_text())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "hardlink_to", broken)
    with pytest.raises(MirrorError, match="No space left on device"):
        store.create("a/c.json", b"third")
    assert flushed == ["third"]
    assert [path.name for path in (tmp_path / "m/a").iterdir()] == ["b.json"]
    assert store.keys("a") == ["a/b.json"]


@pytest.mark.parametrize("url", ["", "file://"])
def test_an_empty_url_is_not_the_current_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MirrorError, match=r"the URL of the mirror is '.*': name a folder"):
        Store(url, make=True)
    assert not list(tmp_path.iterdir())
