"""A version in a mirror is what its record says, whole, and of one generation."""

import json
import shutil
from collections.abc import Iterable

import pytest

from gristmill import provenance
from gristmill.mirror import pushing, store
from gristmill.mirror.store import Store
from gristmill.mirror.versions import Transfer
from gristmill.reading.folder import OpenFolder
from tests.mirror.roots import built, clean, files, objects, posted, pulled, pushed, versions
from tests.mirror.s3 import served


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Files are read and sent in several pieces."""
    for module in (store, store):
        monkeypatch.setattr(module, "PIECE", 64)


@pytest.mark.parametrize("name", ["train/steps.npy", "metadata.db", "place.json"])
@pytest.mark.parametrize("piece", [64, 1 << 20])
def test_a_wrong_byte_in_a_local_file_is_never_pushed(tmp_path, name, piece, monkeypatch):
    for module in (store, store):
        monkeypatch.setattr(module, "PIECE", piece)
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
    monkeypatch.setattr(pushing, "MOST", 1000)
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


def test_a_version_comes_after_the_last_one_whatever_the_clock_says(tmp_path):
    posted(tmp_path, seed=1)
    (old,) = versions(tmp_path / "m")
    old.rename(old.with_name("2999" + old.name[4:]))
    posted(tmp_path, seed=2)
    assert pulled(tmp_path / "b", tmp_path / "m")[0].changed
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert not pushed(tmp_path / "a", tmp_path / "m")[0].created


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
def test_all_samples_go_there_and_back(kind, sample_root, tmp_path):
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
