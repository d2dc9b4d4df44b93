"""Steps and values as other programs read them: the fields of a step in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from gristmill import provenance
from gristmill.contract import BadInput
from gristmill.exports.table import Batches, Split, list_of, required
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files

_RETURNS: Final = ("reward", "return_raw", "return_scaled")
_FIELDS: Final = STEP_ROW_DTYPE.names or ()
_TYPES: Final = {
    name: list_of(pa.float32(), 4)
    if name == "branch_evs"
    else pa.from_numpy_dtype(STEP_ROW_DTYPE[name])
    for name in _FIELDS
}
_ROWS: Final = 1 << 19
_CACHED: Final = 1 << 13
"""Rows that stay in the cache of a core while their fields are taken one after another."""


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the rows of a pack or pool; of a value sidecar, those of its pack with the values."""
    if asset == "macroxue/training_view":
        return
    schema = required(_TYPES | dict.fromkeys(_RETURNS if _is_values(asset) else (), pa.float32()))

    def batches() -> Batches:
        steps = map(open_steps, step_files(_pack(folder) if _is_values(asset) else folder))
        values = map(open_values, value_files(folder)) if _is_values(asset) else None
        for rows in steps:
            beside = None if values is None else next(values)
            if beside is not None and len(beside) != len(rows):
                raise BadInput(folder, "has other rows than its pack: build it again")
            for first in range(0, len(rows), _ROWS):
                part = slice(first, first + _ROWS)
                yield _batch(schema, [rows[part]] + ([] if beside is None else [beside[part]]))

    yield Split("train", lambda: schema, batches)


def _is_values(asset: str) -> bool:
    return asset == "macroxue/values"


def _pack(folder: Path) -> Path:
    """The pack of a value sidecar, beside it in the data root."""
    record = provenance.read_record(folder / provenance.RECORD)
    root = folder.absolute().parents[len(Path(record.artifact).parts) - 1]
    pack = root / str(record.inputs[0].path)
    if not pack.is_dir():
        raise BadInput(pack, "is not here: the values are rows of this pack")
    return pack


def _batch(schema: pa.Schema, sources: Sequence[Rows]) -> pa.RecordBatch:
    fields: dict[str, Rows] = {}
    for source in reversed(sources):
        fields |= {name: source[name] for name in source.dtype.names or ()}
    values = {item.name: np.empty_like(fields[item.name], order="C") for item in schema}
    for first in range(0, len(sources[0]), _CACHED):
        part = slice(first, first + _CACHED)
        for name, column in values.items():
            column[part] = fields[name][part]
    columns = []
    for item in schema:
        column = pa.array(values[item.name].reshape(-1))
        is_list = values[item.name].ndim > 1
        columns.append(
            pa.FixedSizeListArray.from_arrays(column, type=item.type) if is_list else column
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)
