"""Shares of a build, as processes: any number fill one part store, and a build takes it over.

Ranks are tested in `tests/reasoning/builders/test_shards.py`, where a builder has them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gristmill.contract import BadInput, Summary
from gristmill.publish.build import Attempt, Build, InputChanged, Slot
from gristmill.publish.by_rank import ShareBuilt, build_rank, build_share
from gristmill.publish.publish import publish
from gristmill.run import locks
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import Progress
from gristmill.run.workers import threaded_map
from tests.paths import CHECKOUT
from tests.publish.held import release_when_awaited
from tests.publish.tiny import (
    TinyConfig,
    build_tiny,
    garbage,
    payload,
    raw_file,
    raw_input,
    tiny_build,
)
from tests.run import tiny_work

_SHARE = """
import sys
from pathlib import Path
from gristmill.publish.by_rank import build_share
from tests.publish.tiny import TinyConfig, tiny_build
config = TinyConfig(seconds=float(sys.argv[4]), workers=int(sys.argv[5]))
build_share(tiny_build(Path(sys.argv[1]), config=config), int(sys.argv[2]), int(sys.argv[3]))
"""


@contextmanager
def _share(
    root: Path, number: int, of: int, seconds: float = 0.0, workers: int = 1
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that makes a share of the tiny build; it waits `seconds` before each part."""
    words = [str(root), str(number), str(of), str(seconds), str(workers)]
    process = subprocess.Popen([sys.executable, "-c", _SHARE, *words], cwd=CHECKOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(root: Path, name: str) -> None:
    for _ in range(3000):
        # Not rglob, which fails where a folder goes away under it.
        if any(name in files for _, _, files in os.walk(root)):
            return
        time.sleep(0.01)
    raise AssertionError(f"no {name} in {root}")


def _plain(tmp_path: Path) -> dict[str, bytes]:
    publish(tiny_build(tmp_path / "plain"))
    return payload(tmp_path / "plain/family/tiny") | {"place.json": b""}


def _finish(root: Path, plain: dict[str, bytes]) -> float:
    """Publish; returns how many parts that took. The bytes are those of a plain build."""
    published = publish(tiny_build(root))
    assert payload(root / "family/tiny") | {"place.json": b""} == plain
    assert garbage(root) == []
    return published.record.counts["computed"]


def test_shares_fill_the_store_and_a_build_takes_all_over(tmp_path):
    plain, root = _plain(tmp_path), tmp_path / "root"
    assert build_share(tiny_build(root), 2, 2) == ShareBuilt(made=1, parts=3)
    assert build_share(tiny_build(root), 1, 2) == ShareBuilt(made=2, parts=3)
    assert build_share(tiny_build(root), 1, 2) == ShareBuilt(taken_over=2, parts=3)
    assert not (root / "family/tiny").exists()
    published = publish(tiny_build(root))
    assert published.notes[-1] == "3 of 3 parts taken over from an earlier build"
    assert payload(root / "family/tiny") | {"place.json": b""} == plain
    assert garbage(root) == []
    assert build_share(tiny_build(root), 1, 2) == ShareBuilt(published=True)
    assert garbage(root) == []


def test_a_share_that_never_ran_is_made_by_the_publisher(tmp_path):
    plain, root = _plain(tmp_path), tmp_path / "root"
    build_share(tiny_build(root), 3, 3)
    assert _finish(root, plain) == 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_shares_run_side_by_side_and_a_killed_one_goes_on(tmp_path, workers):
    plain, root = _plain(tmp_path), tmp_path / "root"
    with _share(root, 1, 2, 0.5) as killed, _share(root, 2, 2) as other:
        _wait_for(root, "rows-0.json")
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert other.wait(60) == 0
    assert not list(root.rglob("rows-2.json"))  # it was killed in the middle
    assert list(root.glob("family/.gristmill/slots/tiny/shares/*"))  # what the publisher removes
    with _share(root, 1, 2, workers=workers) as again:
        assert again.wait(60) == 0
    assert _finish(root, plain) == 0


@pytest.mark.slow
def test_two_processes_of_one_share_do_no_harm(tmp_path):
    plain, root = _plain(tmp_path), tmp_path / "root"
    with _share(root, 1, 1, 0.1) as one, _share(root, 1, 1, 0.1) as two:
        assert (one.wait(60), two.wait(60)) == (0, 0)
    assert _finish(root, plain) == 0


def test_shares_and_a_publisher_exclude_each_other(tmp_path):
    plain, root = _plain(tmp_path), tmp_path / "root"
    with _share(root, 1, 1, 0.5) as process:
        _wait_for(root, "rows-0.json")
        with pytest.raises(locks.Busy, match=f"process {process.pid} on host"):
            publish(tiny_build(root))
        assert list(root.rglob("rows-0.part"))
        assert process.wait(60) == 0

    def make(attempt: Attempt) -> Summary:
        with pytest.raises(locks.Busy):
            build_share(tiny_build(root), 1, 1)
        return build_tiny(attempt, TinyConfig(), "")

    assert publish(tiny_build(root, make=make)).record.counts["computed"] == 0
    assert payload(root / "family/tiny") | {"place.json": b""} == plain


def _store(build: Build) -> Path:
    return Slot.of(build).work / "parts" / build.parts_key


def _names(build: Build) -> list[str]:
    return sorted(path.name for path in _store(build).iterdir() if path.suffix != ".inputs")


def _makers(build: Build) -> list[str]:
    """Who may have made parts from inputs that did not stay as they were."""
    return sorted(path.stem.split("-")[0] for path in _store(build).glob("*.inputs"))


def test_parts_of_an_input_that_changed_are_removed_and_no_others(tmp_path):
    raw = raw_file(tmp_path, "drops/a.txt")
    inputs = [raw_input(tmp_path, "drops/a.txt")]

    def make(attempt: Attempt) -> Summary:
        raw.write_bytes(b"RAW")
        return build_tiny(attempt, TinyConfig(), "")

    build_share(tiny_build(tmp_path, inputs=inputs), 1, 3)
    changing = tiny_build(tmp_path, inputs=inputs, make=make)
    with pytest.raises(InputChanged):
        build_share(changing, 1, 1)
    assert _names(changing) == ["rows-0.json", "rows-0.part"]
    assert _makers(changing) == []


def test_parts_of_a_share_that_failed_on_an_input_that_was_mended_are_not_used(tmp_path):
    raw, changed = _raw(tmp_path)
    inputs = [raw_input(tmp_path, "drops/a.txt")]

    def failing(attempt: Attempt) -> Summary:
        changed(b"RAW")
        _copies(raw, attempt, fails=True)
        raise AssertionError

    build_share(_copying(raw), 1, 3)
    broken = tiny_build(tmp_path, inputs=inputs, make=failing)
    with pytest.raises(BadInput, match="is not what it should be"):
        build_share(broken, 1, 1)
    assert (_store(broken) / "part-1.part").read_bytes() == b"RAW"
    assert _makers(broken) == ["share1"]
    changed(b"raw")
    right = _copying(raw)
    assert build_share(right, 2, 3) == ShareBuilt(made=1, parts=3)
    # The share that failed might be at work, for all that the store knows.
    assert (_makers(right), _names(right)) == (["share1"], ["part-1.json", "part-1.part"])
    publish(right)
    assert (right.folder / "copies").read_bytes() == b"rawrawraw"


class _TwoRanks:
    """Ranks 0 and 1 of `_copies`, which has three parts; the last part may fail."""

    world_size = 2

    def __init__(self, raw: Path, fails: bool = False) -> None:
        self._raw, self._fails = raw, fails

    def names(self, rank: int) -> list[str]:
        return [f"part-{index}" for index in range(rank, 3, 2)]

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        for name in self.names(rank):
            if self._fails and name == "part-2":
                raise BadInput("drops/a.txt", "is not what it should be")
            if not parts.is_listed(name):
                with parts.writing(name) as (path, _):
                    path.write_bytes(self._raw.read_bytes())


@pytest.mark.parametrize("which", ["the rank", "the partition"])
def test_a_rank_waits_for_who_makes_its_parts_or_builds_the_partition(tmp_path, monkeypatch, which):
    raw, _ = _raw(tmp_path)
    build, held = tiny_build(tmp_path, make=lambda attempt: _copies(raw, attempt)), ExitStack()
    lock = Slot.of(build).lock
    lock = lock.with_name(f"{lock.name}@rank0") if which == "the rank" else lock
    held.enter_context(locks.locked(lock, "it"))
    with pytest.raises(locks.Busy, match="is already being built by process"):
        build_rank(build, _TwoRanks(raw), 0)
    release_when_awaited(held, monkeypatch)
    said: list[str] = []
    progress = Progress(lambda report: said.append(report.note))
    assert build_rank(build, _TwoRanks(raw), 0, progress, wait=True).missing == [1]
    what = "rank 0 of family/tiny" if which == "the rank" else "family/tiny"
    assert [line.partition(", ")[2] for line in said if line] == [f"which has the lock of {what}"]


def test_parts_of_a_rank_that_failed_on_an_input_that_was_mended_are_not_used(tmp_path):
    raw, changed = _raw(tmp_path)
    build = _copying(raw)
    assert build_rank(build, _TwoRanks(raw), 1).made == 1
    assert _makers(build) == []
    changed(b"raw")  # another time of the inode: a rank that ended well is not asked again
    with pytest.raises(BadInput):
        build_rank(build, _Damaged(raw, changed), 0)
    assert _makers(build) == ["rank0"]
    changed(b"raw")
    # All parts go: nobody knows when the input was damaged.
    built = build_rank(build, _TwoRanks(raw), 0)
    assert (built.made, built.missing) == (2, [1])
    assert build_rank(build, _TwoRanks(raw), 1).published is not None
    assert (build.folder / "copies").read_bytes() == b"rawrawraw"


def test_a_rank_at_work_stays_noted_while_another_finds_the_input_touched(tmp_path):
    raw, changed = _raw(tmp_path)

    class Killed(BaseException):
        pass

    class AtWork(_TwoRanks):
        def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
            os.link(raw, tmp_path / "backup")  # another time of the inode
            assert build_rank(build, _TwoRanks(raw), 1).made == 1
            changed(b"RAW")
            super().make(rank, parts, progress)
            raise Killed

    build = _copying(raw)
    with pytest.raises(Killed):
        build_rank(build, AtWork(raw), 0)
    assert _makers(build) == ["rank0"]
    changed(b"raw")
    publish(build)
    assert (build.folder / "copies").read_bytes() == b"rawrawraw"


def _raw(root: Path) -> tuple[Path, Callable[[bytes], None]]:
    """A raw file, and what writes other bytes to it and keeps its time."""
    raw = raw_file(root, "drops/a.txt")

    def changed(data: bytes) -> None:
        stat = raw.stat()
        raw.write_bytes(data)
        os.utime(raw, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    return raw, changed


def _copying(raw: Path) -> Build:
    root = raw.parents[1]
    inputs = [raw_input(root, "drops/a.txt")]
    return tiny_build(root, inputs=inputs, make=lambda attempt: _copies(raw, attempt))


class _Damaged(_TwoRanks):
    """Rank 0, whose input is damaged once it was proved."""

    def __init__(self, raw: Path, changed: Callable[[bytes], None]) -> None:
        super().__init__(raw, fails=True)
        self._changed = changed

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        assert self.names(1) == ["part-1"] and parts.is_listed("part-1")
        self._changed(b"RAW")
        super().make(rank, parts, progress)


def _copies(raw: Path, attempt: Attempt, fails: bool = False) -> Summary:
    """Build the bytes of a raw file three times, each a part; the last one may fail."""

    def make_part(index: int, path: Path) -> dict[str, object]:
        if fails and index == 2:
            raise BadInput("drops/a.txt", "is not what it should be")
        path.write_bytes(raw.read_bytes())
        return {}

    attempt.out.mkdir()
    tasks = [(f"part-{index}", index) for index in range(3)]
    parts = run_parts(make_part, tasks, attempt.parts, 1, scratch=attempt.out)
    data = b"".join(path.read_bytes() for _, path, _ in parts)
    (attempt.out / "copies").write_bytes(data)
    return Summary(files={})


def test_a_share_that_fails_leaves_its_finished_parts_and_nothing_else(tmp_path):
    def make_part(task: tiny_work.Task, path: Path) -> dict[str, object]:
        if task.index == 1:
            path.write_bytes(b"half")
            raise BadInput("drops/a.txt", "is not what it should be")
        return tiny_work.make(task, path)

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        tasks = [(f"rows-{index}", tiny_work.Task(1, index, 2)) for index in range(3)]
        list(run_parts(make_part, tasks, attempt.parts, 1, scratch=attempt.out))
        raise AssertionError("a share gets no parts")

    build = tiny_build(tmp_path, make=make)
    with pytest.raises(BadInput):
        build_share(build, 1, 1)
    assert _names(build) == ["rows-0.json", "rows-0.part"]
    assert _makers(build) == ["share1"]
    assert list((Slot.of(build).work / "shares").iterdir()) == []


def test_a_builder_keeps_its_own_files_apart_from_those_of_other_shares(tmp_path):
    folders = []

    def make(attempt: Attempt) -> Summary:
        folders.append(attempt.parts.folder)
        (attempt.parts.folder / "boards").touch(exist_ok=False)
        return build_tiny(attempt, TinyConfig(), "")

    build = tiny_build(tmp_path, make=make)
    for number in (1, 2):
        build_share(build, number, 2)
    assert len({*folders, _store(build)}) == 3
    assert PartStore(_store(build)).count() == 3
    assert not any(folder.exists() for folder in folders)


def test_what_the_tasks_of_a_share_depend_on_is_made_whole(tmp_path):
    def make(attempt: Attempt) -> Summary:
        store = attempt.parts

        def tasks() -> Iterator[tuple[str, tiny_work.Task]]:
            counts = [(f"count-{index}", tiny_work.Task(1, index, 2)) for index in range(3)]
            counted = run_parts(
                tiny_work.make, counts, store, 1, scratch=store.folder, engine=threaded_map
            )
            for index, (_, path, summary) in enumerate(counted):
                assert path.stat().st_size == 8 * summary["rows"]
                yield f"rows-{index}", tiny_work.Task(1, index, summary["rows"])

        list(run_parts(tiny_work.make, tasks(), store, 2, scratch=store.folder))
        raise AssertionError("a share gets no parts")

    build = tiny_build(tmp_path, make=make)
    built = build_share(build, 2, 3)
    assert (built.made, built.parts) == (1, 3)
    names = {path.stem for path in _store(build).glob("*.json")}
    assert names == {"count-0", "count-1", "count-2", "rows-1"}


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_another_number_is_refused(tmp_path, number, of):
    with pytest.raises(ValueError, match=rf"share {number}: must be from 1 to {of}"):
        build_share(tiny_build(tmp_path), number, of)
