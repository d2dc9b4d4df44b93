"""Files of shards in one generation, two of them mapped, the others ready to be; their checksums.

An artifact may have more files than a process may hold open: those are compared when the dataset
is opened, and opened again when they are read. Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import json
import mmap
import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation, os_reason
from gristmill.corpora.split_file import is_there
from gristmill.hashing import sha256_file
from gristmill.provenance import RECORD, SHARED_RECORDS, record_path
from gristmill.reading.folder import (
    DESCRIPTORS,
    FileIdentity,
    Generation,
    HeldFile,
    OpenFolder,
    Opening,
    Verify,
    damage_named,
    made_from_another,
    opened,
)
from gristmill.reasoning.format import id_files, names, pt_file
from gristmill.reasoning.format.shards import CONTRACT, Shard
from gristmill.run.progress import SILENT, Progress, Stage

MOST_HELD: Final = 128
"""Shards that a reader holds open, so that it continues with them after a rebuild."""
MOST_MAPPED: Final = 2
"""The current shard and the next, where one is read after the other."""

Tokens = npt.NDArray[Any]


def record_in(root: Path, partition: str) -> str:
    """Path of the record of a partition: its own, or that of the dataset that holds all."""
    return RECORD if (root / RECORD).is_file() else f"{SHARED_RECORDS}/{partition}.json"


def partition_folder(opening: Opening, root: Path, partition: str) -> OpenFolder:
    """The folder of all shards as that of one partition.

    Raises BadInput where the manifest was made from another version of the partition.
    """
    folder = opening.folder(root, record_in(root, partition))
    manifest = opening.folder(root, record_in(root, names.MANIFEST_RECORD))
    if made_from_another(manifest, folder):
        raise BadInput(
            root / names.MANIFEST,
            f"was built from another version of {partition}: build reasoning/manifest again",
        )
    return folder


class ShardFiles:
    """The files of the shards that a rank reads.

    Raises BadInput where a file is missing, is no shard, or is not that of its record.
    """

    def __init__(
        self, opening: Opening, root: Path, shards: tuple[Shard, ...], numbers: Iterable[int]
    ) -> None:
        self._root, self._shards = root, shards
        self._held: dict[int, HeldFile] = {}
        self._level = opening.level
        later: dict[str, OpenFolder] = {}
        self._mapped: OrderedDict[int, Tokens] = OrderedDict()
        for number in numbers:
            shard = shards[number]
            folder = partition_folder(opening, root, shard.partition)
            if opening.first:
                _compare(_shape(folder.file(shard.path), shard), shard, root)
            if len(self._held) < MOST_HELD:
                self._held[number] = folder.keep(shard.path)
            else:
                folder.check(shard.path)
                later[shard.partition] = folder
        self._later = {partition: folder.generation() for partition, folder in later.items()}

    def tokens(self, number: int, most: int = MOST_MAPPED) -> Tokens:
        """The sequences of a shard [sequences, seq_len], mapped.

        most: shards that stay mapped, default 2.

        Raises BadInput where the file is damaged, StaleDataset where a file that is not held open
        is of another version now.
        """
        if number not in self._mapped:
            self._mapped[number] = self._map(number)
            while len(self._mapped) > most:
                self._mapped.popitem(last=False)
        self._mapped.move_to_end(number)
        return self._mapped[number]

    def prefetch(self, number: int, current: int) -> None:
        """Map a shard before it is needed and have the kernel read it; `current` stays mapped."""
        if number in self._mapped or number == current:
            return
        memory: Any = self.tokens(number)
        while not isinstance(memory, mmap.mmap):
            memory = memory.base
        memory.madvise(mmap.MADV_WILLNEED)
        self.tokens(current)

    @property
    def mapped(self) -> list[int]:
        """The shards that are mapped now."""
        return list(self._mapped)

    def _map(self, number: int) -> Tokens:
        shard = self._shards[number]
        if number in self._held:
            with self._held[number].reading() as path:
                tokens = _mapped(path, shard)
        else:
            known = self._later[shard.partition]
            record = record_in(self._root, shard.partition)
            with reopened(known, record, shard.path, self._level) as path:
                tokens = _mapped(path, shard)
        _compare(tokens.shape, shard, self._root)
        return tokens.view(np.ndarray)  # slices of a memmap are slower


def _shape(path: Path, shard: Shard) -> tuple[int, ...]:
    return pt_file.payload(path).shape if shard.dtype is None else _mapped(path, shard).shape


def _mapped(path: Path, shard: Shard) -> Tokens:
    """The ids of a shard. path: opens its file, under any name."""
    if shard.dtype is None:
        return pt_file.mapped(path)
    shape = (shard.sequences, shard.seq_len)
    return id_files.mapped(path, shape, shard.dtype, Path(shard.path).suffix)


def _compare(shape: tuple[int, ...], shard: Shard, root: Path) -> None:
    if shape != (shard.sequences, shard.seq_len):
        raise BadInput(
            root / shard.path,
            f"has {shape[0]} sequences of {shape[1]} tokens, the manifest says {shard.sequences}"
            f" of {shard.seq_len}: build reasoning/manifest again, or copy both again",
        )


@contextmanager
def reopened(known: Generation, record: str, name: str, level: Verify) -> Iterator[Path]:
    """Yield a path that opens a file, in this process and while the body runs.

    After a rebuild `level` says how much of the other file is compared with the record. Raises
    StaleDataset where there is another version of the artifact now, or none; BadInput as
    `OpenFolder.file`.
    """
    path = known.folder / name
    descriptor = _same(path, known.files[name])
    if descriptor is None:
        key = (known.folder, record)
        held, _ = opened(lambda opening: opening.folder(*key).keep(name), level, {key: known})
        with held.reading() as found:
            yield found
        return
    try:
        with damage_named(lambda: path, lambda: {descriptor: path}):
            yield DESCRIPTORS / str(descriptor)
    finally:
        os.close(descriptor)


def _same(path: Path, identity: FileIdentity) -> int | None:
    """The open file at a path, if it is still the one that was compared."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if FileIdentity.of(os.fstat(descriptor)) == identity:
        return descriptor
    os.close(descriptor)
    return None


_RAW: Final = "raw"
"""Folder of the normalised files, two levels above the shards and down again."""


def verify_shards(root: Path, *, progress: Progress = SILENT) -> list[Violation]:
    """Hash every shard, and compare hashes, shapes and paths with metas and manifest.

    root: the folder of all shards. Where `../../raw/manifest.json` is there, the normalised files
        are compared with the hashes in it.
    progress: gets the stage "verify", in files.

    Returns all differences: a shard that is missing or has other bytes, a shard without a meta
    file, a meta file that the manifest lacks, an entry of the manifest without files, and
    normalised files that differ. Files are read 1 MiB at a time, in a thread for each core.
    """
    metas, found = metas_in(root, [root])
    found += _orphans(root, [root], metas)
    found += _against_manifest(root, metas)
    present = [path for path in metas if (root / path).is_file()]
    normalized = list(_normalized(root.parent.parent / _RAW, found))
    total = len(present) + len(normalized)
    with (
        progress.stage("verify", "files", total) as stage,
        ThreadPoolExecutor(os.cpu_count() or 1) as threads,
    ):
        for some in threads.map(lambda path: shard_violations(root, path, metas[path]), present):
            found += some
            stage.advance(1)
        for some in threads.map(lambda each: _raw_file(each[0], each[1], stage), normalized):
            found += some
    return found


def refuse_other_metas(root: Path, partitions: Sequence[str], needed: Collection[str]) -> None:
    """Raise BadInput where metas, manifest and the names of shards differ; no shard is read.

    needed: the shards of the manifest that must be there, POSIX below `root`.
    """
    folders = [root / partition.replace("__", "/") for partition in partitions]
    metas, found = metas_in(root, folders)
    found += _orphans(root, folders, metas)
    found += _against_manifest(root, metas, needed)
    if found:
        raise BadInput(
            root / found[0].where,
            f"{found[0].found} (the first of {len(found)} differences between manifest, metas and"
            " shards): build shards and manifest again, or copy them again; nothing was staged",
        )


def metas_in(
    root: Path, folders: Iterable[Path]
) -> tuple[dict[str, dict[str, Any]], list[Violation]]:
    """The metas below some folders by the paths of their shards; and those that are none."""
    metas, found = {}, []
    for path in sorted(path for each in folders for path in each.rglob("shard_*.meta.json")):
        where = path.relative_to(root).as_posix()
        try:
            meta = _object(path)
            suffix = Path(str(meta["path"])).suffix
            suffix = suffix if suffix in id_files.SUFFIXES else ".pt"
            metas[where.removesuffix(".meta.json") + suffix] = meta
        except BadInput as error:
            found.append(Violation("meta", where, error.rule))
    return metas, found


def _object(path: Path) -> dict[str, Any]:
    """A meta file. Raises BadInput where it lacks one of the seed's keys."""
    try:
        meta = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(path, f"cannot be read: {os_reason(error)}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no JSON: {error}") from error
    if not isinstance(meta, dict) or tuple(meta)[: len(CONTRACT)] != CONTRACT:
        raise BadInput(path, f"its first keys must be {', '.join(CONTRACT)}")
    return meta


def _orphans(root: Path, folders: Iterable[Path], metas: Mapping[str, Any]) -> Iterator[Violation]:
    yield from without_meta(root, folders, metas)
    for where, meta in metas.items():
        yield from misplaced(root, where, meta)


def without_meta(
    root: Path, folders: Iterable[Path], metas: Mapping[str, Any]
) -> Iterator[Violation]:
    """Yield the shards below some folders that are not of one of the metas."""
    known = set(map(names.meta, metas))
    for path in sorted(path for each in folders for path in each.rglob("shard_*")):
        where = path.relative_to(root).as_posix()
        if path.suffix in (".pt", *id_files.SUFFIXES) and names.meta(where) not in known:
            known.add(names.meta(where))  # its twin of another form is the same shard
            yield Violation("orphan", where, "has no meta file that can be read")


def misplaced(root: Path, where: str, meta: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what a meta says of another shard, and that its shard is missing."""
    name = f"shard_{str(meta['shard_index']).zfill(5)}{Path(where).suffix}"
    for said in (meta["path"], f"{meta['dataset']}/{meta['split']}/{name}"):
        if said != where:
            yield Violation("path", names.meta(where), f"is that of {said!r}")
            break
    if not (root / where).is_file():
        yield Violation("orphan", names.meta(where), "its shard is missing")


def _against_manifest(
    root: Path, metas: Mapping[str, Any], needed: Collection[str] | None = None
) -> Iterator[Violation]:
    """The manifest lists each meta as it is, and nothing else."""
    try:
        entries = json.loads((root / names.MANIFEST).read_bytes())
        listed = {str(entry["path"]): entry for entry in entries}
    except FileNotFoundError:
        yield Violation("manifest", names.MANIFEST, "is missing")
        return
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        yield Violation("manifest", names.MANIFEST, f"is no list of shards: {error!r}")
        return
    if len(listed) != len(entries):
        yield Violation("manifest", names.MANIFEST, "lists a shard twice")
    for where, meta in metas.items():
        if where not in listed:
            yield Violation("manifest", names.MANIFEST, f"does not list {where}")
        elif listed[where] != meta:
            yield Violation("manifest", names.MANIFEST, f"differs from {names.meta(where)}")
    for where in listed if needed is None else sorted(needed):
        if where not in metas:
            yield Violation("manifest", names.MANIFEST, f"lists {where!r}, which is not there")


def shard_violations(root: Path, where: str, meta: Mapping[str, Any]) -> list[Violation]:
    """What differs between a shard that is there and its meta."""
    found: list[Violation] = []
    if not (root / where).is_file():
        return found
    try:
        shape = id_files.of_path(root / where).shape
        tensor_sha256, file_sha256 = id_files.hashes(root / where)
    except (BadInput, OSError) as error:
        return [Violation("shard", where, str(error))]
    expected = (meta["num_sequences"], meta["seq_len"])
    if shape != expected or meta["token_count"] != shape[0] * shape[1]:
        found.append(Violation("shape", where, f"is {shape}, its meta file has {expected}"))
    for key, sha256, what in (
        ("sha256", tensor_sha256, "its tensor"),
        ("file_sha256", file_sha256, "the file"),
    ):
        if (said := meta.get(key, sha256)) != sha256:
            found.append(Violation(key, where, f"{what} has {sha256}, its meta file {said}"))
    return found


def _normalized(folder: Path, found: list[Violation]) -> Iterator[tuple[Path, str]]:
    """Yield the normalised files that the raw manifest lists, with the hash of each."""
    path = folder / names.MANIFEST
    if not path.is_file():
        return
    try:
        for name, corpus in json.loads(path.read_bytes()).items():
            for split, file in corpus.get("files", {}).items():
                record = record_path(folder, f"{name}__{split}", shared=True)
                is_there_or_lost = is_there(folder / str(file["path"])) or record.exists()
                # A split that was taken away on purpose, with its record, is still listed.
                if is_there_or_lost or not record.parent.is_dir():
                    for each in file.get("parts", [file]):
                        yield folder / str(each["path"]), str(each["sha256"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        found.append(Violation("raw manifest", str(path), f"cannot be read: {error!r}"))


def _raw_file(path: Path, sha256: str, stage: Stage) -> list[Violation]:
    stage.advance(1)
    try:
        digest = sha256_file(path)
    except OSError as error:
        return [Violation("normalised file", str(path), f"cannot be read: {os_reason(error)}")]
    if digest == sha256:
        return []
    return [Violation("normalised file", str(path), f"has {digest}, the raw manifest {sha256}")]
