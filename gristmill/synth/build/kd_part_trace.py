"""The trace rows of a batch: from each document to its row and its messages.

Source: `docs/formats/synth.md#trace`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gristmill.synth.build.harmony_shard import OPTIONAL
from gristmill.synth.build.kd_part_file import SPLITS
from gristmill.synth.format import trace
from gristmill.synth.render.documents import Documents

if TYPE_CHECKING:
    import pyarrow as pa


def trace_rows(
    batch: pa.RecordBatch,
    shard: str,
    first_row: int,
    documents: Mapping[str, Documents],
    places: Mapping[str, Sequence[int]],
) -> pa.RecordBatch:
    """Return the trace rows of a batch, in the order of the input rows.

    batch: rows of a Harmony shard.
    shard: file name of the Harmony shard.
    first_row: number of rows before the batch.
    documents: of each split.
    places: of each split the rows of its documents, counted in the batch from 0.

    Documents are counted from 0 in this batch.
    Source: `docs/formats/synth.md#part-files`.
    """
    import pyarrow as pa

    kept = np.array([place for split in SPLITS for place in places[split]], dtype=np.int64)
    taken = batch.take(pa.array(kept))
    numbers = np.concatenate([np.arange(len(places[split])) for split in SPLITS])
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([split for split in SPLITS for _ in places[split]], pa.string()),
            pa.array(numbers),
            pa.repeat(pa.scalar(shard), len(kept)),
            pa.array(first_row + kept + 1),
            taken.column("synth_id").cast(pa.string()),
            *(
                taken.column(name).cast(pa.string())
                if name in taken.schema.names
                else pa.nulls(len(kept), pa.string())
                for name in OPTIONAL
            ),
            _offsets(documents),
        ],
        schema=trace.schema(),
    )
    return rows.take(pa.array(np.argsort(kept)))


def _offsets(documents: Mapping[str, Documents]) -> pa.ListArray:
    """Return where the messages and the EOD of each document begin."""
    import pyarrow as pa

    runs = np.concatenate([documents[split].runs for split in SPLITS])
    counts = np.concatenate([documents[split].run_counts for split in SPLITS])
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    # The tokens before a run, less the tokens before its document.
    before = np.cumsum(runs, dtype=np.int64) - runs
    offsets = (before - np.repeat(before[bounds[:-1]], counts)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), pa.array(offsets))
