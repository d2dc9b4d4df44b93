"""The sequences of token shards as a source of the loader.

Source: `docs/formats/loading.md#sources`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from gristmill.contract import Trace
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, Identity, short
from gristmill.reasoning.format.shard_list import Shard
from gristmill.reasoning.read.origins import sequence_origins

_ASSET: Final = "reasoning/manifest"


class Sequences(Protocol):
    """What this module needs of a ShardReader of one rank."""

    root: Path

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Those chosen, in the order of the manifest."""

    @property
    def seq_len(self) -> int:
        """Tokens of a sequence."""

    def rows_by_number(self, numbers: Numbers) -> Columns:
        """The columns of sequences, in the order asked."""


class SequenceSource:
    """Sequences by number over the chosen shards in the order of the manifest.

    data: of one rank. sizes: int64 [S], chosen sequences of each shard.
    chosen: the digest of the chosen entries of the manifest, and the selection of sequences. The
        digest has that of each file, so that shards of the seed's tools have an identity, too.
    """

    def __init__(self, data: Sequences, sizes: Numbers, chosen: Mapping[str, Any]) -> None:
        self._data = data
        version = f"manifest {chosen['manifest_sha256']}"
        own = {"select": chosen["select"]}
        self.identity = Identity(_ASSET, (version,), None, own, short(data.root))
        self.cuts: Numbers = np.append(0, np.cumsum(sizes)).astype(np.int64)

    def read(self, numbers: Numbers) -> Columns:
        """`input_ids`, `shard`, `row`, and with supervision its columns."""
        return self._data.rows_by_number(numbers)

    def lengths(self) -> Numbers:
        """Tokens of each sequence, all alike."""
        return np.full(int(self.cuts[-1]), self._data.seq_len, np.int64)

    def origin(self, number: int) -> Iterator[Trace]:
        """Each example of a sequence, its record and its raw row."""
        row = {
            name: int(column[0])
            for name, column in self.read(np.array([number])).items()
            if name in ("shard", "row")
        }
        return sequence_origins(self._data.root, self._data.shards[row["shard"]], row["row"])
