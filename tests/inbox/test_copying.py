"""A copy into an inbox is there whole or not at all, wherever it is killed."""

import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from gristmill.contract import GristmillError
from gristmill.inbox import TOML, Shape, present_drops
from gristmill.inbox.copying import Copied, DropExists, Tools, copy_in, only_copy, source_files
from gristmill.inbox.listing import survey
from gristmill.inbox.marks import DONE, FORGOTTEN, SUMS, mark_of, own_files
from gristmill.publish import atomic_fs
from gristmill.untrusted.files import REFUSE_LINKS
from tests import budget
from tests.marked import mark
from tests.toy_inbox import asked

TOOLS = Tools(atomic_fs.place, atomic_fs.exchange, lambda _: None, REFUSE_LINKS)
CALLS = {"fsync", "write", "open", "unlink", "utime", "mkdir", "rmdir", "truncate"}
CALLS |= {"replace", "place", "exchange"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "made/d6"
    (folder / "inner").mkdir(parents=True)
    for name in ("a", "inner/b", "c"):
        (folder / name).write_text(name * 100)
    return folder


def copy(source: Path, place: Path, replace_: bool = False) -> Copied:
    return copy_in(source, place, source_files(source, REFUSE_LINKS), TOOLS, replace_)


def contents(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    files = (file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def killed_at(point: int, work: Callable[[], object]) -> bool:
    """Whether a child process that does the work is killed at its n-th system call."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = [point]

    def count(_frame: FrameType, event: str, called: object) -> None:
        name = getattr(called, "__name__", "") if event == "c_call" else _frame.f_code.co_name
        if event in ("c_call", "call") and name in CALLS:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        work()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "file"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_copy_that_is_killed_is_whole_or_not_there_and_resumes(source, tmp_path, kind, exists):
    origin = source if kind == "folder" else source / "a"
    place = tmp_path / "drops" / ("d6" if kind == "folder" else "d6.toml")
    shape = Shape() if kind == "folder" else TOML
    place.parent.mkdir()
    before: dict[str, bytes] = {}
    if exists:
        copy(origin, place)
        before = contents(place)
        (source / "a").write_text("another")
    copy(origin, tmp_path / "expected/d6")
    whole = contents(tmp_path / "expected/d6")
    # Each third call, from one of the seed: it takes long to fork a process that is large.
    point = budget.dice(f"killed copy {kind} {exists}").randrange(-2, 1)
    while killed_at(point := point + 3, lambda: copy(origin, place, exists)):
        now = contents(place) if place.exists() else {}
        assert now in (before, whole)
        look = present_drops(place.parent, asked(), shape)
        assert look.refusals == [], point
        if now == whole and look.arriving:
            copy(origin, place, exists)  # the mark of a killed copy goes with the next one
    assert point > 10
    assert copy(origin, place, exists).status == "there already"
    (arrival,) = present_drops(place.parent, asked(), shape).arrivals
    assert arrival.key == "d6"
    assert [path.name for path in place.parent.iterdir() if path.name.startswith(".")] == []


def test_a_copy_keeps_what_an_earlier_one_has_and_removes_what_the_source_has_not(source, tmp_path):
    place = tmp_path / "drops/d6"
    staged = place.parent / ".d6.copying"
    shutil.copytree(source, staged)
    for name in ("b", "inner/a", "gone/b"):
        (staged / name).parent.mkdir(exist_ok=True)
        (staged / name).write_text("of an earlier source")
    (staged / "a").unlink()
    (staged / "a").symlink_to(source / "a")
    copied = copy(source, place)
    assert (copied.status, copied.written) == ("copied", 100)  # but for what was a link
    assert contents(place).keys() == {"a", "inner/b", "c", "SHA256SUMS"}


@pytest.mark.parametrize(
    ("meanwhile", "rule"),
    [
        (lambda source, _: os.utime(source / "a", ns=(1, 1)), "changed while it was copied"),
        (lambda _, place: place.mkdir(exist_ok=True), "came while it was copied: run the command"),
    ],
)
def test_what_changes_or_comes_meanwhile_is_not_brought(source, tmp_path, meanwhile, rule):
    place = tmp_path / "drops/d6"
    tools = replace(TOOLS, advance=lambda _: meanwhile(source, place))
    with pytest.raises(GristmillError, match=rule):
        copy_in(source, place, source_files(source, REFUSE_LINKS), tools)
    assert contents(place) == {}


def test_a_mark_done_of_the_source_comes_last_and_is_not_in_the_list(source, tmp_path):
    (source / ".done").write_text("3")
    place = tmp_path / "drops/d6"
    slow = replace(TOOLS, advance=lambda _: time.sleep(0.01))  # times have the clock's ticks
    copied = copy_in(source, place, source_files(source, REFUSE_LINKS), slow)
    assert (copied.status, copied.files, copied.bytes) == ("copied", 3, 900)
    came = [(place / name).stat().st_ctime_ns for name in ("a", "inner/b", "c", ".done")]
    assert max(came[:3]) < came[3]
    assert b".done" not in (tmp_path / "drops/d6/SHA256SUMS").read_bytes()
    (arrival,) = present_drops(tmp_path / "drops", asked()).arrivals
    assert arrival.files == 3
    assert copy(source, tmp_path / "drops/d6").status == "there already"


def test_a_copy_takes_the_place_of_a_sample_unasked_and_is_none(source, tmp_path):
    (tmp_path / "inbox").mkdir()
    for of, place in (
        (source, tmp_path / "inbox/d6"),
        (source / "a", tmp_path / "inbox/pool.toml"),
    ):
        copy(source if of.is_dir() else source / "c", place)
        mark(place)
        assert own_files(place)
        (source / "a").write_text(f"real {place.name}")
        assert copy(of, place).status == "replaced"
        assert not mark_of(place).exists()
        assert (place / "a" if of.is_dir() else place).read_text() == f"real {place.name}"


def test_a_copy_does_not_replace_a_sample_that_real_files_are_beside(source, tmp_path):
    place = tmp_path / "inbox/d6"
    copy(source, place)
    mark(place)
    (place / "mine").write_text("real")
    (source / "a").write_text("other")
    with pytest.raises(DropExists, match="is there with other contents"):
        copy(source, place)
    assert (place / "mine").read_text() == "real"


def test_two_copies_to_one_place_do_not_mix_whatever_the_lock_file(source, tmp_path, monkeypatch):
    place, lock = tmp_path / "d6", tmp_path / ".d6.lock"
    flock, calls = fcntl.flock, []

    def replaced(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        calls.append(how)
        if len(calls) <= 2:
            # The process that held it removes its file; once, a third one makes another.
            lock.unlink()
            if len(calls) == 1:
                lock.touch()

    monkeypatch.setattr(fcntl, "flock", replaced)
    with only_copy(place):
        assert len(calls) == 3
        with pytest.raises(GristmillError, match="another process copies to it"):
            copy(source, place)
    with pytest.raises(ZeroDivisionError), only_copy(place):
        raise ZeroDivisionError
    assert not lock.exists()
    assert copy(source, place).status == "copied"


def test_a_drop_that_is_replaced_keeps_its_tombstones(source: Path, tmp_path: Path) -> None:
    place, seen = tmp_path / "drops/d6", list[str]()
    copy(source, place)
    (place / FORGOTTEN).write_text("1\n")
    assert copy(source, place).status == "there already"
    (source / "a").write_text("another")

    def staged(folder: Path) -> None:
        seen.append((folder / "a").read_text() + (folder / FORGOTTEN).read_text())
        (folder / FORGOTTEN).write_text("1\n2\n")

    sizes = source_files(source, REFUSE_LINKS)
    tools = replace(TOOLS, staged=staged)
    assert copy_in(source, place, sizes, tools, replace=True).status == "replaced"
    assert seen == ["another1\n"]
    assert (place / FORGOTTEN).read_text() == "1\n2\n"
    assert FORGOTTEN not in (place / SUMS).read_text()
    (found,) = present_drops(place.parent, asked(), Shape()).arrivals
    assert found.key == "d6"
    (source / FORGOTTEN).write_text("3\n")
    with pytest.raises(DropExists, match=r"has another forgotten.jsonl than .*: put the lines of"):
        copy(source, place, replace_=True)
    (source / FORGOTTEN).write_text("1\n2\n")
    assert copy(source, place).status == "there already"
    (source / DONE).touch()
    time.sleep(0.02)
    (source / FORGOTTEN).write_text("4\n")
    assert survey(source).marks.says_complete
    copy(source, tmp_path / "drops/new")
    assert FORGOTTEN not in (tmp_path / "drops/new" / SUMS).read_text()
