"""Publishing: an artifact partition appears whole or not at all.

A build happens in a staging folder on the same file system, is checked, gets
its record, is flushed to disk and then committed by one rename. A kill at any
instant leaves what was published before or what is published now, and the
next build sweeps what the killed one left. The design's section 4 is the
source of these rules.

For an artifact `<parent>/<name>`, all that is not published lies in
`<parent>/.gristmill/`: lock files, and one folder a slot (an artifact, a
partition of a shared folder, a nested artifact) with `parts/<fingerprint>/`
and the staging folder of the attempt under way.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gristmill import commit, durable, environment, locks, provenance
from gristmill.builds import (
    Attempt,
    Build,
    DiskFull,
    InputChanged,
    LawsBroken,
    Published,
    Slot,
)
from gristmill.contract import GristmillError, Summary, counts_of
from gristmill.parts import PartStore, sha256_file
from gristmill.provenance import InputsFile, Record

__all__ = ["Attempt", "Build", "DiskFull", "InputChanged", "LawsBroken", "Published", "publish"]

_SPARE_BYTES = 64 << 20
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def publish(build: Build) -> Published:
    """Build, check, record and commit one artifact partition, unless it stands already.

    An artifact whose record has the same fingerprint and whose files have the
    recorded sizes and times is left alone.

    Raises locks.Busy where another builder is at work, LawsBroken, InputChanged
    and DiskFull as they say, GristmillError where a folder without a record
    stands in the way, and whatever the builder raises. In every case what was
    published before is untouched.
    """
    if standing := _standing(build):
        return standing
    slot = Slot.of(build)
    with locks.held(slot.lock, build.title):
        if standing := _standing(build):
            return standing
        with _disk_full_told(build, slot):
            return _build(build, slot)


def _standing(build: Build) -> Published | None:
    """What is published, if it is what `build` would make and its files are intact."""
    if not build.record_path.exists():
        return None
    record = provenance.read_record(build.record_path)
    if record.fingerprint != build.fingerprint:
        return None
    for output in record.outputs:
        try:
            stat = (build.folder / output.path).stat()
        except OSError:
            return None
        if (stat.st_size, stat.st_mtime_ns) != (output.bytes, output.mtime_ns):
            return None
    return Published(
        build.folder, record, rebuilt=False, notes=["nothing to do: same inputs, config and code"]
    )


def _build(build: Build, slot: Slot) -> Published:
    _check_place(build)
    parts = _sweep(build, slot)
    _check_space(build, slot)
    attempt = Attempt(slot.work / "staging", build.folder, PartStore(parts), build.fingerprint)
    started = time.monotonic()
    environment.reset_peak_memory()
    try:
        summary = build.make(attempt)
        _check_inputs_unchanged(build)
        if violations := list(build.laws(attempt.out)):
            raise LawsBroken(build.title, violations)
        record = _write_record(build, attempt.out, summary, time.monotonic() - started)
        notes = commit.commit(build, slot, attempt.out, record)
    except BaseException:
        durable.remove_tree(attempt.out)
        raise
    durable.remove_tree(slot.work)
    return Published(build.folder, record, rebuilt=True, notes=notes)


def _check_place(build: Build) -> None:
    """Refuse to replace what Gristmill did not make, or to nest in what is not there."""
    if build.outer is not None:
        provenance.read_record(build.root / build.outer / provenance.RECORD)
    if not build.folder.exists() or build.record_path.exists():
        return
    if build.shared and any((build.folder / provenance.SHARED_RECORDS).glob("*.json")):
        return
    raise GristmillError(
        f"{build.folder}: something stands here that has no provenance record: "
        "move it away, it will not be overwritten"
    )


def _sweep(build: Build, slot: Slot) -> Path:
    """Remove what killed attempts left, but keep the parts of this fingerprint.

    The lock is held: nothing in the slot belongs to a living builder.
    """
    keep = build.fingerprint[:16]
    parts = slot.work / "parts" / keep
    parts.mkdir(parents=True, exist_ok=True)
    for entry in slot.work.iterdir():
        if entry.name != "parts":
            durable.remove_tree(entry)
    for entry in parts.parent.iterdir():
        if entry.name != keep:
            durable.remove_tree(entry)
    return parts


def _check_space(build: Build, slot: Slot) -> None:
    free = shutil.disk_usage(slot.work).free
    if free < build.space + _SPARE_BYTES:
        raise DiskFull(
            f"{build.title}: needs about {build.space + _SPARE_BYTES:,} bytes in {build.root}, "
            f"{free:,} are free: make room or move the data root; nothing was changed"
        )


@contextmanager
def _disk_full_told(build: Build, slot: Slot) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if not _means_disk_full(error):
            raise
        # Parts are worth keeping after a kill, not where they fill the disk.
        durable.remove_tree(slot.work)
        raise DiskFull(
            f"{build.title}: {error}: make room in {build.root} and build again; "
            "what was published before is untouched"
        ) from error


def _means_disk_full(error: OSError | sqlite3.OperationalError) -> bool:
    if isinstance(error, OSError):
        return error.errno in _DISK_FULL
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _check_inputs_unchanged(build: Build) -> None:
    for item in build.inputs:
        if item.path is None or item.mtime_ns is None:
            continue
        try:
            stat = (build.root / item.path).stat()
        except OSError as error:
            raise InputChanged(f"{item.path}: gone while it was being read: {error}") from error
        if (stat.st_size, stat.st_mtime_ns) != (item.bytes, item.mtime_ns):
            raise InputChanged(
                f"{item.path}: changed while it was being read: build again once it is complete"
            )


def _write_record(build: Build, out: Path, summary: Summary, seconds: float) -> Record:
    paths = list(durable.files_below(out))
    with ThreadPoolExecutor() as threads:
        hashes = dict(
            zip(paths, threads.map(lambda path: sha256_file(out / path), paths), strict=True)
        )
    outputs = provenance.outputs_of(out, hashes, summary.files)
    target = provenance.record_path(out, build.partition, build.shared)
    target.parent.mkdir(exist_ok=True)
    inputs, inputs_file = list(build.inputs), None
    if (listed := provenance.split_inputs(inputs)) is not None:
        path = provenance.inputs_path(target)
        path.write_bytes(listed)
        inputs_file = InputsFile(
            path=str(path.relative_to(out)),
            count=len(inputs),
            bytes=len(listed),
            sha256=sha256_file(path),
        )
        inputs = []
    record = Record(
        artifact=build.artifact,
        asset=build.asset,
        partition=build.partition,
        code_version=build.code_version,
        git_sha=environment.git_sha(),
        config=provenance.config_fields(build.config),
        config_sha256=provenance.digest(provenance.config_fields(build.config)),
        fingerprint=build.fingerprint,
        data_version=provenance.data_version(outputs),
        inputs=inputs,
        inputs_file=inputs_file,
        tokenizer=build.tokenizer,
        outputs=outputs,
        counts=counts_of(summary),
        libraries=environment.libraries(),
        seconds=round(seconds, 3),
        peak_memory_bytes=environment.peak_memory_bytes(),
        created=datetime.now(UTC),
    ).sealed()
    target.write_bytes(record.to_bytes())
    return record
