"""Examples of puzzle datasets as other programs read them: tokens, and the names of puzzles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gristmill.contract import BadInput
from gristmill.exports.table import Batches, Split, list_of, required
from gristmill.puzzles.format.names import array
from gristmill.puzzles.read.rows import Dataset

_BYTES: Final = 16 << 20


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the sets of both splits. asset: its key. folder: of the dataset."""
    data = Dataset(folder)
    found = list(data.sets())
    several = len({name for _, name in found}) > 1
    for split, name in found:
        yield _split(data, split, name, name if several else "")


def _split(data: Dataset, split: str, name: str, table: str) -> Split:
    facts = data.metadata(split)
    kind = pa.uint8() if facts.vocab_size <= 256 else pa.int32()
    tokens = list_of(kind, facts.seq_len)
    number = pa.int32()
    schema = required(
        {
            "inputs": tokens,
            "labels": tokens,
            "puzzle_identifier": number,
            "puzzle_name": pa.string(),
            "puzzle_index": number,
            "group_index": number,
        }
    )

    def batches() -> Batches:
        arrays, names = data.arrays(split, name), pa.array(data.identifiers)
        for rows in data.rows(split, name, max(1, _BYTES // (2 * facts.seq_len))):
            at = np.arange(rows.first, rows.first + len(rows.inputs))
            puzzle = np.searchsorted(arrays.puzzle_indices, at, side="right") - 1
            group = np.searchsorted(arrays.group_indices, puzzle, side="right") - 1
            identifier = np.asarray(arrays.puzzle_identifiers)[puzzle].astype(np.int32)
            if len(at) and not 0 <= identifier.min() <= identifier.max() < len(names):
                path = data.folder / array(split, name, "puzzle_identifiers")
                raise BadInput(path, "has an identifier without a name: build it again")
            columns = [
                *(_listed(each, tokens) for each in (rows.inputs, rows.labels)),
                pa.array(identifier),
                names.take(pa.array(identifier)),
                pa.array(puzzle.astype(np.int32)),
                pa.array(group.astype(np.int32)),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return Split(split, lambda: schema, batches, table)


def _listed(rows: Any, kind: pa.DataType) -> pa.Array:
    dtype = kind.value_type.to_pandas_dtype()
    flat = np.ascontiguousarray(rows).reshape(-1).astype(dtype, copy=False)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind)
