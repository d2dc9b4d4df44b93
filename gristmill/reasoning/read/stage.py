"""Staging: shards of a node's ranks on a local disk, verified; and removing them again.

A copy is hashed while it is written, and gets its name when it is right.
Source: `docs/formats/reasoning.md#staging`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.split_file import files
from gristmill.hashing import HashedFile, sha256_file
from gristmill.provenance import read_record
from gristmill.publish.build import DiskFull, is_disk_full
from gristmill.reading.folder import opened
from gristmill.reasoning.format import id_files, names, published
from gristmill.reasoning.format.published import (
    STAGED_ALIGNMENT,
    STAGED_SHARDS,
    Entry,
    Staged,
)
from gristmill.reasoning.format.shards import Shard, ShardList, shard_list
from gristmill.reasoning.read.shard_files import partition_folder, record_in, refuse_other_metas
from gristmill.reasoning.read.shard_reader import ShardReader
from gristmill.reasoning.read.supervised import refuse_drift
from gristmill.run.locks import locked
from gristmill.run.progress import SILENT, Progress, Stage

SPARE_BYTES: Final = 64 << 20
"""Free space that staging leaves."""

_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Copy:
    """One file to copy.

    sha256: of the file by its record, by its meta, or as it is now where neither has it.
    shard: whose tensor it holds; None for other files.
    """

    source: Path
    path: str
    bytes: int
    sha256: str
    shard: Shard | None = None


def refuse_full(copies: Sequence[Copy], target: Path) -> None:
    """Raise DiskFull where the files that are not there yet have no room."""
    missing = [copy for copy in copies if not os.path.lexists(target / copy.path)]
    needed = sum(copy.bytes for copy in missing) + SPARE_BYTES
    free = shutil.disk_usage(target).free
    if missing and free < needed:
        raise DiskFull(
            f"{target}: needs {needed:,} bytes for {len(missing)} files, {free:,} are free: make"
            " room, stage fewer ranks, or use another disk; nothing was copied"
        )


def is_below(target: Path, path: str) -> bool:
    """Whether a path in the job's folder leads over no link to another place."""
    return (target / path).parent.resolve() == target.resolve() / Path(path).parent


def _is_there(copy: Copy, target: Path, is_own: bool) -> bool:
    """Whether a file is there and right; a wrong one is removed if it is ours."""
    path = target / copy.path
    if not is_below(target, copy.path):
        raise GristmillError(f"{path}: its folder is a link: remove the link")
    if not os.path.lexists(path):
        return False
    if _is_as_listed(path, copy):
        return True
    if not is_own or path.is_symlink() or not path.is_file():
        raise GristmillError(
            f"{path}: another file is in the way, which staging did not put there: remove it, or"
            " use another folder"
        )
    path.unlink()
    return False


def _is_as_listed(path: Path, listed: Copy | Entry) -> bool:
    found = path.lstat()
    is_same = stat.S_ISREG(found.st_mode) and found.st_size == listed.bytes
    return is_same and sha256_file(path) == listed.sha256


def _copy(copy: Copy, path: Path, stage: Stage) -> None:
    """Copy one file. Raises BadInput where it is not the expected one."""
    temporary = published.temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        _write(copy, temporary, stage)
        temporary.rename(path)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{path}: {error.strerror}: make room and stage again: what was copied is used"
            ) from error
        raise BadInput(copy.source, f"cannot be copied to {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _write(copy: Copy, temporary: Path, stage: Stage) -> None:
    """Write the copy under its temporary name, and compare its hashes."""
    tensor, begin, end = hashlib.sha256(), 0, 0
    if copy.shard is not None:
        begin, end = id_files.place(copy.source)
    with HashedFile(temporary) as out, copy.source.open("rb", buffering=0) as source:
        while data := source.read(_READ_BYTES):
            at = out.bytes
            tensor.update(memoryview(data)[max(begin - at, 0) : max(end - at, 0)])
            out.write(data)
            stage.advance(len(data))
        found = {"sha256": (out.sha256, copy.sha256)}
    if copy.shard is not None:
        found["tensor sha256"] = tensor.hexdigest(), copy.shard.sha256
    for what, (own, expected) in found.items():
        if own != expected:
            raise BadInput(
                copy.source,
                f"its {what} is {own[:12]}, its record or the manifest says {expected[:12]}: it was"
                " changed or damaged: build it again, or copy it again; it was not staged",
            )
    with temporary.open("rb") as written:
        os.fsync(written.fileno())


def stage(
    tokenized: Path,
    target: Path,
    *,
    ranks: Sequence[int],
    world_size: int,
    job: str,
    corpora: Sequence[str] = (),
    splits: Sequence[str] = (),
    index: bool = False,
    alignment: Path | None = None,
    progress: Progress = SILENT,
) -> Staged:
    """Copy the shards of some ranks to a local disk, each hashed while it is copied.

    tokenized: the folder of all shards, a token dataset, or what the seed's tools made. target: the
        job's folder on the local disk; the shards go to its folder `shards`.
    ranks: those of this node. world_size: of the whole job. job: its name. corpora, splits: as for
        ShardReader; default all. index: whether to copy the index, which `select` reads; default
        False. alignment: the folder of the alignments, to copy them and the index; default None.

    A file that is there is used again if its hash is right, and a killed staging is continued.
    Ranks that the job has there already stay. Returns what is staged there now. Before anything is
    copied it raises DiskFull where room lacks, and BadInput where manifest, metas and alignments do
    not fit together; BadInput where a file is not as its record says; GristmillError for drift.
    """
    if not ranks or not all(0 <= rank < world_size for rank in ranks):
        raise GristmillError(f"ranks {list(ranks)} of {world_size}: name some, counted from 0")
    refuse_drift(tokenized)
    manifest = tokenized / names.MANIFEST
    data = _contents(manifest)
    listed = shard_list(data, manifest, corpora, splits)
    wanted = Staged(
        job=job,
        source=str(tokenized.absolute()),
        alignment=None if alignment is None else str(alignment.absolute()),
        manifest_sha256=hashlib.sha256(data).hexdigest(),
        world_size=world_size,
        ranks=tuple(sorted(set(ranks))),
        corpora=tuple(corpora),
        splits=tuple(splits),
    )
    _refuse_another(tokenized, alignment, listed, wanted)
    target.mkdir(parents=True, exist_ok=True)
    with locked(target / published.LOCK, f"the staging of {job}", wait=True):
        before = _joined(published.read(target), wanted, target)
        copies = list(_copies(tokenized, alignment, listed, wanted, index))
        refuse_full(copies, target)
        entries = {each.path: _planned(each, target, before.entries) for each in copies}
        done = replace(before, entries={**before.entries, **entries})
        # It says what is ours before a file is, so that a kill leaves nothing that nobody removes.
        published.write(target, done)
        with progress.stage("stage", "bytes", sum(each.bytes for each in copies)) as under_way:
            for copy in copies:
                if _is_there(copy, target, entries[copy.path].own):
                    under_way.advance(copy.bytes)
                else:
                    _copy(copy, target / copy.path, under_way)
        _open(target / STAGED_SHARDS, alignment and target / STAGED_ALIGNMENT, wanted)
    return done


def unstage(target: Path) -> list[str]:
    """Remove what staging put into a job's folder, and nothing else.

    target: the job's folder.

    Returns the paths of files that were changed since; they stay, and so does `staged.json`, which
    lists only them then. Raises GristmillError where nothing is staged.
    """
    if (known := published.read(target)) is None:
        raise GristmillError(f"{target}: nothing is staged there")
    with locked(target / published.LOCK, f"the staging in {target}", wait=True):
        entries = known.entries
        changed = {p: e for p, e in sorted(entries.items()) if e.own and not _removed(target, e)}
        if changed:
            published.write(target, replace(known, entries=changed))
        else:
            (target / published.STAGED).unlink(missing_ok=True)
        (target / published.LOCK).unlink()
    folders = {folder for path in entries for folder in Path(path).parents}
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        inside = target / folder
        if inside.is_dir() and not inside.is_symlink() and not any(inside.iterdir()):
            inside.rmdir()
    return list(changed)


def _planned(copy: Copy, target: Path, known: Mapping[str, Entry]) -> Entry:
    """The entry of a file that is to be copied: ours, unless it is there and we did not put it."""
    before = known.get(copy.path)
    is_own = before.own if before else not os.path.lexists(target / copy.path)
    return Entry(copy.path, copy.bytes, copy.sha256, is_own)


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror}): build it, or copy it") from error


def _refuse_another(
    tokenized: Path, alignment: Path | None, listed: ShardList, wanted: Staged
) -> None:
    """Raise BadInput where manifest, shards, metas and alignments are of different builds."""
    partitions = listed.partitions()
    opened(lambda opening: [partition_folder(opening, tokenized, p) for p in partitions], "sizes")
    refuse_other_metas(tokenized, partitions, {listed.shards[n].path for n in _own(listed, wanted)})
    _open(tokenized, alignment, wanted)


def _open(shards: Path, alignment: Path | None, wanted: Staged) -> None:
    """Open shards and alignments as each rank will; raises as ShardReader."""
    for rank in wanted.ranks:
        ShardReader(
            shards,
            rank=rank,
            world_size=wanted.world_size,
            corpora=wanted.corpora,
            splits=wanted.splits,
            steps=alignment,
            allow_empty=True,
        )


def _own(listed: ShardList, wanted: Staged) -> list[int]:
    """Numbers of the shards of the ranks, ascending."""
    size = wanted.world_size
    return sorted(n for rank in wanted.ranks for n in range(rank, len(listed.shards), size))


def _joined(known: Staged | None, wanted: Staged, target: Path) -> Staged:
    """What is staged, with the ranks that are wanted. Raises GristmillError for another job."""
    if known is None:
        return wanted
    same = ("job", "source", "manifest_sha256", "world_size", "corpora", "splits")
    for name in same:
        if getattr(known, name) != getattr(wanted, name):
            raise GristmillError(
                f"{target}: something else is staged there: {name} is {getattr(known, name)!r},"
                f" not {getattr(wanted, name)!r}: run `gristmill unstage` first, or use another"
                " folder"
            )
    return replace(
        known,
        ranks=tuple(sorted({*known.ranks, *wanted.ranks})),
        alignment=wanted.alignment or known.alignment,
    )


def _copies(
    tokenized: Path, alignment: Path | None, listed: ShardList, wanted: Staged, index: bool
) -> Iterator[Copy]:
    """Yield the files to copy; the manifest comes last, so that it makes the shards readable."""
    numbers = _own(listed, wanted)
    partitions = listed.partitions() if index else listed.partitions(numbers)
    for partition in partitions:
        corpus, split = partition.split("__")
        folder = _Folder(tokenized, partition, STAGED_SHARDS)
        own = [listed.shards[n] for n in numbers if listed.shards[n].partition == partition]
        for shard in own:
            yield folder.copy(shard.path, shard)
            yield folder.copy(names.meta(shard.path))
        if index or alignment is not None:
            for each in files(tokenized / names.split_index(corpus, split)):
                yield folder.copy(each.relative_to(tokenized).as_posix())
        yield from folder.record()
        # Plain text has none, as was found when the shards were opened.
        if alignment is not None and (alignment / names.alignment(corpus, split)).exists():
            aligned = _Folder(alignment, partition, STAGED_ALIGNMENT)
            yield aligned.copy(names.alignment(corpus, split))
            yield from aligned.record()
    manifest = _Folder(tokenized, names.MANIFEST_RECORD, STAGED_SHARDS)
    yield from manifest.record()
    yield manifest.copy(names.MANIFEST, sha256=wanted.manifest_sha256)


class _Folder:
    """The files of one partition in a shared folder, with the hashes of its record, if any."""

    def __init__(self, folder: Path, partition: str, below: str) -> None:
        self._folder, self._below = folder, below
        self._record = record_in(folder, partition)
        self._sha256: dict[str, str] = {}
        if (folder / self._record).exists():
            record = read_record(folder / self._record)
            if record.digest != record.computed_digest():
                raise BadInput(folder / self._record, "was changed after it was written")
            self._sha256 = {output.path: output.sha256 for output in record.outputs}

    def copy(self, path: str, shard: Shard | None = None, sha256: str | None = None) -> Copy:
        source = self._folder / path
        sha256 = sha256 or self._sha256.get(path) or (shard.file_sha256 if shard else None)
        try:
            size = source.stat().st_size
            found = sha256 or sha256_file(source)
        except OSError as error:
            rule = f"cannot be read ({error.strerror}): build it again, or copy it again"
            raise BadInput(source, rule) from error
        return Copy(source, f"{self._below}/{path}", size, found, shard)

    def record(self) -> Iterator[Copy]:
        if self._sha256:
            yield self.copy(self._record)


def _removed(target: Path, entry: Entry) -> bool:
    """Remove a file, and what a kill left of its copy; whether it is gone. A changed one stays."""
    path = target / entry.path
    if not is_below(target, entry.path):
        return not os.path.lexists(path)
    published.temporary(path).unlink(missing_ok=True)
    if os.path.lexists(path):
        if not _is_as_listed(path, entry):
            return False
        path.unlink()
    return True
