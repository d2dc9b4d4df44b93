"""Publishing: what is built, what is left alone, what is refused."""

import dataclasses
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill import provenance
from gristmill.browse.web.shelf import Shelf
from gristmill.cli import main
from gristmill.contract import BadInput, FileNote, GristmillError, Summary, Violation
from gristmill.hashing import HashedFile, sha256_file
from gristmill.provenance.verification import verify
from gristmill.publish import atomic_fs, storage
from gristmill.publish.build import Attempt, Build, InputChanged, LawsBroken, Slot
from gristmill.publish.publish import build_rank, publish
from gristmill.run import locks
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import Progress, Report
from tests.publish.held import release_when_awaited
from tests.publish.killing import State
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import (
    TinyConfig,
    build_tiny,
    garbage,
    payload,
    raw_file,
    raw_input,
    snapshot,
    tiny_build,
)
from tests.run import tiny_work


def _folder(root: Path) -> Path:
    return root / OUTER


def test_an_untouched_artifact_is_not_built_again(tmp_path):
    first = publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    second = publish(tiny_build(tmp_path, config=TinyConfig(workers=2)))
    assert (first.rebuilt, second.rebuilt) == (True, False)
    assert second.record == first.record
    assert second.notes == ["nothing to do: same inputs, config and code"]
    assert State.of(tmp_path) == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: os.utime(folder / "trace.jsonl"),
        lambda folder: (folder / "trace.jsonl").write_bytes(b"other"),
        lambda folder: os.truncate(folder / "train/steps.npy", 3),
        lambda folder: (folder / "metadata.db").unlink(),
        lambda folder: shutil.rmtree(folder / "train"),
        lambda folder: _edit(folder / "provenance.json", b'"rows": 6', b'"rows": 7'),
    ],
)
def test_a_spoiled_artifact_is_built_again(tmp_path, spoil):
    first = publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    spoil(_folder(tmp_path))
    again = publish(tiny_build(tmp_path))
    assert again.rebuilt
    assert again.record.data_version == first.record.data_version
    assert State.of(tmp_path).built_as(before)
    assert provenance.verify(tmp_path) == []


def _edit(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_a_rebuild_replaces_an_intact_artifact_and_one_with_an_unreadable_record(tmp_path):
    first = publish(tiny_build(tmp_path))
    again = publish(tiny_build(tmp_path), rebuild=True)
    assert again.rebuilt and again.record.data_version == first.record.data_version
    publish(tiny_build(tmp_path, NESTED, outer=OUTER))
    (_folder(tmp_path) / "provenance.json").write_bytes(b"{")
    with pytest.raises(GristmillError, match=r"not a provenance record: move"):
        publish(tiny_build(tmp_path))
    mended = publish(tiny_build(tmp_path), rebuild=True)
    assert mended.notes == [
        "nothing was kept of the replaced version, as its record cannot be read",
        "removed runtime/cache: it was made from the replaced version",
    ]
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_an_unreadable_record_of_a_shared_folder_stops_a_build_and_no_rebuild(tmp_path):
    build = tiny_build(tmp_path, shared=True)
    publish(build)
    published = payload(build.folder)
    build.record_path.write_bytes(b"{")
    before = State.of(tmp_path)
    with pytest.raises(GristmillError, match=r"p1.json: not a provenance record: move"):
        publish(build)
    assert State.of(tmp_path) == before
    assert publish(build, rebuild=True).rebuilt
    assert payload(build.folder) == published
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_the_published_record_is_read_once_under_the_lock(tmp_path, monkeypatch):
    for shared in (False, True):
        build = tiny_build(tmp_path, "family/s" if shared else OUTER, shared=shared)
        publish(build)
        reads: list[bool] = []

        def read_record(
            path: Path,
            build: Build = build,
            reads: list[bool] = reads,
            original: Callable[[Path], provenance.Record] = provenance.read_record,
        ) -> provenance.Record:
            if path == build.record_path:
                reads.append(locks.is_locked(Slot.of(build).lock))
            return original(path)

        with monkeypatch.context() as patched:
            patched.setattr(provenance, "read_record", read_record)
            publish(dataclasses.replace(build, code_version="2"))
        assert reads == [False, True]


@pytest.mark.parametrize("shared", [False, True])
def test_a_folder_without_a_record_is_not_overwritten(tmp_path, shared):
    foreign = _folder(tmp_path) / "thesis.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"years of work")
    with pytest.raises(
        GristmillError, match=r"no provenance record and is not overwritten: move it away"
    ):
        publish(tiny_build(tmp_path, shared=shared))
    assert snapshot(_folder(tmp_path)) == {"thesis.txt": b"years of work"}
    assert garbage(tmp_path) == []


def test_an_empty_folder_is_taken_where_partitions_share_it(tmp_path):
    _folder(tmp_path).mkdir(parents=True)
    with pytest.raises(GristmillError, match="no provenance record and is not overwritten"):
        publish(tiny_build(tmp_path))
    assert publish(tiny_build(tmp_path, shared=True)).rebuilt
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("shared", [False, True])
def test_a_published_folder_may_be_a_link_that_is_read_but_not_built_again(tmp_path, shared):
    """Builds and checks read what is behind it; a rename would replace the link."""
    root, disk = tmp_path / "root", tmp_path / "disk"
    build = tiny_build(root, shared=shared)
    publish(build)
    _folder(root).rename(disk)
    _folder(root).symlink_to(disk)
    before = snapshot(disk)
    assert not publish(build).rebuilt
    other = tiny_build(root, config=TinyConfig(seed=2), shared=shared)
    for again, rebuild in ((build, True), (other, False)):
        with pytest.raises(GristmillError, match=r"is a link to .*disk: it is read, but not built"):
            publish(again, rebuild=rebuild)
    assert _folder(root).readlink() == disk
    assert snapshot(disk) == before
    assert garbage(root) == []


def _other_bytes(out: Path) -> dict[str, FileNote]:
    path = out / "train/steps.npy"
    return {"train/steps.npy": FileNote(sha256="0" * 64, bytes=path.stat().st_size - 1)}


REGULAR = "an artifact holds regular files and folders only"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_other_bytes, r"train/steps.npy: has \d+ bytes, and the builder hashed \d+"),
        (lambda out: (out / "link").symlink_to("train"), f"staging/link: {REGULAR}"),
        (lambda out: os.mkfifo(out / "pipe"), f"staging/pipe: {REGULAR}"),
        (
            lambda out: (out / "provenance.json").touch(),
            r"staging/provenance.json: this name is re",
        ),
        (lambda _: {"x": FileNote(payload=False)}, r"names files that were not written: \['x'\]"),
    ],
)
def test_a_link_a_pipe_a_record_or_a_stray_note_stops_the_commit(tmp_path, spoil, message):
    def make(attempt: Attempt) -> Summary:
        summary = build_tiny(attempt, TinyConfig(), "")
        return replace(summary, files={**summary.files, **(spoil(attempt.out) or {})})

    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    with pytest.raises(GristmillError, match=message):
        publish(tiny_build(tmp_path, config=TinyConfig(seed=2), make=make))
    assert State.of(tmp_path) == before
    publish(tiny_build(tmp_path, config=TinyConfig(seed=2)))
    assert garbage(tmp_path) == []


def test_a_file_that_the_builder_hashed_is_not_read_again(tmp_path, monkeypatch):
    def make(attempt: Attempt) -> Summary:
        summary = build_tiny(attempt, TinyConfig(), "")
        with HashedFile(attempt.out / "rows.bin") as file:
            file.write(b"rows")
        note = FileNote(rows=4, sha256=file.sha256, bytes=file.bytes)
        return replace(summary, files={**summary.files, "rows.bin": note})

    read: list[str] = []

    def counted(path: Path) -> str:
        read.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr("gristmill.publish.publish.sha256_file", counted)
    record = publish(tiny_build(tmp_path, make=make)).record
    assert "rows.bin" not in read
    assert "steps.npy" in read
    output = next(output for output in record.outputs if output.path == "rows.bin")
    assert (output.sha256, output.rows) == (hashlib.sha256(b"rows").hexdigest(), 4)
    assert provenance.verify(tmp_path) == []


def test_broken_laws_publish_nothing(tmp_path):
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    build = tiny_build(tmp_path, config=TinyConfig(seed=2))

    def laws(staged: Path) -> Iterator[Violation]:
        assert (staged / "trace.jsonl").exists()
        for row in range(22):
            yield Violation("rows are sorted", f"row {row}", "is not")

    broken = Build(**{**vars(build), "laws": laws})
    with pytest.raises(
        LawsBroken, match=r"row 19: rows are sorted: is not\n  and 2 more"
    ) as caught:
        publish(broken)
    assert len(caught.value.violations) == 22
    assert State.of(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.write_bytes(b"longer"),
        lambda raw: raw.write_bytes(b"RAW"),
        lambda raw: (raw.write_bytes(b"RAW"), os.utime(raw, ns=(1, 1))),
        lambda raw: raw.unlink(),
    ],
)
def test_a_raw_file_that_changes_during_the_build(tmp_path, change):
    raw = raw_file(tmp_path, "drops/a")
    os.utime(raw, ns=(1, 1))

    def make(attempt: Attempt) -> Summary:
        summary = build_tiny(attempt, TinyConfig(), "")
        change(raw)
        return summary

    inputs = [raw_input(tmp_path, "drops/a")]
    with pytest.raises(InputChanged, match=r"^drops/a: (gone while|changed since)"):
        publish(tiny_build(tmp_path, inputs=inputs, make=make))
    assert not _folder(tmp_path).exists()
    assert garbage(tmp_path) == []  # nor parts, which may be made of either version


def test_a_nested_artifact_needs_its_outer_one_and_must_name_it(tmp_path):
    with pytest.raises(GristmillError, match="no provenance record can be read"):
        publish(tiny_build(tmp_path, NESTED, outer=OUTER))
    publish(tiny_build(tmp_path))
    with pytest.raises(GristmillError, match=r"is inside the artifact family/tiny: name that"):
        publish(tiny_build(tmp_path, NESTED))
    publish(tiny_build(tmp_path, "family/shared", shared=True))
    with pytest.raises(GristmillError, match=r"is inside the artifact family/shared"):
        publish(tiny_build(tmp_path, "family/shared/within"))


def test_a_nested_artifact_is_kept_or_dropped_and_a_note_says_which(tmp_path):
    publish(tiny_build(tmp_path))
    nested = tiny_build(tmp_path, NESTED, outer=OUTER)
    publish(nested)
    before = snapshot(nested.folder)
    kept = publish(tiny_build(tmp_path, config=TinyConfig(label="x")))
    assert kept.notes == [
        'built again: config changed (label "" -> "x")',
        "kept runtime/cache: the data that it was made from did not change",
    ]
    assert snapshot(nested.folder) == before
    dropped = publish(tiny_build(tmp_path, config=TinyConfig(seed=2)))
    assert dropped.record.replaced is None  # another recipe replaces without a word
    assert dropped.notes == [
        'built again: config changed (seed 1 -> 2, label "x" -> "")',
        "removed runtime/cache: it was made from the replaced version",
    ]
    assert not nested.folder.exists()
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_partitions_of_a_shared_folder_may_not_share_a_file(tmp_path):
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "manifest.json").write_bytes(b"{}")
        return Summary(files={})

    publish(tiny_build(tmp_path, partition="p1", shared=True, make=make))
    before = State.of(tmp_path)
    with pytest.raises(GristmillError, match=r"\[p2\]: the file manifest.json belongs to another"):
        publish(tiny_build(tmp_path, partition="p2", shared=True, make=make))
    assert State.of(tmp_path) == before
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("partition", ["", "a/b", "../a", "a..b", ".a", "a b", None])
def test_a_partition_that_cannot_name_a_record(tmp_path, partition):
    with pytest.raises(ValueError, match="a partition of a shared folder names its record"):
        tiny_build(tmp_path, partition=partition, shared=True)
    with pytest.raises(ValueError, match="a nested folder is not shared"):
        tiny_build(tmp_path, NESTED, outer=OUTER, shared=True)


def test_a_failing_builder_that_holds_its_pool_leaves_nothing(tmp_path):
    """The name `finished` keeps the pool in the frame that the error carries."""

    def make(attempt: Attempt) -> Summary:
        tasks = [(f"rows-{index}", tiny_work.Task(1, index, 8, 0.05)) for index in range(20)]
        finished = run_parts(tiny_work.make, tasks, attempt.parts, 2, scratch=tmp_path)
        next(finished)
        raise KeyboardInterrupt

    build = tiny_build(tmp_path, make=make)
    with pytest.raises(KeyboardInterrupt) as caught:
        publish(build)
    parts = Slot.of(build).work / "parts" / build.parts_key
    left = snapshot(parts)
    assert left.keys() > {"rows-0.part", "rows-0.json"}
    assert all(name.endswith((".part", ".json", ".inputs")) for name in left)
    tiny_work.time.sleep(0.3)
    assert snapshot(parts) == left, "a worker writes after the build has failed"
    assert caught.type is KeyboardInterrupt
    publish(tiny_build(tmp_path))
    assert garbage(tmp_path) == []


def test_a_file_system_without_exchange_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_fs, "_RENAME_EXCHANGE", 1 << 20)  # EINVAL, as such systems answer
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    with pytest.raises(GristmillError, match=r"this file system cannot exchange folders"):
        publish(tiny_build(tmp_path, config=TinyConfig(seed=2)))
    assert State.of(tmp_path) == before


NAMES = st.sampled_from(["a", "b", "c/a", "c/b", "c/d/e"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["p0", "p1", "p2"]),
        st.dictionaries(NAMES, st.binary(max_size=4), max_size=4),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_shared_folder_holds_the_union(steps, tmp_path_factory):
    root = tmp_path_factory.mktemp("shared")
    expected: dict[str, dict[str, bytes]] = {}
    for number, (partition, files, fails) in enumerate(steps):

        def make(
            attempt: Attempt,
            partition: str = partition,
            files: dict[str, bytes] = files,
            fails: bool = fails,
        ) -> Summary:
            attempt.out.mkdir()
            for name, data in files.items():
                path = attempt.out / partition / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            if fails:
                raise GristmillError("as drawn")
            return Summary(files={})

        config = TinyConfig(seed=number)
        build = tiny_build(root, partition=partition, shared=True, make=make, config=config)
        if fails:
            with pytest.raises(GristmillError, match="as drawn"):
                publish(build)
        else:
            publish(build)
            expected[partition] = {f"{partition}/{name}": data for name, data in files.items()}
        found = snapshot(root / OUTER)
        records = {name for name in found if name.startswith("provenance/")}
        assert records == {f"provenance/{partition}.json" for partition in expected}
        union = {name: data for files in expected.values() for name, data in files.items()}
        assert {name: found[name] for name in found.keys() - records} == union
        assert garbage(root) == []
        if expected:
            assert provenance.verify(root) == []


def test_the_progress_of_a_publication_is_that_of_its_builder_and_the_hash_a_stage(tmp_path):
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "rows.bin").write_bytes(bytes(3 << 20))
        (attempt.out / "more.bin").write_bytes(b"x")
        return Summary(files={})

    reports: list[Report] = []
    publish(tiny_build(tmp_path, make=make), progress=Progress(reports.append, every=0.0))
    size = (3 << 20) + 1
    hashed = [report for report in reports if report.stage == "hash"]
    assert len(hashed) == 5
    assert hashed[-1] == Report("hash", size, size, "bytes")
    (tmp_path := tmp_path / "next").mkdir()
    reports: list[Report] = []
    published = publish(tiny_build(tmp_path), progress=Progress(reports.append, every=0.0))
    rows = published.record.counts["rows"]
    built = [report for report in reports if report.stage == "rows"]
    assert [report.done for report in built] == [0, 2, 4, 6]
    assert built[-1] == Report("rows", rows, rows, "rows")
    files = len(published.record.outputs)
    assert reports[-1] == Report("publish", files, files, "files")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOSPC])
def test_a_failure_after_the_rename_names_it(tmp_path, monkeypatch, worker_threads, shared, number):
    """Each flush, rename and removal of a commit fails once: what is said is what stands."""
    build, left = partial(tiny_build, tmp_path, "family/tiny", shared=shared), [0]
    build = partial(build, partition="p" if shared else None)
    seen = set()

    def failing(call: Callable[..., object]) -> Callable[..., object]:
        def tried(*given: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(number, os.strerror(number), "a file")
            return call(*given, **named)

        return tried

    for seed in range(1, 100):
        publish(build(config=TinyConfig(seed=seed)))
        wanted, left[0] = build(config=TinyConfig(seed=seed + 1)), seed
        with monkeypatch.context() as patched:
            for place, name in ((os, "fsync"), (shutil, "rmtree"), (Path, "rename")):
                patched.setattr(place, name, failing(getattr(place, name)))
            patched.setattr(atomic_fs, "exchange", failing(atomic_fs.exchange))
            try:
                publish(wanted)
            except (GristmillError, OSError) as error:
                is_new = wanted.made(provenance.read_record(wanted.record_path))
                assert ("the new version stands" in str(error)) == is_new
                assert ("before is untouched" in str(error)) <= (not is_new)
                seen.add(is_new)
        if left[0] > 0:
            break
    assert left[0] > 0 and seen == {False, True}
    assert publish(wanted).rebuilt is False


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("forms", list(product(("exchange", "link"), repeat=2)))
def test_what_is_deleted_is_named_or_remade(tmp_path, monkeypatch, worker_threads, shared, forms):
    """Each file and folder there is deleted once: what looks says it, what builds mends it."""
    monkeypatch.setenv(storage.VARIABLE, forms[0])
    first = tmp_path / "first"
    publish(tiny_build(first, "family/tiny", shared=shared, partition="p" if shared else None))
    at = sorted(path.relative_to(first) for path in first.rglob("*") if ".gristmill" in path.parts)
    assert len(at) > 8
    monkeypatch.setenv(storage.VARIABLE, forms[1])
    for number, path in enumerate(at):
        root = tmp_path / str(number)
        shutil.copytree(first, root, symlinks=True)
        gone = root / path
        gone.unlink() if gone.is_file() else shutil.rmtree(gone)
        for command in ("ls", "verify"):
            said = CliRunner().invoke(main, [command, str(root)])
            assert said.exception is None or isinstance(said.exception, SystemExit), path
            assert said.output
        assert list(Shelf(root).listed()) or "versions" in path.parts or path.name == ".gristmill"
        build = tiny_build(root, "family/tiny", shared=shared, partition="p" if shared else None)
        try:
            publish(build)
        except GristmillError as error:
            assert "no provenance record" in str(error) and "provenance" in str(path)
            continue
        assert verify(root, check_inputs=False, check_laws=False) == []
        assert publish(build).rebuilt is False


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
