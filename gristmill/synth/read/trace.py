"""Traces a document of a Megatron dataset back to its Harmony shard, row and synth_id."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.synth.format.trace import opened, path

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a document comes from.

    input: file name of the Harmony shard.
    row: row in that shard, from 1.
    synth_id: of that row.
    language, exercise: of that row, None if it has none.
    offsets: token positions in the document where its messages begin, then that
        of the EOD; M + 1 numbers for M messages.
    """

    input: str
    row: int
    synth_id: str
    language: str | None
    exercise: str | None
    offsets: list[int]

    def message_bounds(self) -> list[tuple[int, int]]:
        """Return begin and end of each message, in tokens; the EOD is in no message."""
        return list(pairwise(self.offsets))


def trace(folder: Path, shard: str, split: str, document: int) -> Trace:
    """Trace one document of a Megatron dataset back to its row.

    folder: root of the dataset, which holds `trace/`.
    shard: number of the shard in two digits, as "00".
    split: "train" or "valid".
    document: number of the document in that split of the shard, from 0.

    Raises BadInput if the trace file is missing or damaged, or has no such
    document.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    file = folder / path(shard)
    if not file.is_file():
        raise BadInput(file, f"shard {shard} has no trace file: build the shard again")
    with opened(file) as parquet:
        try:
            group = _group_of(parquet, split, document) if document >= 0 else 0
            if parquet.num_row_groups:
                keys = parquet.read_row_group(group, columns=["split", "document"])
                matches = pc.and_(
                    pc.equal(keys["split"], split), pc.equal(keys["document"], document)
                )
                if pc.any(matches).as_py():
                    table = parquet.read_row_group(group).filter(matches)
                    row: dict[str, Any] = table.drop_columns(["split", "document"]).to_pylist()[0]
                    return Trace(**row)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(file, f"is damaged ({error}): build the shard again") from error
    raise BadInput(file, f"no document {document} in {split} of shard {shard}")


def _group_of(parquet: pq.ParquetFile, split: str, document: int) -> int:
    """The row group that has a document if there is one: the last that begins at or before it."""
    sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    firsts = [*accumulate(sizes, initial=0)]
    low, high = 0, len(sizes)
    while high - low > 1:
        middle = (low + high) // 2
        if _before(parquet, middle, firsts[middle], split) <= document:
            low = middle
        else:
            high = middle
    return low


def _before(parquet: pq.ParquetFile, group: int, first: int, split: str) -> int:
    """How many documents of a split are before a row group, whose first row is `first`."""
    batches = parquet.iter_batches(1, row_groups=[group], columns=["split", "document"])
    (row,) = next(batches).to_pylist()
    # The rows before are documents of one of both splits.
    return int(row["document"] if row["split"] == split else first - row["document"])
