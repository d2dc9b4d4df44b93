"""Ranks of a build whose inputs change, and who waits for whom.

Bytes of ranks are tested in `tests/reasoning/builders/test_shards.py`, where a builder has them.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from gristmill.contract import BadInput, Summary
from gristmill.publish.build import Attempt, Build, Slot
from gristmill.publish.by_rank import build_rank
from gristmill.publish.publish import publish
from gristmill.run import locks
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import Progress
from tests.publish.held import release_when_awaited
from tests.publish.tiny import (
    raw_file,
    raw_input,
    tiny_build,
)


def _store(build: Build) -> Path:
    return Slot.of(build).work / "parts" / build.parts_key


def _makers(build: Build) -> list[str]:
    """Who may have made parts from inputs that did not stay as they were."""
    return sorted(path.stem.split("-")[0] for path in _store(build).glob("*.inputs"))


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
