"""Files of shards in one generation: two of them mapped, the others ready to be.

An artifact may have more files than a process may hold open: those are compared when the dataset
is opened, and opened again when they are read. Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.provenance import RECORD, SHARED_RECORDS
from gristmill.reading.folder import (
    DESCRIPTORS,
    HeldFile,
    OpenFolder,
    Opening,
    damage_named,
    made_from_another,
    opened,
)
from gristmill.reading.generation import FileIdentity, Generation, Verify
from gristmill.reasoning.format import foreign_pt, id_files, names
from gristmill.reasoning.format.shard_list import Shard

MOST_HELD: Final = 128
"""Shards that a reader holds open, so that it goes on with them after a rebuild."""
MOST_MAPPED: Final = 2
"""The current shard and the next, where one is read after the other."""

Tokens = npt.NDArray[Any]


def record_of(partition: str) -> str:
    """Path of the record of a partition in a folder that partitions share."""
    return f"{SHARED_RECORDS}/{partition}.json"


def record_in(root: Path, partition: str) -> str:
    """Path of the record of a partition: its own, or that of the dataset that holds all."""
    return RECORD if (root / RECORD).is_file() else record_of(partition)


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
    return foreign_pt.payload(path).shape if shard.dtype is None else _mapped(path, shard).shape


def _mapped(path: Path, shard: Shard) -> Tokens:
    """The ids of a shard. path: opens its file, under any name."""
    if shard.dtype is None:
        return foreign_pt.mapped(path)
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
