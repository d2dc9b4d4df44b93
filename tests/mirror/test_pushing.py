"""A version in a mirror is what its record says, whole, and of one generation."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from gristmill.mirror import layout, pushing, send, versions
from gristmill.mirror.store import Store
from tests.mirror.roots import PART, built, clean, files, object_of, objects, posted, pulled, pushed

pytestmark = pytest.mark.sampled(0.2)


@pytest.mark.parametrize("name", ["train/steps.npy", "metadata.db", "place.json"])
@pytest.mark.parametrize("part", [PART, 1 << 20], ids=["parts", "whole"])
def test_a_wrong_byte_in_a_local_file_is_never_pushed(tmp_path: Path, name: str, part: int) -> None:
    built(tmp_path / "a", "family/wrong")
    built(tmp_path / "a", "family/right", seed=2)
    file = tmp_path / "a/family/wrong" / name
    data = file.read_bytes()
    for wrong in (data[:-1] + bytes([data[-1] ^ 1]), data[:-1], data + b"x", None):
        file.unlink()
        if wrong is not None:
            file.write_bytes(wrong)
        done = pushed(tmp_path / "a", tmp_path / "m", part_bytes=part)
        assert [each.title for each in done if each.error] == ["family/wrong"]
        assert str(file) in str(done[1].error)
        assert list(versions.numbers(Store(str(tmp_path / "m")), "family/wrong")) == []
        file.unlink(missing_ok=True)
        file.write_bytes(data)
    assert not any(each.error for each in pushed(tmp_path / "a", tmp_path / "m"))


def test_a_wrong_record_is_not_pushed(tmp_path: Path) -> None:
    built(tmp_path / "a")
    file = tmp_path / "a/family/tiny/provenance.json"
    record = json.loads(file.read_text())
    for change, said in (
        ({"seconds": 99.0}, "changed after it was written"),
        ({"artifact": "family/else"}, "changed after it was written"),
        ({"schema_version": 99}, "schema version"),
    ):
        file.write_text(json.dumps(record | change))
        (sent,) = pushed(tmp_path / "a", tmp_path / "m")
        assert sent.error is not None and said in sent.error
    file.write_text(json.dumps(record))
    shutil.move(tmp_path / "a/family/tiny", tmp_path / "a/family/moved")
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.error is not None and "is of family/tiny, which was moved" in sent.error
    assert objects(tmp_path / "m") == []


def test_a_push_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path / "a")
    wrote: list[str] = []
    write = Store.write

    def failing(store: Store, key: str, data: bytes) -> None:
        if len(wrote) == 5:
            raise OSError("the line is cut")
        wrote.append(key)
        write(store, key, data)

    monkeypatch.setattr(Store, "write", failing)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert sent.error is not None and "the line is cut" in sent.error
    assert len(objects(tmp_path / "m")) == 5
    assert not (tmp_path / "m/artifacts").exists()
    monkeypatch.setattr(Store, "write", write)
    whole = len(list(tmp_path.glob("a/family/tiny/**/*")))
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert sent.created and whole
    total = sum(path.stat().st_size for path in objects(tmp_path / "m"))
    before = sum((tmp_path / "m" / key).stat().st_size for key in wrote)
    assert sent.sent_bytes == total - before


def test_what_files_have_in_common_is_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        built(tmp_path / "a", f"family/same{number}")
    asked: list[str] = []
    wrote: list[str] = []
    size, write = Store.size, Store.write

    def slow(store: Store, key: str) -> int | None:
        asked.append(key)
        found = size(store, key)
        time.sleep(0.02)  # so that other threads ask before this one writes
        return found

    def counting(store: Store, key: str, data: bytes) -> None:
        wrote.append(key)
        write(store, key, data)

    monkeypatch.setattr(Store, "size", slow)
    monkeypatch.setattr(Store, "write", counting)
    done = pushed(tmp_path / "a", tmp_path / "m")
    assert all(each.created for each in done) and len(done) == 4
    there = objects(tmp_path / "m")
    assert len(wrote) == len(there)
    assert len(asked) == len(set(asked))
    assert sum(each.sent_bytes for each in done) == sum(path.stat().st_size for path in there)


def test_a_rebuild_meanwhile_is_pushed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "a", seed=1)
    rebuilt: list[int] = []
    read = send._part

    def slow(descriptor: int, start: int, size: int, source: send.Source) -> bytes:
        if not rebuilt:
            rebuilt.append(1)
            built(tmp_path / "a", seed=2)
        return read(descriptor, start, size, source)

    monkeypatch.setattr(send, "_part", slow)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert sent.error is None
    pulled(tmp_path / "b", tmp_path / "m")
    now = files(tmp_path / "a")
    built(tmp_path / "c", seed=1)
    assert files(tmp_path / "b").keys() == now.keys()
    first = (tmp_path / "c/family/tiny/train/steps.npy").read_bytes()
    got = files(tmp_path / "b")["family/tiny/train/steps.npy"]
    assert got in (first, now["family/tiny/train/steps.npy"])


def test_a_lost_answer_is_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path / "a")
    create = Store.create
    monkeypatch.setattr(Store, "create", lambda *given: create(*given) and False)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.created and sent.version is not None and sent.version.number == 1


def test_a_version_of_another_pusher_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "a", seed=1)
    built(tmp_path / "other", seed=2)
    built(tmp_path / "same", seed=1)
    finished = pushing._finished

    def late(*given: object) -> pushing.Pushed:
        monkeypatch.setattr(pushing, "_finished", finished)
        pushed(tmp_path / "other", tmp_path / "m")
        return finished(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pushing, "_finished", late)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.created and sent.version is not None and sent.version.number == 2

    # The same data under the number that was meant for it is no version of its own.
    def same(*given: object) -> pushing.Pushed:
        monkeypatch.setattr(pushing, "_finished", finished)
        pushed(tmp_path / "same", tmp_path / "n")
        return finished(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pushing, "_finished", same)
    (sent,) = pushed(tmp_path / "a", tmp_path / "n")
    assert not sent.created and sent.version is not None and sent.version.number == 1


def test_parts_of_an_earlier_version_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted(tmp_path, seed=1)
    built(tmp_path / "a", seed=2)
    read: list[str] = []
    part = send._part

    def noted(descriptor: int, start: int, size: int, source: send.Source) -> bytes:
        read.append(source.path)
        return part(descriptor, start, size, source)

    monkeypatch.setattr(send, "_part", noted)
    pushed(tmp_path / "a", tmp_path / "m")
    assert "trace.jsonl" not in read and "train/steps.npy" in read
    # A part that is gone is sent again, though an earlier version lists it.
    trace = (tmp_path / "a/family/tiny/trace.jsonl").read_bytes()
    object_of(tmp_path / "m", trace[:PART]).unlink()
    posted(tmp_path, seed=3)
    assert "trace.jsonl" in read and object_of(tmp_path / "m", trace[:PART]).exists()


def test_after_the_last_number_there_is_no_version(tmp_path: Path) -> None:
    posted(tmp_path)
    folder = tmp_path / "m/artifacts/family/tiny/@"
    text = (folder / "00000001.json").read_text()
    last = folder / "99999999.json"
    last.write_text(text.replace('"number": 1', '"number": 99999999'))
    assert not pushed(tmp_path / "a", tmp_path / "m")[0].created
    last.write_text(text)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m")
    assert sent.error is not None and sent.error.endswith(
        "family/tiny has a version 99999999, after which no number is left: "
        "move artifacts/family/tiny/@/99999999.json away"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["00000001.json", "99999999.json"]


def test_an_artifact_whose_manifest_no_pull_would_read_is_not_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MOST", 1000)
    sent = posted(tmp_path)
    assert sent.error is not None and "bytes, and a mirror takes 1,000: " in sent.error
    assert not (tmp_path / "m/artifacts").exists()


def test_a_push_that_is_killed_between_two_versions_of_a_shared_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull finds the new version of some partitions and the old one of others, each whole."""
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    for seed in (1, 4):
        for number, key in enumerate(("p1", "p2", "p3")):
            built(a, "family/shared", seed + number, partition=key, shared=True)
        if seed == 1:
            pushed(a, mirror)
            old = files(a)
    create, made = Store.create, list[str]()

    def killed(store: Store, key: str, data: bytes) -> bool:
        if made:
            raise KeyboardInterrupt
        made.append(key)
        return create(store, key, data)

    monkeypatch.setattr(Store, "create", killed)
    with pytest.raises(KeyboardInterrupt):
        pushed(a, mirror)
    monkeypatch.setattr(Store, "create", create)
    assert made == ["artifacts/family/shared/@p1/00000002.json"]
    got = pulled(b, mirror)
    assert [each.version.number for each in got if each.version] == [2, 1, 1]
    assert not any(each.error for each in got) and clean(b)
    new = files(a)
    assert files(b) == {path: (new if "p1" in path else old)[path] for path in new}
    assert [each.created for each in pushed(a, mirror)] == [False, True, True]
    pulled(b, mirror)
    assert files(b) == new


def test_names_that_no_store_can_have_are_refused(tmp_path: Path) -> None:
    sent = posted(tmp_path, "family/a b")
    assert sent.error is not None and "cannot be pushed: the name 'a b'" in sent.error


@pytest.mark.parametrize("part", [PART, 1 << 20], ids=["parts", "whole"])
def test_a_wrong_object_that_was_there_is_written_again_before_a_version_names_it(
    tmp_path: Path, part: int
) -> None:
    """Another artifact shares it, or a push that was stopped left it."""
    built(tmp_path / "a", "family/one")
    pushed(tmp_path / "a", tmp_path / "m", part_bytes=part)
    held = {path: path.read_bytes() for path in objects(tmp_path / "m")}
    built(tmp_path / "b", "family/two")
    two = b"".join(files(tmp_path / "b").values())
    shared = [path for path, data in held.items() if data in two and b"{" not in data[:1]]
    for path in shared:
        path.write_bytes(bytes([held[path][0] ^ 1]) + held[path][1:])
    (sent,) = pushed(tmp_path / "b", tmp_path / "m", part_bytes=part)
    assert shared and sent.created
    assert {path.read_bytes() for path in shared} == {held[path] for path in shared}
    assert not any(each.error for each in pulled(tmp_path / "c", tmp_path / "m"))


def test_what_was_found_is_compared_once_and_what_the_newest_version_names_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted(tmp_path, "family/one", 1)
    read: list[str] = []
    original = Store.read

    def noted(store: Store, key: str, *most: int) -> bytes | None:
        read.append(key)
        return original(store, key, *most)

    monkeypatch.setattr(Store, "read", noted)
    built(tmp_path / "a", "family/one", 2)
    pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    trace = (tmp_path / "a/family/one/trace.jsonl").read_bytes()
    key = object_of(tmp_path / "m", trace[:PART]).relative_to(tmp_path / "m").as_posix()
    assert key not in read
    built(tmp_path / "a", "family/two", 2)
    built(tmp_path / "a", "family/three", 2)
    pushed(tmp_path / "a", tmp_path / "m", parallel=1)
    assert read.count(key) == 1


def test_a_newest_version_without_its_manifest_stops_no_push(tmp_path: Path) -> None:
    sent = posted(tmp_path, seed=1)
    assert sent.version is not None
    next((tmp_path / "m/objects").rglob(sent.version.manifest)).unlink()
    sent = posted(tmp_path, seed=2)
    assert sent.created
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed


@pytest.mark.parametrize("wrong", ["manifest", "record", "gone"])
def test_a_damaged_version_of_another_record_is_followed_by_a_whole_one(
    tmp_path: Path, wrong: str
) -> None:
    built(tmp_path / "a")
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", part_bytes=1 << 20)
    assert sent.version is not None
    record = (tmp_path / "a/family/tiny/provenance.json").read_bytes()
    manifest = next((tmp_path / "m/objects").rglob(sent.version.manifest))
    if wrong == "gone":
        manifest.unlink()
    else:
        (manifest if wrong == "manifest" else object_of(tmp_path / "m", record)).write_bytes(b"{}")
    built(tmp_path / "a", rebuild=True)
    (got,) = pulled(tmp_path / "b", tmp_path / "m")
    assert got.error is not None and "push the artifact again with --read-back" in got.error
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", read_back=True, part_bytes=1 << 20)
    assert sent.created and sent.version is not None and sent.version.number == 2
    assert not any(each.error for each in pulled(tmp_path / "b", tmp_path / "m"))
    built(tmp_path / "a", rebuild=True)
    (sent,) = pushed(tmp_path / "a", tmp_path / "m", read_back=True, part_bytes=1 << 20)
    assert not sent.created
