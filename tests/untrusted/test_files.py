from __future__ import annotations

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
    stat_file,
)
from tests.paths import open_below


def _drop(tmp_path: Path) -> Path:
    drop = tmp_path / "inbox" / "d1"
    (drop / "inner").mkdir(parents=True)
    (drop / "inner" / "run.txt").write_bytes(b"rows")
    return drop


def test_a_regular_file_below_the_root_is_read(tmp_path: Path) -> None:
    file = _drop(tmp_path) / "inner" / "run.txt"
    for root in (file.parent, file.parent.parent, tmp_path):
        with open_file(file, root=root) as opened:
            assert opened.read() == b"rows"
        assert stat_file(file, root=root).st_size == 4
        assert has_file(file, root=root)
        assert real_path(file, root=root) == file


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    drop = _drop(tmp_path)
    (tmp_path / "linked").symlink_to(drop.parent)
    assert read_file(tmp_path / "linked/d1/inner/run.txt", root=tmp_path / "linked", most=4)


@pytest.mark.parametrize("at", ["file", "folder", "drop"])
def test_a_link_at_any_place_below_the_root_is_refused_by_name(tmp_path: Path, at: str) -> None:
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


def test_a_pipe_a_socket_a_device_and_a_folder_are_refused_without_waiting(tmp_path: Path) -> None:
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


def test_an_entry_that_changes_after_the_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    regular = (tmp_path / "file").stat()
    monkeypatch.setattr("gristmill.untrusted.files.os.stat", lambda *_, **__: regular)
    with pytest.raises(BadInput, match="is a pipe"):
        open_file(tmp_path / "pipe", root=tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        open_file(tmp_path / "link", root=tmp_path)


def test_a_link_is_followed_only_into_a_stated_root(tmp_path: Path) -> None:
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


def test_a_drop_that_is_a_link_is_opened_where_it_points_to(tmp_path: Path) -> None:
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


def test_errors_name_the_whole_path_and_no_descriptor_stays_open(tmp_path: Path) -> None:
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


def test_a_path_outside_of_the_root_is_an_error_of_the_caller(tmp_path: Path) -> None:
    drop = _drop(tmp_path)
    with pytest.raises(ValueError, match="is not below"):
        open_file(tmp_path / "x", root=drop)
    with pytest.raises(ValueError, match=r"must not hold '\.\.'"):
        open_file(drop / ".." / "d1" / "x", root=drop)


def test_a_small_file_has_a_bound(tmp_path: Path) -> None:
    file = _drop(tmp_path) / "inner" / "run.txt"
    assert read_file(file, root=tmp_path, most=4) == b"rows"
    with pytest.raises(BadInput, match="has more than 3 bytes"):
        read_file(file, root=tmp_path, most=3)


def test_a_file_without_bytes_after_its_name_needs_no_right_to_list_its_folder(
    tmp_path: Path,
) -> None:
    file = _drop(tmp_path) / "inner" / "run.txt"
    file.parent.chmod(0o300)
    try:
        assert read_file(file, root=tmp_path, most=4) == b"rows"
    finally:
        file.parent.chmod(0o700)


def test_the_rule_for_links_travels_to_workers() -> None:
    rule = LinkRule(True, ("/store",))
    assert pickle.loads(pickle.dumps(rule)) == rule


def test_an_error_of_the_disk_names_the_file() -> None:
    """Linux answers EIO to a read of the first byte of this file, which is a regular one."""
    broken = Path("/proc/self/mem")
    for file in (open_file(broken, root=broken.parent), opened(broken)):
        with file, pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
            file.read(1)
