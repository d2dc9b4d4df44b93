"""Staging: shards of a node's ranks on a local disk, verified; and removing them again.

`staged.json` belongs to `format/staged.py`. Source: `docs/formats/reasoning.md#staging`.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_file
from gristmill.provenance import read_record
from gristmill.publish.locks import locked
from gristmill.reading.opening import opened
from gristmill.reasoning.format import names, staged
from gristmill.reasoning.format.shard_list import Shard, ShardList, shard_list
from gristmill.reasoning.format.staged import Entry, Journal, Staged
from gristmill.reasoning.read.shard_files import partition_folder, record_of
from gristmill.reasoning.read.shard_reader import ShardReader
from gristmill.reasoning.read.staged_copy import Copy, copy_all, is_below
from gristmill.reasoning.read.supervised import refuse_drift
from gristmill.reasoning.read.verify import refuse_other_metas
from gristmill.run.progress import SILENT, Progress


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

    tokenized: the folder of all shards, or one that the seed's tools made.
    target: the job's folder on the local disk; the shards go to its folder `shards`.
    ranks: those of this node. world_size: of the whole job.
    job: its name.
    corpora, splits: as for ShardReader; default all.
    index: whether to copy `index.jsonl` of each split, which `select` reads; default False.
    alignment: the folder of the alignments, to copy them and the index; default None.
    progress: gets the bytes done.

    A file that is there is used again if its hash is right. What a killed staging left is
    continued. Ranks that the job has there already stay.

    Returns what is staged there now. Raises DiskFull, before anything is copied, where there is
    not enough room; BadInput where manifest, metas and alignments do not fit together, before
    anything is copied, and where a file is not that of its record, its meta or the manifest;
    GristmillError where the newest report has drifted, or the folder holds something else.
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
    with locked(target / staged.LOCK, f"the staging of {job}", wait=True):
        before = _joined(staged.read(target), wanted, target)
        copies = list(_copies(tokenized, alignment, listed, wanted, index))
        done = replace(before, entries=copy_all(copies, target, before.entries, progress))
        _open(target / staged.SHARDS, alignment and target / staged.ALIGNMENT, wanted)
        staged.write(target, done)
        Journal(target).close()
    return done


def unstage(target: Path) -> list[str]:
    """Remove what staging put into a job's folder, and nothing else.

    target: the job's folder.

    Returns the paths of files that were changed since; they stay, and so does `staged.json`, which
    lists only them then. Raises GristmillError where nothing is staged.
    """
    if not (target / staged.STAGED).exists() and not (target / staged.JOURNAL).exists():
        raise GristmillError(f"{target}: nothing is staged there")
    with locked(target / staged.LOCK, f"the staging in {target}", wait=True):
        known = staged.read(target)
        begun, ended = Journal(target).read()
        entries = (dict(known.entries) if known else {}) | ended
        for path in begun:
            if is_below(target, path):
                staged.temporary(target / path).unlink(missing_ok=True)
        changed = {p: e for p, e in sorted(entries.items()) if e.own and not _removed(target, e)}
        Journal(target).close()
        if changed and known is not None:
            staged.write(target, replace(known, entries=changed))
        else:
            (target / staged.STAGED).unlink(missing_ok=True)
        (target / staged.LOCK).unlink()
    folders = {folder for path in {*begun, *entries} for folder in Path(path).parents}
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        _remove_empty(target / folder)
    return list(changed)


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
        folder = _Folder(tokenized, partition, staged.SHARDS)
        own = [listed.shards[n] for n in numbers if listed.shards[n].partition == partition]
        for shard in own:
            yield folder.copy(shard.path, shard)
            yield folder.copy(names.meta(shard.path))
        if index or alignment is not None:
            yield folder.copy(names.split_index(corpus, split))
        yield from folder.record()
        if alignment is not None:
            aligned = _Folder(alignment, partition, staged.ALIGNMENT)
            yield aligned.copy(names.alignment(corpus, split))
            yield from aligned.record()
    manifest = _Folder(tokenized, names.MANIFEST_RECORD, staged.SHARDS)
    yield from manifest.record()
    yield replace(manifest.copy(names.MANIFEST), sha256=wanted.manifest_sha256)


class _Folder:
    """The files of one partition in a shared folder, with the hashes of its record, if any.

    below: folder of the job that they go to.
    """

    def __init__(self, folder: Path, partition: str, below: str) -> None:
        self._folder, self._below = folder, below
        self._record = record_of(partition)
        self._sha256: dict[str, str] = {}
        if (folder / self._record).exists():
            record = read_record(folder / self._record)
            if record.digest != record.computed_digest():
                raise BadInput(folder / self._record, "was changed after it was written")
            self._sha256 = {output.path: output.sha256 for output in record.outputs}

    def copy(self, path: str, shard: Shard | None = None) -> Copy:
        """The copy of one file."""
        sha256 = self._sha256.get(path) or (shard.file_sha256 if shard else None)
        return Copy(self._folder / path, f"{self._below}/{path}", sha256, shard)

    def record(self) -> Iterator[Copy]:
        """Yield the copy of the record, if there is one."""
        if self._sha256:
            yield Copy(self._folder / self._record, f"{self._below}/{self._record}")


def _removed(target: Path, entry: Entry) -> bool:
    """Remove a file; whether it is gone. One that was changed stays."""
    path = target / entry.path
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    if not is_below(target, entry.path) or not stat.S_ISREG(found.st_mode):
        return False
    if found.st_size != entry.bytes or sha256_file(path) != entry.sha256:
        return False
    path.unlink()
    return True


def _remove_empty(folder: Path) -> None:
    """Remove a folder with nothing in it."""
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
