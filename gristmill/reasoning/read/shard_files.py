"""Files of shards in one generation: two of them mapped, the others ready to be.

`shard_list.py` knows which there are. Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.provenance import SHARED_RECORDS
from gristmill.reading.folder import HeldFile, OpenFolder, made_from_another
from gristmill.reading.opening import Opening
from gristmill.reading.reopened import reopened
from gristmill.reasoning.format import foreign_pt, names
from gristmill.reasoning.format.shard_list import Shard

MOST_HELD: Final = 128
"""Shards that a reader holds open, so that it goes on with them after a rebuild."""
MOST_MAPPED: Final = 2
"""The current shard and the next."""

Tokens = npt.NDArray[np.int32]


def record_of(partition: str) -> str:
    """Path of the record of a partition in a folder that partitions share."""
    return f"{SHARED_RECORDS}/{partition}.json"


def partition_folder(opening: Opening, root: Path, partition: str) -> OpenFolder:
    """The folder of all shards as that of one partition.

    Raises BadInput where the manifest was made from another version of the partition.
    """
    folder = opening.folder(root, record_of(partition))
    manifest = opening.folder(root, record_of(names.MANIFEST_RECORD))
    if made_from_another(manifest, folder):
        raise BadInput(
            root / names.MANIFEST,
            f"was built from another version of {partition}: build reasoning/manifest again",
        )
    return folder


class ShardFiles:
    """The files of the shards that a rank reads.

    opening: opens folders.
    root: the folder of all shards.
    shards: in the order of the manifest. numbers: of those to open.

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
                _compare(foreign_pt.payload(folder.file(shard.path)).shape, shard, root)
            if len(self._held) < MOST_HELD:
                self._held[number] = folder.keep(shard.path)
            else:
                folder.check(shard.path)
                later[shard.partition] = folder
        self._later = {partition: folder.generation() for partition, folder in later.items()}

    def tokens(self, number: int) -> Tokens:
        """The sequences of a shard, int32 [sequences, seq_len], mapped.

        Raises BadInput where the file is damaged, StaleDataset where a file that is not held open
        is of another version now.
        """
        if number not in self._mapped:
            self._mapped[number] = self._map(number)
            while len(self._mapped) > MOST_MAPPED:
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
                tokens = foreign_pt.mapped(path)
        else:
            known, record = self._later[shard.partition], record_of(shard.partition)
            with reopened(known, record, shard.path, self._level) as path:
                tokens = foreign_pt.mapped(path)
        _compare(tokens.shape, shard, self._root)
        return tokens.view(np.ndarray)  # slices of a memmap are slower


def _compare(shape: tuple[int, ...], shard: Shard, root: Path) -> None:
    if shape != (shard.sequences, shard.seq_len):
        raise BadInput(
            root / shard.path,
            f"has {shape[0]} sequences of {shape[1]} tokens, the manifest says {shard.sequences}"
            f" of {shard.seq_len}: build reasoning/manifest again, or copy both again",
        )
