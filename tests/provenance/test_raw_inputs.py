"""Raw files as inputs: what is recorded of them, and which are read again."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from gristmill.contract import BadInput
from gristmill.provenance import INPUTS_LIMIT, Input, raw_inputs, record
from gristmill.publish.publish import publish
from gristmill.untrusted.files import LinkRule, open_file
from tests.publish.tiny import tiny_build


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "drops/mill/d1"
    folder.mkdir(parents=True)
    made = [folder / f"{name}.txt" for name in "cab"]
    for file in made:
        file.write_text(f"grain {file.stem}")
    return made


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are trusted as if they had been written long before the record."""
    for module in (raw_inputs, record):
        monkeypatch.setattr(module, "CLOCK_TICK_NS", 0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were hashed."""
    names: list[str] = []

    def spy(path: Path, **options: Any) -> BinaryIO:
        names.append(path.name)
        return open_file(path, **options)

    monkeypatch.setattr(raw_inputs, "open_file", spy)
    return names


def inputs(root: Path, files: list[Path], known: raw_inputs.Known) -> list[Input]:
    return raw_inputs.raw_inputs(root, files, "mill/raw", "d1", known)


def test_each_file_is_recorded_in_the_given_order_relative_to_the_root(tmp_path, files):
    made = inputs(tmp_path, files, {})
    assert [item.path for item in made] == [f"drops/mill/d1/{name}.txt" for name in "cab"]
    for item, file in zip(made, files, strict=True):
        content = file.read_bytes()
        assert (item.asset, item.partition) == ("mill/raw", "d1")
        assert item.bytes == len(content)
        assert item.sha256 == hashlib.sha256(content).hexdigest()
        assert item.mtime_ns == file.stat().st_mtime_ns


@pytest.mark.parametrize("copies", [1, INPUTS_LIMIT])
def test_only_what_changed_since_the_record_is_read_again(tmp_path, files, read, copies):
    """With many inputs the record keeps them in a file of its own."""
    folder = files[0].parent
    for number in range(copies - 1):
        (folder / f"more{number:03}.txt").write_text(str(number))
    files = sorted(folder.iterdir())
    published = publish(tiny_build(tmp_path, inputs=inputs(tmp_path, files, {})))
    known = raw_inputs.known_hashes(published.folder / "provenance.json")
    assert len(known) == len(files)

    read.clear()
    assert inputs(tmp_path, files, known) == inputs(tmp_path, files, {**known})
    assert read == []
    # The same size and other bytes, as a download that was done again.
    (folder / "a.txt").write_text("GRAIN a")
    os.utime(folder / "b.txt", ns=(0, 0))
    (folder / "c.txt").write_text("longer than before")
    again = inputs(tmp_path, files, known)
    assert sorted(read) == ["a.txt", "b.txt", "c.txt"]
    assert [item.sha256 for item in again] == [
        hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    ]


@pytest.mark.parametrize("damage", [None, b"{\n"])
def test_a_list_of_inputs_that_was_lost_or_changed_tells_nothing(tmp_path, files, damage):
    for number in range(INPUTS_LIMIT):
        (files[0].parent / f"more{number:03}.txt").write_text(str(number))
    files = sorted(files[0].parent.iterdir())
    published = publish(tiny_build(tmp_path, inputs=inputs(tmp_path, files, {})))
    listed = published.folder / "inputs.jsonl"
    listed.unlink()
    if damage is not None:
        listed.write_bytes(damage)
    assert raw_inputs.known_hashes(published.folder / "provenance.json") == {}
    again = publish(tiny_build(tmp_path, inputs=inputs(tmp_path, files, {})))
    assert again.rebuilt
    assert len(raw_inputs.known_hashes(again.folder / "provenance.json")) == len(files)


@pytest.mark.parametrize("change", [(b'"rows": 6', b'"rows": 7'), (b"{", b"")])
def test_a_record_that_was_changed_or_cannot_be_read_tells_nothing(tmp_path, files, change):
    published = publish(tiny_build(tmp_path, inputs=inputs(tmp_path, files, {})))
    path = published.folder / "provenance.json"
    assert change[0] in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(*change))
    assert raw_inputs.known_hashes(path) == {}


@pytest.mark.parametrize("shared", [False, True])
def test_files_of_a_record_that_was_pulled_are_read_once(tmp_path, files, read, shared):
    build = tiny_build(tmp_path, inputs=inputs(tmp_path, files, {}), shared=shared, partition="p1")
    record = publish(build).record
    note = raw_inputs.pulled_note(tmp_path, record.artifact, "p1" if shared else None)
    note.parent.mkdir(parents=True)
    note.write_text(record.digest)
    shutil.rmtree(tmp_path / ".gristmill/drops")  # the files were hashed on another host
    for expected in (["a.txt", "b.txt", "c.txt"], []):
        read.clear()
        again = inputs(tmp_path, files, raw_inputs.known_hashes(build.record_path))
        assert sorted(read) == expected
        assert again == list(build.inputs)


@pytest.mark.parametrize("shared", [False, True])
def test_files_of_a_copied_root_are_read_once(tmp_path, files, read, shared):
    build = tiny_build(tmp_path, inputs=inputs(tmp_path, files, {}), shared=shared, partition="p1")
    publish(build)
    for file in files:  # as a copy that keeps the times of contents
        stat = file.stat()
        file.write_bytes(file.read_bytes())
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for expected in (["a.txt", "b.txt", "c.txt"], []):
        read.clear()
        again = inputs(tmp_path, files, raw_inputs.known_hashes(build.record_path))
        assert sorted(read) == expected
        assert again == list(build.inputs)
    # The same bytes in another inode, or other bytes with the same size and times, are read.
    for data in (files[1].read_bytes(), b"GRAIN a"):
        stat = files[1].stat()
        other = files[1].with_name("other")
        other.write_bytes(data)
        os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        other.replace(files[1])
        read.clear()
        known = raw_inputs.known_hashes(build.record_path)
        assert inputs(tmp_path, files, known)[1].sha256 == hashlib.sha256(data).hexdigest()
        assert read == ["a.txt"]


def test_a_name_that_is_not_utf_8_is_refused_in_words_and_any_other_is_not(tmp_path, files):
    named = files[0].rename(files[0].with_name("\N{GREEK SMALL LETTER ALPHA}.txt"))
    assert inputs(tmp_path, [named], {})[0].path.endswith("\N{GREEK SMALL LETTER ALPHA}.txt")
    wrong = named.rename(os.fsdecode(os.fsencode(named.parent) + b"/\xff.txt"))
    with pytest.raises(BadInput, match=r"\\xff\.txt: the name is not UTF-8: rename the file"):
        inputs(tmp_path, [wrong], {})
    folder = Path(os.fsdecode(os.fsencode(wrong.parent) + b"/\xfe"))
    folder.mkdir()
    with pytest.raises(BadInput, match=r"d1/\\xfe: the name is not UTF-8: rename the folder"):
        inputs(tmp_path, [files[1].rename(folder / "a.txt")], {})


def test_without_a_record_nothing_is_known(tmp_path):
    assert raw_inputs.known_hashes(tmp_path / "provenance.json") == {}


def test_a_file_that_is_gone_is_an_error(tmp_path, files):
    files[1].unlink()
    with pytest.raises(FileNotFoundError):
        inputs(tmp_path, files, {})


def test_a_file_outside_the_root_is_refused(tmp_path, files):
    with pytest.raises(ValueError, match="is not in the subpath"):
        inputs(tmp_path / "drops/mill/d2", files, {})


def test_a_link_below_the_inbox_is_refused_and_one_above_it_is_not(tmp_path, files):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "drops").symlink_to(tmp_path / "drops")
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    root = tmp_path / "linked"
    below = [root / file.relative_to(tmp_path) for file in files]
    assert [item.sha256 for item in inputs(root, below, {})] == [
        item.sha256 for item in inputs(tmp_path, files, {})
    ]
    secret = tmp_path / "secret"
    files[0].rename(secret)
    files[0].symlink_to(secret)
    with pytest.raises(BadInput, match=r"c\.txt: is a link"):
        inputs(tmp_path, files, {})
    rule = LinkRule(True, (str(tmp_path),))
    made = raw_inputs.raw_inputs(tmp_path, files, "mill/raw", "d1", {}, rule)
    assert made[0].sha256 == hashlib.sha256(b"grain c").hexdigest()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_a_file_of_another_owner_with_names_elsewhere_is_no_input(tmp_path, files):
    (tmp_path / "other").hardlink_to(files[1])
    assert len(inputs(tmp_path, files, {})) == 3
    os.chown(files[1], 12345, -1)
    with pytest.raises(BadInput, match=r"a\.txt: belongs to user 12345"):
        inputs(tmp_path, files, {})


def test_our_own_files_may_be_in_a_folder_that_is_a_link(tmp_path, files):
    (tmp_path / "artifact").symlink_to(files[0].parent)
    assert inputs(tmp_path, [tmp_path / "artifact" / "a.txt"], {})[0].path == "artifact/a.txt"
