"""What a file system gives is found by trying it; a refusal of any kind is seen."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from gristmill.publish import atomic_fs, storage
from gristmill.publish.storage import Abilities

Refuse = Callable[[pytest.MonkeyPatch, int], None]


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_known", {})


def refuse_renameat2(monkeypatch: pytest.MonkeyPatch, number: int, flag: int) -> None:
    """Let the kernel refuse one flag of renameat2."""
    libc = ctypes.CDLL(None, use_errno=True)

    class Libc:
        def renameat2(self, *arguments: object) -> int:
            if getattr(arguments[4], "value", None) == flag:
                ctypes.set_errno(number)
                return -1
            return int(libc.renameat2(*arguments))

    monkeypatch.setattr(atomic_fs.ctypes, "CDLL", lambda *_, **__: Libc())


def refuse_flush(monkeypatch: pytest.MonkeyPatch, number: int, *, folders: bool) -> None:
    """Let fsync of files, or of folders, fail."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) == folders:
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)


def refuse_call(monkeypatch: pytest.MonkeyPatch, number: int, *, owner: object, name: str) -> None:
    """Let one function fail."""

    def failing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(owner, name, failing)


REFUSALS: dict[str, Refuse] = {
    "place": lambda patch, number: refuse_renameat2(patch, number, 1),
    "exchange": lambda patch, number: refuse_renameat2(patch, number, 2),
    "rename_over": lambda patch, number: refuse_call(patch, number, owner=Path, name="replace"),
    "hard_links": lambda patch, number: refuse_call(patch, number, owner=os, name="link"),
    "locks": lambda patch, number: refuse_call(patch, number, owner=fcntl, name="flock"),
    "flush_files": lambda patch, number: refuse_flush(patch, number, folders=False),
    "flush_folders": lambda patch, number: refuse_flush(patch, number, folders=True),
    "links": lambda patch, number: refuse_call(patch, number, owner=Path, name="symlink_to"),
}
NUMBERS = [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ENOLCK]


def refused(found: Abilities) -> set[str]:
    return {field.name for field in fields(found) if getattr(found, field.name) is not None}


def test_a_local_file_system_gives_all_and_keeps_nothing(tmp_path: Path) -> None:
    assert refused(storage.abilities(tmp_path)) == set()
    storage.state(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("ability", REFUSALS)
def test_a_refused_call_is_one_ability_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ability: str, number: int
) -> None:
    REFUSALS[ability](monkeypatch, number)
    found = storage.abilities(tmp_path)
    monkeypatch.undo()
    assert refused(found) == {ability}
    assert getattr(found, ability)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_a_second_holder_gets_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert storage.abilities(tmp_path).locks == "a second holder gets the lock, too"


def test_calls_that_answer_and_do_nothing_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    symlink_to = Path.symlink_to
    monkeypatch.setattr(atomic_fs, "_renameat2", lambda *_: None)
    monkeypatch.setattr(Path, "replace", lambda *_: None)
    monkeypatch.setattr(os, "link", lambda _, new: Path(new).write_bytes(b"x"))
    monkeypatch.setattr(Path, "symlink_to", lambda link, _: symlink_to(link, "elsewhere"))
    found = refused(storage.abilities(tmp_path))
    assert found == {"place", "exchange", "rename_over", "hard_links", "links"}


def test_names_that_differ_in_case_alone_may_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: exists(path) or path.name == "NAME")
    assert refused(storage.abilities(tmp_path)) == {"case"}


def test_a_file_system_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = storage.abilities(tmp_path)
    refuse_renameat2(monkeypatch, errno.EINVAL, 2)
    (tmp_path / "below").mkdir()
    assert storage.abilities(tmp_path / "below") is first


def test_a_folder_that_a_killed_process_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    for name, age in (("old", 2 * 3600), ("new", 60)):
        left = tmp_path / f".gristmill-probe-{name}"
        (left / "exchange").mkdir(parents=True)
        now = left.stat().st_mtime
        os.utime(left, (now - age, now - age))
    storage.state(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".gristmill-probe-new"]


@pytest.mark.parametrize("ahead", [-100.0, 0.0, 100.0])
def test_the_clock_of_the_file_system_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    clock = storage.time.time_ns
    monkeypatch.setattr(storage.time, "time_ns", lambda: clock() - int(ahead * 1e9))
    assert storage.state(tmp_path).ahead_seconds == pytest.approx(ahead, abs=5)


def test_the_free_room_is_that_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = os.statvfs_result((4096, 512, 100, 90, 80, 0, 0, 0, 0, 143))
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    found = storage.state(tmp_path)
    assert (found.free_bytes, found.free_inodes, found.longest_name) == (80 * 512, None, 143)


def test_the_mount_is_the_deepest_and_the_last_one(tmp_path: Path) -> None:
    inside = tmp_path / "a b" / "data"
    inside.mkdir(parents=True)
    here = str((tmp_path / "a b").resolve())
    table = tmp_path / "mountinfo"
    lines = [
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/x rw",
        "2 1 0:5 / HERE rw - tmpfs tmpfs rw",
        "3 1 0:6 / HERE rw,noatime - nfs4 s:/d rw,local_lock=none",
        "4 1 0:7 / HEREx rw - xfs /dev/y rw",
        "broken",
    ]
    table.write_text("\n".join(lines).replace("HERE", here.replace(" ", "\\040")))
    found = storage.mount(inside, table)
    assert found is not None
    assert (found.kind, found.point) == ("nfs4", here)
    assert found.options == {"rw", "noatime", "local_lock=none"}
    outside = storage.mount(tmp_path, table)
    assert outside is not None and outside.kind == "ext4"
    assert storage.mount(inside, tmp_path / "none") is None
