"""Writing the record of a staged artifact: hashes of its files, inputs, counts, machine.

The fields of a record and reading it belong to `gristmill.provenance`. Source:
`docs/publishing.md#provenance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from gristmill import provenance
from gristmill.contract import FileNote, GristmillError, Summary, counts_of
from gristmill.hashing import sha256_file
from gristmill.provenance import InputsFile, Record, Replaced, environment
from gristmill.publish import atomic_fs
from gristmill.publish.build import Build
from gristmill.run.progress import SILENT, Progress

# Below so many bytes, hashing takes less time than starting threads (half a millisecond).
_THREADS_PAY = 1 << 20


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
    outputs = provenance.outputs_of(out, _hashes(out, summary.files, progress), summary.files)
    data_version = provenance.data_version(outputs)
    other = replaced(data_version)
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
        counts=counts_of(summary),
        deleted_inputs=list(build.deletes),
        libraries=environment.libraries(),
        platform=environment.platform(),
        replaced=other,
        seconds=round(seconds, 3),
        peak_memory_bytes=environment.peak_memory_bytes(),
        created=datetime.now(UTC),
    ).sealed()
    target.write_bytes(record.to_bytes())
    return record


def _hashes(out: Path, notes: Mapping[str, FileNote], progress: Progress) -> Mapping[str, str]:
    """The sha256 of every file: as the builder noted it, else by reading the file."""
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
