"""Publishing: an artifact partition appears whole or not at all.

A build happens in a staging folder on the same file system, is checked, gets its record, is flushed
to disk and then committed by one rename: a kill at any instant leaves the old version or the new
one, and the next build removes what the killed one left. Source:
docs/publishing-details.md#the-steps.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from gristmill import provenance
from gristmill.contract import FileFailed, FileNote, GristmillError, Summary, counts_of, os_reason
from gristmill.families.kinds import FORGOTTEN_BY
from gristmill.hashing import sha256_file
from gristmill.layout import PARTS
from gristmill.provenance import (
    InputsFile,
    Notes,
    Record,
    Replaced,
    environment,
    inventory,
    unusual,
)
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import Accounted, is_untouched
from gristmill.publish import atomic_fs, commit, remove
from gristmill.publish.build import (
    PUBLISHER,
    Attempt,
    Build,
    DiskFull,
    InputChanged,
    InputDamaged,
    LawsBroken,
    OtherOutput,
    Published,
    Slot,
    account_line,
    check_space,
    is_disk_full,
    not_checked_line,
    translate_disk_errors,
)
from gristmill.publish.input_proof import InputProof
from gristmill.run import locks
from gristmill.run.parts import LatePartStore, PartStore, seconds_without_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import kept_workers

NOT_PUBLISHED: Final = "not published"
"""A reason to build."""

# Below so many bytes, hashing takes less time than starting threads (half a millisecond).
_THREADS_PAY = 1 << 20


def publish(
    build: Build,
    rebuild: bool = False,
    *,
    replace_differing: bool = False,
    wait: bool = False,
    progress: Progress = SILENT,
) -> Published:
    """Build, check, record and commit one artifact partition, if it is not up to date.

    build: what to make, from which inputs, and where it goes.
    rebuild: build even where the published record has the same fingerprint and
        every file has the recorded size and time; default False.
    replace_differing: publish a build though it has the published fingerprint and
        another data version; the record names the version that it replaced. Default False.
    wait: wait for another builder, which `progress` names; mostly nothing is to be done after it.
        Default False.
    progress: what the builder reports to; default: nothing.

    Raises locks.Busy where another builder is at work and `wait` is False; LawsBroken,
    InputChanged, InputDamaged, OtherOutput, DiskFull and locks.LostLock as their docstrings say;
    GristmillError where a folder without a record is in the way; and whatever the builder raises.
    What was published before is untouched, but for a FileFailed that says that the new version
    stands: what comes after its rename failed. Inputs that the build deletes are deleted
    last; the next call deletes those that a kill left.
    """
    published = _publish(build, rebuild, replace_differing, wait, progress)
    try:
        deleted = remove.delete_inputs(build.root, published.record, build.deletes)
    except OSError as error:
        raise _stands(build, error) from error
    # Where nothing was to be done nothing is read.
    item = Artifact(build.folder, build.record_path)
    said = unusual.lines(item, published.record, is_read=published.rebuilt)
    return replace(
        published,
        notes=[*published.notes, *build.remarks, *deleted, *said],
        account=account_line(build, published.record),
        not_checked=not_checked_line(published.record),
    )


def is_current(build: Build) -> bool:
    """Whether what is published is what `build` would make, and its files are as recorded."""
    standing = _standing_record(build)
    return standing is not None and _is_up_to_date(build, standing)


def standing_record(build: Build) -> Record | None:
    """Returns the published record where `publish` would find nothing to do, else None.

    Raises GristmillError for a record that cannot be read.
    """
    if Slot.of(build).work.exists() or any((build.root / path).exists() for path in build.deletes):
        return None  # a killed build left work, or did not delete its inputs
    standing = _standing_record(build)
    if standing is None or not _is_up_to_date(build, standing):
        return None
    inventory.note_unchanged(build.root, build.entry)
    return standing


def reason_to_build(build: Build) -> str:
    """Returns why `publish` would build; empty where it would find nothing to do."""
    if Slot.of(build).work.exists():
        return "a build of it was ended before its end"
    standing = _standing_record(build)
    if standing is None:
        return NOT_PUBLISHED
    if not build.made(standing):
        return "; ".join(build.changes(standing))
    if any((build.root / path).exists() for path in build.deletes):
        return "its inputs are still to be deleted"
    return "" if _is_up_to_date(build, standing) else "its files are not those of its record"


def _publish(
    build: Build, rebuild: bool, replace_differing: bool, wait: bool, progress: Progress
) -> Published:
    slot = Slot.of(build)
    if not rebuild and not slot.work.exists():
        standing = _standing_record(build)
        if standing is not None and _is_up_to_date(build, standing):
            return _unchanged(build, standing)
    with (
        translate_disk_errors(build),
        locks.locked(slot.lock, build.title, wait, progress=progress),
    ):
        remove.mend(slot.work)
        standing = _standing_record(build, ignore_unreadable=rebuild)
        if not rebuild and standing is not None and _is_up_to_date(build, standing):
            remove.sweep(slot.work)
            atomic_fs.remove_tree(slot.work)  # of a build that was killed after its commit
            return _unchanged(build, standing)
        return _build(build, slot, standing, replace_differing, progress)


def _standing_record(build: Build, ignore_unreadable: bool = False) -> Record | None:
    """The published record of this partition, None where there is none or `ignore_unreadable`."""
    if not build.record_path.exists():
        return None
    try:
        return provenance.read_record(build.record_path)
    except GristmillError:
        if ignore_unreadable:
            return None
        raise


def _is_up_to_date(build: Build, standing: Record) -> bool:
    """Whether `standing` is what `build` would make and its files are as recorded."""
    files: list[tuple[str, int, int | None]] = [
        (output.path, output.bytes, output.mtime_ns) for output in standing.outputs
    ]
    if (listed := standing.inputs_file) is not None:
        files.append((listed.path, listed.bytes, None))
    return (
        build.made(standing)
        and standing.digest == standing.computed_digest()
        and set(build.deletes) <= set(standing.deleted_inputs)
        and all(is_untouched(build.folder / path, *facts) for path, *facts in files)
    )


def _unchanged(build: Build, standing: Record) -> Published:
    inventory.note_unchanged(build.root, build.entry)
    notes = ["nothing to do: same inputs, config and code"]
    return Published(build.folder, standing, rebuilt=False, notes=notes)


def _build(
    build: Build,
    slot: Slot,
    standing: Record | None,
    replace_differing: bool,
    progress: Progress,
) -> Published:
    commit.check_place(build)
    why: list[str] = []
    with suppress(GristmillError):  # its list of inputs cannot be read
        if standing is not None and not build.made(standing):
            why = [f"built again: {'; '.join(build.changes(standing))}"]
    parts = LatePartStore(
        slot.work / PARTS / build.parts_key, keep_from=time.monotonic() + seconds_without_parts()
    )
    proof = InputProof(build, progress)
    # A slot that is there may be of a living builder whose lock file a person removed.
    name = f"staging@{secrets.token_hex(8)}" if slot.work.exists() else "staging"
    staged = slot.work / name
    attempt = Attempt(staged, build.folder, parts, build.recipe, progress, proof.digest)
    started = time.monotonic()
    environment.reset_peak_memory()
    record: Record | None = None
    try:
        if slot.work.exists():
            inventory.settle(build.root, build.entry)
            remove.sweep(slot.work)
            _remove_leftovers(slot, parts)
        else:
            slot.work.mkdir(parents=True)
        check_space(build, slot.work)
        proof.before()
        if parts.folder.exists():
            parts.begin(PUBLISHER, proof.digest())
        if there := parts.count():
            progress.say(f"takes over {there:,} finished parts of an earlier build")
        with kept_workers():
            summary = build.make(attempt)
            proof.after()
            with progress.current():
                if violations := list(build.laws(attempt.out)):
                    raise LawsBroken(build.title, violations)
        record = write_record(
            build,
            attempt.out,
            summary,
            time.monotonic() - started,
            replaced=lambda version: _replaced(build, standing, version, replace_differing),
            progress=progress,
        )
        notes = commit.commit(build, slot, attempt.out, record, standing, progress)
        if not locks.is_lost():
            atomic_fs.remove_tree(slot.work)
    except BaseException as error:
        # Frames can keep a worker pool alive; clearing them stops it before its files go.
        traceback.clear_frames(error.__traceback__)
        _end_failed(build, slot, parts, record, error)
        raise
    notes = [*why, *notes, *parts.use.notes()]
    return Published(build.folder, record, rebuilt=True, notes=notes, before=standing)


def _end_failed(
    build: Build, slot: Slot, parts: PartStore, record: Record | None, error: BaseException
) -> None:
    """Clear what a failed attempt left. Raises FileFailed where its version was published."""
    locks.confirm()  # a slot whose lock is lost is another builder's, and left alone
    now = _standing_record(build, ignore_unreadable=True) if record is not None else None
    is_new = isinstance(error, OSError) and now is not None and now == record
    # The same disk may fail again, and the next call clears what is left.
    with suppress(OSError) if is_new else nullcontext():
        inventory.settle(build.root, build.entry)
        remove.sweep(slot.work)
        # Not where parts fill the disk, or are or may be of other inputs.
        unusable = InputChanged | InputDamaged | OtherOutput | DiskFull
        _clear(slot, parts, not (isinstance(error, unusable) or is_disk_full(error)))
    if isinstance(error, OSError) and is_new:
        raise _stands(build, error) from error


def _stands(build: Build, error: OSError) -> FileFailed:
    """The error of a step after the rename that published a version."""
    return FileFailed(
        f"{build.title}: the new version stands, but what comes after its "
        f"publication failed: {error.filename or build.folder}: {os_reason(error)}. The next call "
        "ends it, and `gristmill verify` reads what stands"
    )


def _remove_leftovers(slot: Slot, parts: PartStore) -> None:
    """Remove what earlier attempts left in the slot, but keep the finished `parts`."""
    for entry in slot.work.iterdir():
        if entry != parts.folder.parent:
            atomic_fs.remove_tree(entry)
    if not parts.folder.parent.exists():
        return
    for entry in parts.folder.parent.iterdir():
        if entry != parts.folder:
            atomic_fs.remove_tree(entry)
    if parts.folder.exists():
        parts.remove_unfinished()


def _clear(slot: Slot, parts: PartStore, keep_parts: bool) -> None:
    """Remove what a failed attempt left; all of it where there is no part to keep."""
    if keep_parts and parts.folder.exists():
        _remove_leftovers(slot, parts)
        if parts.count():
            return
    atomic_fs.remove_tree(slot.work)


def _replaced(
    build: Build, standing: Record | None, data_version: str, allowed: bool
) -> Replaced | None:
    """The published version of the same fingerprint that differs from `data_version`.

    Raises OtherOutput where it may not be replaced. A record without a code digest always may: its
    inputs were not proved.
    """
    if standing is None or standing.data_version == data_version or not build.made(standing):
        return None
    if standing.code_digest is None:
        why = "its inputs were not proved when it was built"
    elif allowed:
        why = "a person chose to replace it (replace_differing)"
    else:
        raise OtherOutput(
            f"{build.title}: not published: its inputs, config and code are those of the published "
            f"version, but its contents are not: data version {data_version}, published "
            f"{standing.data_version}. Find out which one is right. To publish this one, add "
            "--rebuild --replace-differing"
        )
    return Replaced(data_version=standing.data_version, digest=standing.digest, why=why)


def write_record(
    build: Build,
    out: Path,
    summary: Summary,
    seconds: float,
    replaced: Callable[[str], Replaced | None] = lambda _: None,
    progress: Progress = SILENT,
) -> Record:
    """Hash the files in `out`, and write the record, and `inputs.jsonl` for many inputs.

    `replaced` takes the new data version, and returns the published version that it replaces though
    it should be equal. Raises what `replaced` raises, and GristmillError where `out` holds a link,
    a pipe or a file with the record's own name, the summary names a file that does not exist, or a
    file has another size than what the builder hashed.
    """
    target = provenance.record_path(out, build.partition, build.shared)
    for reserved in (target, provenance.inputs_path(target)):
        if reserved.exists():
            raise GristmillError(
                f"{reserved}: this name is reserved for the provenance record; "
                "the builder must not write it"
            )
    outputs = provenance.outputs_of(out, hashes_of(out, summary.files, progress), summary.files)
    data_version = provenance.data_version(outputs)
    other = replaced(data_version)
    with progress.current():
        notes = Notes.of(build.notes(out) if build.noted is None else build.noted, out)
    counts, account = counts_of(summary), build.account
    counts |= {f"{FORGOTTEN_BY}/{day}": count for day, count in build.forgotten.items()}
    target.parent.mkdir(exist_ok=True)
    inputs_file = _write_inputs(build, out, provenance.inputs_path(target))
    record = Record(
        artifact=build.artifact,
        asset=build.asset,
        partition=build.partition,
        code_version=build.code_version,
        code_digest=build.code.digest,
        git_sha=environment.git_sha(),
        config=provenance.config_fields(build.config),
        config_sha256=provenance.digest(provenance.config_fields(build.config)),
        fingerprint=build.fingerprint,
        data_version=data_version,
        inputs=[] if inputs_file else list(build.inputs),
        inputs_file=inputs_file,
        tokenizer=build.tokenizer,
        outputs=outputs,
        counts=counts,
        deleted_inputs=list(build.deletes),
        libraries=environment.libraries(),
        platform=environment.platform(),
        replaced=other,
        notes=notes,
        account=Accounted.of(account.lines, build.columns(counts)) if account else None,
        seconds=round(seconds, 3),
        peak_memory_bytes=environment.peak_memory_bytes(),
        created=datetime.now(UTC),
    ).sealed()
    target.write_bytes(record.to_bytes())
    return record


def hashes_of(out: Path, notes: Mapping[str, FileNote], progress: Progress) -> Mapping[str, str]:
    """Returns the sha256 of every file in `out`: as the builder noted it, else of its bytes."""
    sizes = {path: (out / path).stat().st_size for path in atomic_fs.files_below(out)}
    hashes: dict[str, str | None] = dict.fromkeys(sizes)
    for path in sizes.keys() & notes.keys():
        hashes[path] = _noted(out / path, sizes[path], notes[path])
    unread = [path for path, sha256 in hashes.items() if sha256 is None]
    total = sum(sizes[path] for path in unread)
    if total < _THREADS_PAY:
        read = {path: sha256_file(out / path) for path in unread}
    else:
        with progress.stage("hash", "bytes", total) as stage, ThreadPoolExecutor() as threads:
            digests = threads.map(lambda path: sha256_file(out / path, stage.advance), unread)
            read = dict(zip(unread, digests, strict=True))
    return {path: sha256 or read[path] for path, sha256 in hashes.items()}


def _noted(path: Path, size: int, note: FileNote) -> str | None:
    if note.sha256 is not None and note.bytes != size:
        raise GristmillError(
            f"{path}: has {size:,} bytes, and the builder hashed {note.bytes}: it was written to "
            "by something else"
        )
    return note.sha256


def _write_inputs(build: Build, out: Path, path: Path) -> InputsFile | None:
    listed = provenance.split_inputs(build.inputs)
    if listed is None:
        return None
    path.write_bytes(listed)
    return InputsFile(
        path=path.relative_to(out).as_posix(),
        count=len(build.inputs),
        bytes=len(listed),
        sha256=sha256_file(path),
    )


class Ranks(Protocol):
    """The parts of one build, by rank; a family's builder provides it."""

    world_size: int
    """Number of ranks."""

    def names(self, rank: int) -> Sequence[str]:
        """Names of the parts of a rank."""
        ...

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        """Make the parts of a rank that the store does not have."""
        ...


@dataclass(frozen=True)
class RankBuilt:
    """What one rank did.

    published: the artifact where this call published it or found it published, else None.
    """

    made: int
    missing: Sequence[int]
    published: Published | None


def build_rank(
    build: Build, ranks: Ranks, rank: int, progress: Progress = SILENT, *, wait: bool = False
) -> RankBuilt:
    """Make the parts of one rank, and publish if the parts of all ranks are finished.

    Ranks may run at once and in any order, and again: finished parts are adopted. Raises ValueError
    for another rank; locks.Busy where there is such a process and `wait` is False; and what
    `publish` raises.
    """
    if not 0 <= rank < ranks.world_size:
        raise ValueError(f"rank {rank}: must be from 0 to {ranks.world_size - 1}")
    slot = Slot.of(build)
    own = slot.lock.with_name(f"{slot.lock.name}@rank{rank}")
    with locks.locked(own, f"rank {rank} of {build.title}", wait, progress=progress):
        if is_current(build):
            return RankBuilt(0, [], publish(build, wait=True, progress=progress))
        parts = PartStore(slot.work / PARTS / build.parts_key)
        with (
            translate_disk_errors(build),
            locks.locked(slot.lock, build.title, wait, shared=True, progress=progress),
        ):
            parts.folder.mkdir(parents=True, exist_ok=True)
            check_space(build, parts.folder)
            proof = InputProof(build, progress)
            proof.before()
            parts.begin(maker := f"rank{rank}", proof.digest())
            made = _unfinished(ranks, rank, parts)
            try:
                ranks.make(rank, parts, progress)
                proof.after()
            except (InputChanged, InputDamaged):
                for name in made:  # what was made from it must not be adopted
                    parts.forget(name)
                parts.end(maker)
                raise
            parts.end(maker)
    missing = [each for each in range(ranks.world_size) if _unfinished(ranks, each, parts)]
    if missing:
        return RankBuilt(len(made), missing, None)
    # The others let go of the lock; one of them may be first.
    return RankBuilt(len(made), [], publish(build, wait=True, progress=progress))


def _unfinished(ranks: Ranks, rank: int, parts: PartStore) -> list[str]:
    """Parts of a rank without an entry; the publisher compares their hashes, too."""
    return [name for name in ranks.names(rank) if not parts.is_listed(name)]
