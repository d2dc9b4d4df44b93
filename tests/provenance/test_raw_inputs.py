"""Raw files as inputs: what is recorded of them, and which are read again."""

import fcntl
import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from gristmill.contract import BadInput
from gristmill.provenance import INPUTS_LIMIT, Input, raw_inputs, record
from gristmill.provenance.raw_inputs import DropHashes, Stamp, drop_of, name_in, stamp_of
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
    assert raw_inputs.known_hashes(tmp_path / "provenance.json") == {}  # there is none


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


def test_our_files_may_be_in_a_linked_folder_and_others_outside_are_refused(tmp_path, files):
    (tmp_path / "artifact").symlink_to(files[0].parent)
    assert inputs(tmp_path, [tmp_path / "artifact" / "a.txt"], {})[0].path == "artifact/a.txt"
    with pytest.raises(ValueError, match="is not in the subpath"):
        inputs(tmp_path / "drops/mill/d2", files, {})
    files[1].unlink()
    with pytest.raises(FileNotFoundError):
        inputs(tmp_path, files, {})


MINUTE_NS = 60_000_000_000


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drops/mill/d1"
    (folder / "inner").mkdir(parents=True)
    for name in ("a", "inner/b"):
        (folder / name).write_text(f"grain {name}")
    return folder


def stamped(path: Path) -> tuple[str, Stamp]:
    stamp = stamp_of(path.stat())
    return hashlib.sha256(path.read_bytes()).hexdigest(), stamp


def kept(root: Path, drop: Path, *names: str, is_own: bool = True) -> DropHashes:
    sums = DropHashes(root, drop)
    sums.keep({name: stamped(drop / name) for name in names}, is_own=is_own)
    return sums


def test_a_sum_is_known_to_another_process_while_the_file_has_the_same_stamp(tmp_path, drop):
    kept(tmp_path, drop, "a", "inner/b")
    again = DropHashes(tmp_path, drop)
    for name in ("a", "inner/b"):
        sha256, stamp = stamped(drop / name)
        assert again.known(name, stamp) == again.of_now(name) == sha256
    assert again.of_now("other") is None
    assert [path.name for path in (tmp_path / ".gristmill/drops").iterdir()] == ["mill@d1.json"]


@pytest.mark.parametrize("change", ["bytes", "time", "inode", "size", "back"])
def test_a_file_with_another_stamp_is_not_known(tmp_path, drop, change):
    kept(tmp_path, drop, "a")
    path, stat = drop / "a", (drop / "a").stat()
    if change == "inode":
        (drop / "new").write_bytes(path.read_bytes())
        os.utime(drop / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (drop / "new").replace(path)
    elif change == "time":
        os.utime(path, ns=(1, 1))
    else:
        path.write_text("longer than before" if change == "size" else "GRAIN a")
    if change == "back":  # its times as before: that of the inode tells
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    sums = DropHashes(tmp_path, drop)
    assert sums.of_now("a") is None
    assert sums.known("a", stamp_of(stat)) is not None  # it is the stamp that is asked for


def test_a_file_that_changed_a_moment_ago_is_kept_by_its_writer_alone(tmp_path, drop, monkeypatch):
    monkeypatch.undo()  # nothing is settled
    assert kept(tmp_path, drop, "a", is_own=False).of_now("a") is None
    assert not (tmp_path / ".gristmill").exists()
    assert kept(tmp_path, drop, "a", is_own=True).of_now("a") is not None
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + MINUTE_NS)
    assert kept(tmp_path, drop, "inner/b", is_own=False).of_now("inner/b") is not None


def test_what_another_process_kept_meanwhile_stays(tmp_path, drop):
    one, other = DropHashes(tmp_path, drop), DropHashes(tmp_path, drop)
    assert (one.of_now("a"), other.of_now("inner/b")) == (None, None)  # both have read the notes
    one.keep({"a": stamped(drop / "a")})
    other.keep({"inner/b": stamped(drop / "inner/b")})
    for sums in (other, DropHashes(tmp_path, drop)):
        assert sums.of_now("a") == stamped(drop / "a")[0]
        assert sums.of_now("inner/b") == stamped(drop / "inner/b")[0]


def test_a_new_sum_takes_the_place_of_the_old_one_and_any_names_are_kept(tmp_path, drop):
    kept(tmp_path, drop, "a", "inner/b")
    (drop / "a").write_text("another")
    (drop / "inner/b").unlink()
    sums = kept(tmp_path, drop, "a", is_own=False)
    assert sums.of_now("a") == hashlib.sha256(b"another").hexdigest()
    assert (tmp_path / ".gristmill/drops/mill@d1.json").read_text().count("[") == 1
    names = [os.fsdecode(b"\xff\xfe"), "a b  c", "new\nline", " ", "ü", "back\\slash"]
    for name in names:
        (drop / name).write_text(name.encode(errors="replace").decode())
    kept(tmp_path, drop, *names)
    again = DropHashes(tmp_path, drop)
    assert [again.of_now(name) for name in names] == [stamped(drop / name)[0] for name in names]


def test_notes_that_cannot_be_written_are_no_error(tmp_path, drop):
    (tmp_path / ".gristmill").write_text("a file instead of the folder")
    sums = kept(tmp_path, drop, "a")
    assert sums.of_now("a") == stamped(drop / "a")[0]
    assert DropHashes(tmp_path, drop).of_now("a") is None


def test_a_drop_that_is_a_file_is_known_by_its_name_and_inboxes_do_not_mix(tmp_path):
    recipe, other = tmp_path / "drops/mill/recipes/r.toml", tmp_path / "drops/mill/r.toml"
    for path in (recipe, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.parent.name)
        DropHashes(tmp_path, path).keep({"r.toml": stamped(path)}, is_own=True)
    for path in (recipe, other):
        assert DropHashes(tmp_path, path).of_now("r.toml") == stamped(path)[0]


def test_a_link_is_refused_unless_links_are_followed(tmp_path, drop):
    (tmp_path / "store").write_text("far")
    (drop / "link").symlink_to(tmp_path / "store")
    sums = kept(tmp_path, drop, "link")
    with pytest.raises(BadInput, match="link: is a link"):
        sums.of_now("link")
    links = LinkRule(True, (str(tmp_path),))
    assert sums.of_now("link", links) == hashlib.sha256(b"far").hexdigest()
    (tmp_path / "store").write_text("other")
    assert sums.of_now("link", links) is None
    (drop / "link").unlink()
    with pytest.raises(FileNotFoundError):
        sums.of_now("link", links)


def test_files_outside_of_drops_belong_to_none(tmp_path):
    inbox = tmp_path / "drops/mill"
    for path, drop in (
        (inbox / "d1/inner/a", inbox / "d1"),
        (inbox / "d1", inbox / "d1"),
        (inbox, None),
        (tmp_path / "macroxue/packs/d1/a", None),
    ):
        assert drop_of(tmp_path, path) == drop
    assert name_in(inbox / "d1", inbox / "d1/inner/a") == "inner/a"
    assert name_in(inbox / "r.toml", inbox / "r.toml") == "r.toml"


ONE: dict[str, Stamp] = {"a": (1, 2, 3, 4, 5)}
TWO: dict[str, Stamp] = {"b": (6, 7, 8, 9, 10)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stamps/source.json"


@pytest.mark.parametrize(
    "notes",
    [
        *(b"", b"[]", b"{", b'{"a": 1}', b'{"a": [1]}', b"[" * 9999, b"9" * 9),
        *(b'{"a": [1, 2, "3", 4, 5]}', b'{"a": [1e400]}', b'{"a": [1, 2, 3, 4, 1e400]}'),
    ],
)
def test_notes_that_cannot_be_read_are_none_and_are_replaced(file, notes):
    assert raw_inputs.read_stamps(file) == {}
    file.parent.mkdir()
    file.write_bytes(notes)
    assert raw_inputs.read_stamps(file) == {}
    raw_inputs.write_stamps(file, ONE)
    assert raw_inputs.read_stamps(file) == ONE


def test_notes_are_replaced_whole_or_stay(file, monkeypatch):
    def refuse(self: Path, target: Path) -> Path:
        raise OSError("no")

    file.parent.mkdir()
    file.with_name("source.json.new").write_bytes(b'{"a": [1, 2' + b" " * 100)  # of a killed one
    for notes in (ONE, TWO):
        raw_inputs.write_stamps(file, notes)
        assert raw_inputs.read_stamps(file) == notes
        assert list(file.parent.iterdir()) == [file]
    monkeypatch.setattr(Path, "replace", refuse)
    raw_inputs.write_stamps(file, ONE)
    assert raw_inputs.read_stamps(file) == TWO
    assert list(file.parent.iterdir()) == [file]


def test_notes_that_another_process_writes_are_left_to_it(file):
    raw_inputs.write_stamps(file, ONE)
    new = file.with_name("source.json.new")
    with new.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("half")
        other.flush()
        raw_inputs.write_stamps(file, TWO)
        assert new.read_text() == "half"
    assert raw_inputs.read_stamps(file) == ONE


def test_notes_that_were_renamed_meanwhile_are_left(file, monkeypatch):
    lock = fcntl.flock

    def late(target: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        raw_inputs.write_stamps(file, ONE)  # by another process: it renames what is opened here
        file.with_name("source.json.new").touch()
        lock(target, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    raw_inputs.write_stamps(file, TWO)
    assert raw_inputs.read_stamps(file) == ONE
