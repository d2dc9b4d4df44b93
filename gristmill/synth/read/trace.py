"""Traces a document of a Megatron dataset back to its Harmony shard, row and synth_id.

See also `format/trace.py`: the bytes of a trace file.
Source: `docs/formats/synth.md#trace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.synth.format.trace import opened, path


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a document comes from.

    input: file name of the Harmony shard.
    row: row in that shard, from 1.
    synth_id: of that row.
    language, exercise: of that row, None if it has none.
    offsets: token positions in the document where its messages begin, then that
        of the EOD; M + 1 numbers for M messages.

    Source: `docs/formats/synth.md#trace`.
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
    document. Source: `docs/formats/synth.md#trace`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    file = folder / path(shard)
    if not file.is_file():
        raise BadInput(file, f"shard {shard} has no trace file: build the shard again")
    with opened(file) as parquet:
        try:
            for group in range(parquet.num_row_groups):
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
