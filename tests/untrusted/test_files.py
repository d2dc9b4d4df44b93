import os
import pickle
import socket
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.files import (
    LinkRule,
    has_file,
    open_file,
    open_folder,
    open_inner,
    opened,
    read_file,
    real_path,
    refuse_equal,
    stat_file,
)
from tests.paths import open_below


def _drop(tmp_path: Path) -> Path:
    drop = tmp_path / "inbox" / "d1"
    (drop / "inner").mkdir(parents=True)
    (drop / "inner" / "run.txt").write_bytes(b"rows")
    return drop


def test_a_regular_file_below_a_root_is_read_and_the_root_may_be_a_link(tmp_path):
    file = _drop(tmp_path) / "inner" / "run.txt"
    for root in (file.parent, file.parent.parent, tmp_path):
        with open_file(file, root=root) as opened:
            assert opened.read() == b"rows"
        assert stat_file(file, root=root).st_size == 4
        assert has_file(file, root=root)
        assert real_path(file, root=root) == file
    (tmp_path := tmp_path / "next").mkdir()
    drop = _drop(tmp_path)
    (tmp_path / "linked").symlink_to(drop.parent)
    assert read_file(tmp_path / "linked/d1/inner/run.txt", root=tmp_path / "linked", most=4)


@pytest.mark.parametrize("at", ["file", "folder", "drop"])
def test_a_link_at_any_place_below_the_root_is_refused_by_name(tmp_path, at):
    drop = _drop(tmp_path)
    (drop / "file").symlink_to(drop / "inner" / "run.txt")
    (drop / "folder").symlink_to(drop / "inner")
    (drop.parent / "drop").symlink_to(drop)
    place, link = {
        "file": (drop / "file", drop / "file"),
        "folder": (drop / "folder" / "run.txt", drop / "folder"),
        "drop": (drop.parent / "drop/inner/run.txt", drop.parent / "drop"),
    }[at]
    for read in (open_file, stat_file, has_file, real_path):
        if read is real_path and at == "file":
            continue
        with pytest.raises(BadInput, match="is a link") as raised:
            read(place, root=drop.parent)
        assert raised.value.file == str(link)


def test_a_pipe_a_socket_a_device_and_a_folder_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name in ("pipe", "socket"):
        with pytest.raises(BadInput, match=f"is a {name}: a drop may hold"):
            open_file(tmp_path / name, root=tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="is a folder, where a file is expected"):
        open_file(tmp_path / "folder", root=tmp_path)
    with pytest.raises(BadInput, match="is a device"):
        open_file(Path("/dev/zero"), root=Path("/dev"))


def test_an_entry_that_changes_after_the_look_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    regular = (tmp_path / "file").stat()
    monkeypatch.setattr("gristmill.untrusted.files.os.stat", lambda *_, **__: regular)
    with pytest.raises(BadInput, match="is a pipe"):
        open_file(tmp_path / "pipe", root=tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        open_file(tmp_path / "link", root=tmp_path)


def test_a_link_is_followed_only_into_a_stated_root(tmp_path):
    drop, store = _drop(tmp_path), tmp_path / "store"
    (store / "deep").mkdir(parents=True)
    (store / "deep" / "blob").write_bytes(b"blob")
    (tmp_path / "store-2").mkdir()
    (tmp_path / "store-2" / "blob").write_bytes(b"secret")
    rule = LinkRule(follow=True, roots=(str(store),))
    (drop / "good").symlink_to("../../store/deep/blob")
    (drop / "bad").symlink_to("../../store-2/blob")
    (drop / "gone").symlink_to(store / "none")
    (drop / "folder").symlink_to(store / "deep")
    (drop / "self").symlink_to("self")
    assert read_file(drop / "good", root=drop, most=4, links=rule) == b"blob"
    assert real_path(drop / "good", root=drop, links=rule) == store / "deep" / "blob"
    assert read_file(drop / "folder" / "blob", root=drop, most=4, links=rule) == b"blob"
    with pytest.raises(BadInput, match="store-2/blob', which is in none of the folders"):
        open_file(drop / "bad", root=drop, links=rule)
    for name in ("gone", "self"):
        with pytest.raises(BadInput, match="leads nowhere"):
            open_file(drop / name, root=drop, links=rule)
    with pytest.raises(BadInput, match="is a folder"):
        open_file(drop / "folder", root=drop, links=rule)
    with pytest.raises(BadInput, match="is a link"):
        open_file(drop / "good", root=drop, links=LinkRule(roots=(str(store),)))
    with pytest.raises(BadInput, match="is a link to a folder"):
        open_file(drop / "folder", root=drop, links=LinkRule(True, (str(store / "deep"),)))


def test_a_drop_that_is_a_link_is_opened_where_it_points_to(tmp_path):
    drop = _drop(tmp_path)
    inbox = tmp_path / "other"
    inbox.mkdir()
    (inbox / "d1").symlink_to(drop)
    rule = LinkRule(follow=True, roots=(str(drop),))
    assert read_file(inbox / "d1/inner/run.txt", root=inbox, most=4, links=rule) == b"rows"
    with open_folder(inbox / "d1", root=inbox, links=rule) as folder:
        assert [entry.name for entry in os.scandir(folder)] == ["inner"]
        with open_inner(folder, "inner") as inner:
            assert [entry.name for entry in os.scandir(inner)] == ["run.txt"]
    with pytest.raises(BadInput, match="is a link"), open_folder(inbox / "d1", root=inbox):
        pass


def test_errors_name_the_whole_path_and_no_descriptor_stays_open(tmp_path):
    drop = _drop(tmp_path)
    (drop / "inner" / "link").symlink_to("run.txt")
    with pytest.raises(FileNotFoundError) as raised:
        open_file(drop / "inner" / "none", root=drop)
    assert raised.value.filename == str(drop / "inner" / "none")
    with pytest.raises(FileNotFoundError) as raised:
        open_file(drop / "none" / "run.txt", root=drop)
    assert raised.value.filename == str(drop / "none")
    with pytest.raises(FileNotFoundError) as raised:
        open_file(tmp_path / "none" / "x", root=tmp_path / "none")
    assert raised.value.filename == str(tmp_path / "none")
    with pytest.raises(BadInput, match=r"run.txt: is no folder"):
        open_file(drop / "inner" / "run.txt" / "x", root=drop)
    with pytest.raises(BadInput):
        open_file(drop / "inner" / "link", root=drop)
    assert not has_file(drop / "none" / "x", root=drop)
    assert open_below(tmp_path) == 0


def test_a_path_outside_of_the_root_is_refused_and_a_small_file_has_a_bound(tmp_path):
    drop = _drop(tmp_path)
    with pytest.raises(ValueError, match="is not below"):
        open_file(tmp_path / "x", root=drop)
    with pytest.raises(ValueError, match=r"must not hold '\.\.'"):
        open_file(drop / ".." / "d1" / "x", root=drop)
    (tmp_path := tmp_path / "next").mkdir()
    file = _drop(tmp_path) / "inner" / "run.txt"
    assert read_file(file, root=tmp_path, most=4) == b"rows"
    with pytest.raises(BadInput, match="has more than 3 bytes"):
        read_file(file, root=tmp_path, most=3)


def test_a_file_without_bytes_after_its_name_needs_no_right_to_list_its_folder(tmp_path):
    file = _drop(tmp_path) / "inner" / "run.txt"
    file.parent.chmod(0o300)
    try:
        assert read_file(file, root=tmp_path, most=4) == b"rows"
    finally:
        file.parent.chmod(0o700)


def test_the_rule_for_links_travels_to_workers_and_an_error_of_the_disk_names_the_file():
    rule = LinkRule(True, ("/store",))
    assert pickle.loads(pickle.dumps(rule)) == rule
    # Linux answers EIO to a read of the first byte of this file, which is a regular one.
    broken = Path("/proc/self/mem")
    for file in (open_file(broken, root=broken.parent), opened(broken)):
        with file, pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
            file.read(1)


END = 1 << 16


def sizes(drop: Path, **files: bytes) -> dict[str, int]:
    """Write files; returns their sizes, the last one first."""
    drop.mkdir(exist_ok=True)
    for name, octets in files.items():
        (drop / name).write_bytes(octets)
    return {name: len(files[name]) for name in reversed(files)}


@pytest.mark.parametrize("length", [1, END, 2 * END, 2 * END + 1, 5 * END])
def test_equal_files_are_refused_at_any_length(tmp_path, length):
    found = sizes(tmp_path, a=b"x" * length, b=b"y" * length, c=b"x" * length, d=b"z")
    with pytest.raises(BadInput) as raised:
        refuse_equal(tmp_path, found)
    assert str(raised.value) == (
        f"{tmp_path}/c: has the bytes of a: its records would count twice: take one of them out"
    )


@pytest.mark.parametrize("place", [0, END - 1, END, 2 * END, 4 * END - 1])
def test_one_byte_anywhere_makes_files_unequal(tmp_path, place):
    octets = bytearray(4 * END)
    other = octets.copy()
    other[place] = 1
    refuse_equal(tmp_path, sizes(tmp_path, a=bytes(octets), b=bytes(other)))


def test_files_that_are_empty_or_gone_or_take_too_long_to_compare_are_equal_to_none(tmp_path):
    refuse_equal(tmp_path, sizes(tmp_path, a=b"", b=b""))
    refuse_equal(tmp_path, {**sizes(tmp_path, a=b"x"), "gone": 1, "absent": 1})
    long = sizes(tmp_path, a=b"x" * 3 * END, b=b"x" * 3 * END)
    ends, whole = 4 * END, 6 * END
    refuse_equal(tmp_path, long, most=ends - 1)
    refuse_equal(tmp_path, long, most=ends + whole - 1)
    with pytest.raises(BadInput, match="b: has the bytes of a"):
        refuse_equal(tmp_path, long, most=ends + whole)


def test_links_are_read_as_they_are_allowed(tmp_path):
    found = sizes(tmp_path / "drop", a=b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_bytes(b"x")
    (tmp_path / "drop/b").symlink_to(outside / "b")
    with pytest.raises(BadInput, match="b: is a link"):
        refuse_equal(tmp_path / "drop", {**found, "b": 1})
    with pytest.raises(BadInput, match="b: has the bytes of a"):
        refuse_equal(tmp_path / "drop", {**found, "b": 1}, LinkRule(True, (str(outside),)))


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gristmill.untrusted.files.open_file", refuse)
    with pytest.raises(BadInput, match="a: cannot be read: Permission denied"):
        refuse_equal(tmp_path, sizes(tmp_path, a=b"x", b=b"x"))
