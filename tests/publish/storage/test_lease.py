"""Leases between hosts: processes that are killed, paused and slow; clocks that are shifted.

A host is a process with a name of its own, whose file locks nobody else sees.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.publish import doctor, locks
from gristmill.publish.publish import publish
from gristmill.publish.storage import file_system, lease, lease_file, link_form
from gristmill.publish.storage.file_system import Mount
from gristmill.run.progress import Progress
from tests.paths import CHECKOUT
from tests.publish.tiny import TinyConfig, build_tiny, garbage, tiny_build

pytestmark = pytest.mark.sampled(0.3)

SECONDS = 5.0  # a busy machine keeps a living host waiting, too
SHORT = 1.0
HOST = """
import fcntl, sys
from tests.publish.storage import test_lease
test_lease.run_as_host(*sys.argv[1:])
"""


def run_as_host(name: str, hours: str, what: str, path: str) -> None:
    """Runs in a process of its own: takes a lock or publishes, and says what came of it."""
    be_host(name, float(hours))
    try:
        _publish(Path(path)) if what == "publish" else _hold(Path(path), what)
    except GristmillError as error:
        say(type(error).__name__)


def be_host(name: str, hours: float = 0.0) -> None:
    """Become a host: other name, no file lock that others see, a clock that is wrong by hours."""
    fcntl.flock = lambda *_: None
    lease_file.host = lambda: name  # type: ignore[assignment]
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + hours * 3600
    time.time_ns = lambda: real_ns() + int(hours * 3600e9)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _hold(lock: Path, what: str) -> None:
    """Hold the lock, or wait for it; a silent process does not renew it, as where that fails."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with locks.locked(lock, "it", wait=what == "wait"):
        if what == "silent":
            setattr(lease._Lease, "_rewrite", fail)  # noqa: B010
        say("held")
        sys.stdin.readline()
        lease.confirm()
        say("confirmed")


def _publish(root: Path) -> None:
    config = TinyConfig(seed=7)

    def make(attempt):  # type: ignore[no-untyped-def]
        summary = build_tiny(attempt, config, "")
        say("held")
        sys.stdin.readline()
        return summary

    publish(tiny_build(root, config=config, make=make))
    say("published")


Host = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lease.VARIABLE, str(SECONDS))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    started = []

    def start(name: str, what: str, path: Path, hours: float = 0.0) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", HOST, name, str(hours), what, str(path)]
        process = subprocess.Popen(
            words, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def holding(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert heard(process) == "held"
    return process


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def go_on(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return heard(process)


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a process, and wait until it is stopped: a busy machine lets it run on."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def only_file(lock: Path) -> Path:
    (file,) = lease_file.folder_of(lock).iterdir()
    return file


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "it"


@pytest.mark.parametrize(("hours", "other"), [(0, 0), (9, -9), (-9, 9)])
@pytest.mark.slow
def test_a_killed_host_is_followed_after_the_stated_time_and_not_before(
    host: Host, lock: Path, hours: float, other: float
) -> None:
    killed(holding(host("a", "hold", lock, hours)))
    seen = time.monotonic()  # nobody has looked at the lease before
    second = holding(host("b", "hold", lock, other))
    assert time.monotonic() - seen >= lease.takeover_seconds(SECONDS)
    assert go_on(second) == "confirmed"


@pytest.mark.parametrize("hours", [0, 9, -9])
@pytest.mark.slow
def test_a_living_host_is_never_followed(host: Host, lock: Path, hours: float) -> None:
    first = holding(host("a", "hold", lock))
    far = time.time() + hours * 3600
    os.utime(only_file(lock), (far, far))
    second = host("b", "wait", lock, hours)
    time.sleep(4 * SECONDS)
    assert go_on(first) == "confirmed"
    assert heard(second) == "held"


@pytest.mark.slow
def test_a_second_host_stops_and_names_the_first(
    host: Host, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = holding(host("a", "hold", lock))
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    monkeypatch.setattr(lease_file, "host", lambda: "b")
    for shared in (False, True):
        with (
            pytest.raises(locks.Busy, match=rf"it is already .* process {first.pid} on host"),
            locks.locked(lock, "it", shared=shared),
        ):
            pass
    assert go_on(first) == "confirmed"


def test_who_waits_for_another_host_says_so_until_that_lets_go(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_SILENT_SECONDS", 0.0)
    folder, said, looks = lease_file.folder_of(lock), list[str](), list[float]()
    folder.mkdir(parents=True)
    file = folder / lease_file.name(1)

    def renew(_: float) -> float:
        looks.append(0)
        file.write_bytes(_of_other(len(looks), held=not said))
        return 0.0

    file.write_bytes(_of_other(0, held=True))
    monkeypatch.setattr(lease, "_pause", renew)
    with locks.locked(lock, "it", True, progress=Progress(lambda report: said.append(report.note))):
        lease.confirm()
        assert said == ["waits for process 7 on host other, which has the lock of it"]


def _of_other(renewal: int, held: bool) -> bytes:
    state = json.loads(lease_file.content_of("token", SECONDS, renewal, held))
    return json.dumps(state | {"host": "other", "name": "other", "process": 7}).encode()


@pytest.mark.parametrize("form", ["exchange", "link"])
@pytest.mark.slow
def test_a_paused_host_does_not_commit_and_leaves_its_followers_work(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv(link_form.VARIABLE, form)
    first = holding(host("a", "publish", tmp_path))
    stop(first)
    second = holding(host("b", "publish", tmp_path))
    first.send_signal(signal.SIGCONT)
    assert go_on(first) == "LostLease"  # while its follower is at work in the same slot
    assert go_on(second) == "published"
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("form", ["exchange", "link"])
@pytest.mark.slow
def test_a_paused_host_does_not_commit_over_its_followers_version(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv(link_form.VARIABLE, form)
    first = holding(host("a", "publish", tmp_path))
    stop(first)
    second = holding(host("b", "publish", tmp_path))
    assert go_on(second) == "published"
    record = tiny_build(tmp_path).record_path
    before = (record.stat().st_ino, record.read_bytes())
    first.send_signal(signal.SIGCONT)
    assert go_on(first) == "LostLease"
    assert (record.stat().st_ino, record.read_bytes()) == before
    assert provenance.verify(tmp_path) == []


@pytest.mark.slow
def test_a_pause_with_nobody_waiting_loses_the_lease_for_good(host: Host, lock: Path) -> None:
    first = holding(host("a", "hold", lock))
    stop(first)
    time.sleep(1.5 * SECONDS)
    first.send_signal(signal.SIGCONT)
    time.sleep(SECONDS)  # its renewer runs again meanwhile
    assert go_on(first) == "LostLease"


@pytest.mark.slow
def test_renewals_that_fail_lose_the_lease(host: Host, lock: Path) -> None:
    first = holding(host("a", "silent", lock))
    second = holding(host("b", "wait", lock))
    assert go_on(first) == "LostLease"
    assert go_on(second) == "confirmed"


@pytest.mark.slow
def test_one_of_several_waiters_wins(host: Host, lock: Path) -> None:
    killed(holding(host("a", "hold", lock)))
    others = [host(name, "hold", lock) for name in "bcd"]
    said = {other: heard(other) for other in others}
    winners = [other for other, word in said.items() if word == "held"]
    assert sorted(said.values()) == ["Busy", "Busy", "held"]
    assert go_on(winners[0]) == "confirmed"


def test_one_of_many_takers_gets_a_number(tmp_path: Path) -> None:
    barrier, got = threading.Barrier(8), []

    def take() -> None:
        barrier.wait()
        got.append(lease._Lease.claimed(tmp_path, 5, SECONDS))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one is not None for one in got) == 1


def test_a_number_below_the_highest_is_not_taken(tmp_path: Path) -> None:
    assert lease._Lease.claimed(tmp_path, 7, SECONDS) is not None
    assert lease._Lease.claimed(tmp_path, 6, SECONDS) is None
    assert [file.name for file in tmp_path.iterdir()] == [lease_file.name(7)]


@pytest.mark.slow
def test_a_dead_process_of_this_host_is_followed_at_once(
    host: Host, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(holding(host("a", "hold", lock)))
    monkeypatch.setattr(lease_file, "host", lambda: "a")
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    with locks.locked(lock, "it"):
        lease.confirm()


def test_a_process_with_the_number_of_a_dead_one_is_not_taken_for_it() -> None:
    state = {"host": lease_file.host(), "boot": lease_file.boot(), "process": os.getpid()}
    assert not lease_file.is_dead_here({**state, "started": lease_file.start_of(os.getpid())})
    assert lease_file.is_dead_here({**state, "started": 1})
    assert not lease_file.is_dead_here({**state, "started": 1, "boot": "another"})
    assert not lease_file.is_dead_here({**state, "started": 1, "host": "another"})


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\x00" * 1024, b"[]", b'{"held": false}', b"[" * 999]
)
def test_a_broken_lease_is_followed_after_the_whole_time(
    lock: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv(lease.VARIABLE, str(SHORT))
    folder = lease_file.folder_of(lock)
    folder.mkdir(parents=True)
    (folder / lease_file.name(3)).write_bytes(content)
    seen = time.monotonic()
    with locks.locked(lock, "it"):
        assert time.monotonic() - seen >= lease.takeover_seconds(SHORT)
        assert only_file(lock).name == lease_file.name(4)


def test_the_longer_of_two_settings_counts() -> None:
    assert lease._seconds_of({"seconds": 50.0}, 1.0) == 50.0
    assert lease._seconds_of({"seconds": 1.0}, 50.0) == 50.0
    assert lease._seconds_of({"seconds": 1e9}, 50.0) == 50.0
    assert lease._seconds_of(None, 50.0) == 50.0


def test_a_released_lease_is_taken_at_once_and_numbers_only_grow(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    for number in (1, 2, 3):
        with locks.locked(lock, "it"):
            assert only_file(lock).name == lease_file.name(number)


@pytest.mark.parametrize(
    ("seconds", "least", "most"), [(3600, 0.1, 0.5), (60, 0.1, 0.5), (1, 0.05, 0.05)]
)
def test_a_waiter_looks_at_a_release_several_times_a_second(
    lock: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, least: float, most: float
) -> None:
    folder = lease_file.folder_of(lock)
    folder.mkdir(parents=True)
    held, pauses = lease._Lease.claimed(folder, 1, seconds), []
    assert held is not None

    def sleep(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 20:
            held.end()

    monkeypatch.setattr(lease_file, "is_dead_here", lambda _: False)
    monkeypatch.setattr(time, "sleep", sleep)
    assert lease._number_to_follow(folder, seconds) == 1
    assert len(pauses) == 20
    assert all(least <= pause <= most for pause in pauses)
    # Many waiters do not look at the same moment.
    assert len(set(pauses)) > 1 or least == most


def test_a_full_disk_makes_no_lease_and_leaves_no_file(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "pwrite", full)
        with locks.locked(lock, "it"):
            pytest.fail("it is held")
    assert list(lease_file.folder_of(lock).iterdir()) == []


def test_an_error_of_one_renewal_does_not_lose_a_lease(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, _: bytes) -> None:
        os.close(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with locks.locked(lock, "it"):
        (held,) = lease._of_thread()
        with monkeypatch.context() as patch:
            patch.setattr(lease_file, "write", fail)
            held._renew()
        lease.confirm()


def test_without_leases_nothing_is_written_and_names_are_plain(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("0", ""):
        monkeypatch.setenv(lease.VARIABLE, value)
        with locks.locked(lock, "it"):
            assert [path.name for path in lock.parent.iterdir()] == ["it"]
            assert lease.own_name("staging") == "staging"
            lease.confirm()


@pytest.mark.parametrize(("kind", "seconds"), [("nfs4", 60.0), ("lustre", 60.0), ("ext4", None)])
def test_a_network_file_system_has_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seconds: float | None
) -> None:
    monkeypatch.delenv(lease.VARIABLE)
    monkeypatch.setattr(lease, "_devices", {})
    monkeypatch.setattr(file_system, "mount", lambda _: Mount(kind, "/", frozenset()))
    assert lease.seconds_for(tmp_path) == seconds
    found = doctor.of_leases(tmp_path)
    assert found.found.startswith("off" if seconds is None else "60 s, a dead host is followed")


@pytest.mark.parametrize("value", ["x", "0.5", "-1", "3601", "nan", "inf"])
def test_a_wrong_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(lease.VARIABLE, value)
    with pytest.raises(GristmillError, match=r"GRISTMILL_LEASE_SECONDS=.* from 1 to 3,600"):
        lease.seconds_for(tmp_path)
    assert doctor.of_leases(tmp_path).verdict is doctor.Verdict.MISSING


def test_a_look_at_a_lock_takes_no_lease(lock: Path) -> None:
    with locks.locked(lock, "it"):
        assert locks.is_locked(lock)
    before = only_file(lock).read_bytes()
    assert not locks.is_locked(lock)
    assert only_file(lock).read_bytes() == before


def test_a_forked_worker_neither_renews_nor_loses_its_parents_lease(lock: Path) -> None:
    with locks.locked(lock, "it"):
        before = only_file(lock).name
        child = os.fork()
        if child == 0:
            os._exit(0 if lease.own_name("staging") == "staging" and not lease._of_thread() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lease.own_name("staging") != "staging"
        lease.confirm()
        assert only_file(lock).name == before


def test_one_thread_holds_several_leases_and_confirms_each(tmp_path: Path) -> None:
    first, second = tmp_path / "locks" / "a", tmp_path / "locks" / "b"
    with locks.locked(first, "a"):
        own = lease.own_name("staging")
        with locks.locked(second, "b"):
            assert lease.own_name("staging") == own
            lease_file.folder_of(first).joinpath(lease_file.name(9)).write_bytes(b"")
            assert lease.is_lost()
        assert lease._of_thread()
    assert not lease._of_thread()


@pytest.mark.parametrize("there", ["nothing", "folder", "link"])
def test_no_link_is_flipped_under_a_lost_lease(tmp_path: Path, there: str) -> None:
    folder, staged, lock = tmp_path / "it", tmp_path / "staged", tmp_path / "locks" / "it"
    for path, text in ((folder, "old"), (staged, "new")):
        path.mkdir()
        (path / "file").write_text(text)
    if there == "nothing":
        (folder / "file").unlink()
        folder.rmdir()
    elif there == "link":
        folder.rename(tmp_path / "first")
        link_form.flip(tmp_path / "first", folder)
    with locks.locked(lock, "it"):
        lease_file.folder_of(lock).joinpath(lease_file.name(9)).write_bytes(b"")
        with pytest.raises(lease.LostLease):
            link_form.flip(staged, folder)
        versions = sorted(link_form.store_of(folder).iterdir())
        link_form.sweep(folder, None)  # its follower's now
        assert sorted(link_form.store_of(folder).iterdir()) == versions
    assert os.path.lexists(folder) == (there != "nothing")
    assert folder.is_symlink() == (there == "link")
    if there != "nothing":
        assert (folder / "file").read_text() == "old"


def test_a_late_conversion_puts_its_followers_link_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it"
    for name in ("it", "mine", "followers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)

    def paused() -> None:
        monkeypatch.setattr(lease, "confirm", lambda: None)
        link_form.flip(tmp_path / "followers", folder)
        link_form.sweep(folder, None)

    monkeypatch.setattr(lease, "confirm", paused)
    with pytest.raises(lease.LostLease, match="another host published"):
        link_form.flip(tmp_path / "mine", folder)
    assert folder.is_symlink()
    assert (folder / "file").read_text() == "followers"


@pytest.mark.parametrize("form", ["exchange", "link"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_build_whose_lease_another_took_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, is_first: bool
) -> None:
    monkeypatch.setenv(link_form.VARIABLE, form)
    config, record = TinyConfig(seed=7), tiny_build(tmp_path).record_path
    if not is_first:
        publish(tiny_build(tmp_path))
    before = record.read_bytes() if record.exists() else None

    def make(attempt):  # type: ignore[no-untyped-def]
        summary = build_tiny(attempt, config, "")
        for held in lease._of_thread():
            held._file.with_name(lease_file.name(9)).write_bytes(b"")
        return summary

    with pytest.raises(lease.LostLease, match="nothing is published"):
        publish(tiny_build(tmp_path, config=config, make=make))
    assert (record.read_bytes() if record.exists() else None) == before
