"""Two builders at once: one wins, the other says who holds the lock."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from gristmill import provenance
from gristmill.contract import FileFailed, GristmillError, Summary
from gristmill.provenance import inventory
from gristmill.provenance.inventory import Entry
from gristmill.publish import storage
from gristmill.publish.build import Attempt, Slot
from gristmill.publish.publish import publish
from gristmill.publish.remove import remove_published
from gristmill.run import locks
from gristmill.run.locks import Busy, NotWritable
from gristmill.run.progress import Progress, Report
from tests.paths import CHECKOUT, open_below
from tests.publish.held import release_when_awaited
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, build_tiny, garbage, tiny_build

BUILD = """
import sys
from pathlib import Path
from tests.run.test_locks import build_slowly
build_slowly(Path(sys.argv[1]), *sys.argv[2:])
"""


def build_slowly(root: Path, artifact: str, partition: str, shared: str, outer: str) -> None:
    """Runs in a process of its own: says that it is building, and waits for a word."""
    config = TinyConfig(seed=int(partition[1:]))

    def make(attempt):  # type: ignore[no-untyped-def]
        sys.stdout.write("building\n")
        sys.stdout.flush()
        sys.stdin.readline()
        return build_tiny(attempt, config, f"{partition}_")

    publish(
        tiny_build(
            root,
            artifact,
            partition=partition,
            shared=shared == "shared",
            outer=outer or None,
            config=config,
            make=make,
        )
    )


Starter = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Starter:
    """Start a builder process and wait until it is at work."""

    def begin(
        artifact: str = OUTER, partition: str = "p1", shared: bool = False, outer: str = ""
    ) -> subprocess.Popen[str]:
        kind = "shared" if shared else "single"
        process = subprocess.Popen(
            [sys.executable, "-c", BUILD, str(tmp_path), artifact, partition, kind, outer],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "building\n"
        return process

    return begin


def _finish(process: subprocess.Popen[str]) -> None:
    process.communicate("go\n", timeout=120)
    assert process.returncode == 0


def test_the_second_builder_stops_and_says_why_and_a_killed_one_holds_nothing(tmp_path, start):
    winner = start()
    who = f"process {winner.pid} on host {re.escape(socket.gethostname())} since 20"
    with pytest.raises(
        Busy, match=rf"^family/tiny is already being built by {who}\S+; this run stops$"
    ):
        publish(tiny_build(tmp_path))
    _finish(winner)
    assert provenance.verify(tmp_path) == []
    assert publish(tiny_build(tmp_path, config=TinyConfig(seed=2))).rebuilt
    loser = start()  # a killed builder holds nothing
    os.kill(loser.pid, signal.SIGKILL)
    loser.communicate()
    assert publish(tiny_build(tmp_path, config=TinyConfig(seed=3))).rebuilt
    assert garbage(tmp_path) == []


@pytest.mark.slow
def test_two_partitions_of_a_shared_folder_are_built_at_once(tmp_path, start):
    builders = [start(partition=f"p{number}", shared=True) for number in (1, 2, 3)]
    with pytest.raises(Busy, match=r"^family/tiny \[p2\] is already being built by process"):
        publish(tiny_build(tmp_path, partition="p2", shared=True))
    for builder in builders:  # let go of all before waiting: the commits meet
        assert builder.stdin is not None
        builder.stdin.write("go\n")
        builder.stdin.flush()
    for builder in builders:
        assert builder.wait(120) == 0
    folder = tmp_path / OUTER
    assert sorted(path.name for path in (folder / "provenance").iterdir()) == [
        "p1.json",
        "p2.json",
        "p3.json",
    ]
    assert len(list((folder / "train").iterdir())) == 3
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("first", ["outer", "nested"])
def test_outer_and_nested_exclude_each_other(tmp_path, start, first):
    publish(tiny_build(tmp_path))
    outer = tiny_build(tmp_path, config=TinyConfig(seed=3))
    nested = tiny_build(tmp_path, NESTED, outer=OUTER)
    builder = start(partition="p2") if first == "outer" else start(NESTED, outer=OUTER)
    with pytest.raises(Busy):
        publish(nested if first == "outer" else outer)
    _finish(builder)
    assert provenance.verify(tmp_path) == []


def _released_by(release: Callable[[], object], said: list[str]) -> Progress:
    """Keeps the lines of a waiter, and lets the holder go at the first one."""

    def sink(report: Report) -> None:
        if report.moment == "note":
            said.append(report.note)
            release()

    return Progress(sink)


def test_a_second_builder_waits_says_for_whom_and_finds_nothing_to_do(tmp_path, start, monkeypatch):
    monkeypatch.setattr(locks, "_SILENT_SECONDS", 0.0)
    winner = start()
    said: list[str] = []

    def release() -> None:
        assert winner.stdin is not None
        winner.stdin.write("go\n")
        winner.stdin.flush()

    found = publish(tiny_build(tmp_path), wait=True, progress=_released_by(release, said))
    assert winner.wait(120) == 0
    assert not found.rebuilt
    assert found.notes == ["nothing to do: same inputs, config and code"]
    who = f"process {winner.pid} on host {re.escape(socket.gethostname())} since 20"
    assert re.fullmatch(rf"waits for {who}\S+, which has the lock of family/tiny", said[0])
    assert len(said) == 1
    assert garbage(tmp_path) == []


def test_a_waiter_says_for_whom_it_waits_and_builds_what_the_other_did_not(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_SILENT_SECONDS", 0.0)
    build, held, said = tiny_build(tmp_path, shared=True), ExitStack(), list[str]()
    held.enter_context(locks.locked(Slot.of(build).folder_lock, "another partition"))
    assert publish(build, progress=_released_by(held.close, said)).rebuilt
    assert [line.partition(" since ")[0] for line in said] == [
        f"waits for process {os.getpid()} on host {socket.gethostname()}"
    ]
    assert said[0].endswith(", which has the lock of family/tiny")
    other, held = tiny_build(tmp_path, "family/other"), ExitStack()
    held.enter_context(locks.locked(Slot.of(other).lock, "it"))
    Slot.of(other).lock.write_bytes(b"")  # a holder without a signature
    with pytest.raises(Busy, match="by another builder"):
        publish(other)
    release_when_awaited(held, monkeypatch)
    assert publish(other, wait=True).rebuilt  # what the other did not build
    assert provenance.verify(tmp_path) == []


def test_a_waiter_is_silent_at_first_names_each_holder_once_and_looks_ever_more_rarely(monkeypatch):
    now, pauses, said = [100.0], list[float](), list[str]()
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=pauses.append)
    monkeypatch.setattr(locks, "time", clock)
    patience = locks._Patience("it", True, Progress(lambda report: said.append(report.note)))
    for passed, holder in ((0.0, "a"), (2.9, "a"), (3.0, "a"), (9.0, "a"), (9.1, "b")):
        now[0] = 100.0 + passed
        patience.wait_for(holder)
    assert said == [f"waits for {each}, which has the lock of it" for each in ("a", "b")]
    for _ in range(9):
        patience.wait_for("b")
    assert pauses[:3] == [0.001, 0.002, 0.004]
    assert pauses[-3:] == [0.2] * 3


def _elsewhere(work: Callable[[], object]) -> None:
    """Do work as another process would: with no lock of this thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.parametrize("shared", [False, True])
def test_a_builder_whose_lock_file_was_removed_publishes_nothing(tmp_path, shared):
    """Its follower publishes: neither writes into the other's folder."""
    places: list[Path] = []
    second = TinyConfig(seed=2)
    prefix = "p1_" if shared else ""

    def follow(attempt: Attempt) -> Summary:
        places.append(attempt.out)
        return build_tiny(attempt, second, prefix)

    def make(attempt: Attempt) -> Summary:
        places.append(attempt.out)
        Slot.of(build).lock.unlink()
        other = tiny_build(tmp_path, shared=shared, config=second, make=follow)
        _elsewhere(lambda: publish(other))
        return build_tiny(attempt, TinyConfig(), prefix)

    build = tiny_build(tmp_path, shared=shared, make=make)
    with pytest.raises(locks.LostLock, match=r"somebody removed this lock file .* call the com"):
        publish(build)
    assert provenance.read_record(build.record_path).config["seed"] == 2
    assert provenance.verify(tmp_path) == []
    assert len({path.name for path in places}) == 2


def test_a_removed_lock_file_of_a_shared_folder_loses_no_partition(tmp_path, monkeypatch):
    build = tiny_build(tmp_path, shared=True)
    other = tiny_build(tmp_path, shared=True, partition="p2")
    look = inventory.others

    def looked(*given: str) -> inventory.Members:
        found = look(*given)  # type: ignore[arg-type]
        if given[2] == "p1":
            Slot.of(build).folder_lock.unlink()
            _elsewhere(lambda: publish(other))
        return found

    monkeypatch.setattr(inventory, "others", looked)
    with pytest.raises(locks.LostLock, match="locks/tiny: somebody removed"):
        publish(build)
    assert provenance.read_record(other.record_path).partition == "p2"
    monkeypatch.undo()
    assert publish(build).rebuilt
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_what_a_follower_has_in_its_slot_stays_after_a_commit(tmp_path, monkeypatch):
    build = tiny_build(tmp_path)
    slot = Slot.of(build)

    def follow(*_: object) -> None:
        slot.lock.unlink()
        (slot.work / "staging@f").mkdir()

    monkeypatch.setattr(storage, "sweep", follow)
    assert publish(build).rebuilt
    assert (slot.work / "staging@f").is_dir()


def test_an_artifact_whose_lock_file_was_removed_is_not_removed(tmp_path, monkeypatch):
    build = tiny_build(tmp_path)
    publish(build)
    monkeypatch.setattr(inventory, "withdraw", lambda _: Slot.of(build).lock.unlink())
    with pytest.raises(locks.LostLock):
        remove_published(tmp_path, Entry(OUTER))
    assert build.record_path.exists()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_lock_file_that_is_removed_meanwhile_is_taken_again(tmp_path, monkeypatch, is_replaced):
    lock, take = tmp_path / "it.lock", locks._is_taken
    removals = [True, False]

    def taken(descriptor: int, path: Path, shared: bool) -> bool:
        if removals and removals.pop(0):
            lock.unlink()
            if is_replaced:
                lock.touch()
        return take(descriptor, path, shared)

    monkeypatch.setattr(locks, "_is_taken", taken)
    with locks.locked(lock, "it"):
        assert locks.is_locked(lock)
        locks.confirm()
        lock.rename(tmp_path / "moved")
        lock.touch()
        assert locks.is_lost()
    locks.confirm()
    assert open_below(tmp_path) == 0


def test_no_artifact_has_the_name_of_another_ones_lock(tmp_path):
    publish(tiny_build(tmp_path, "family/a"))
    for name in ("family/a.lock", "family/locks", "family/slots"):
        publish(tiny_build(tmp_path, name))
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_refused_in_words(tmp_path, monkeypatch, number):
    build = tiny_build(tmp_path)
    publish(build)
    before = build.record_path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    said = rf"locks/tiny: this file system gives no lock \(flock\): {os.strerror(number)}: nothing"
    with pytest.raises(GristmillError, match=said):
        publish(build, rebuild=True)
    with pytest.raises(GristmillError, match=said):
        remove_published(tmp_path, Entry(OUTER))
    assert build.record_path.read_bytes() == before
    assert provenance.verify(tmp_path) == []
    assert open_below(tmp_path) == 0


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_disk_that_cannot_be_written_or_fails_is_named(tmp_path, monkeypatch, number):
    build = tiny_build(tmp_path)
    publish(build)
    original, refused = os.open, [number]

    def opening(path: Path, flags: int, *more: int, **named: int) -> int:
        if "locks" in str(path) and flags & os.O_CREAT:
            raise OSError(refused[0], os.strerror(refused[0]), str(path))
        return original(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", opening)
    said = f"locks/.*: {os.strerror(number)}: nothing is built, removed or pulled where"
    with pytest.raises(NotWritable, match=said) as caught:
        publish(build, rebuild=True)
    assert caught.value.errno == number
    with pytest.raises(GristmillError, match=said):
        remove_published(tmp_path, Entry(OUTER))
    refused[0] = errno.EIO
    with pytest.raises(FileFailed, match="locks/tiny: Input/output error: the disk or the network"):
        publish(build, rebuild=True)
