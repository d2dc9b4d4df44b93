"""A Harmony shard as a file: its name, how it is opened, and its violations.

Source: `docs/formats/synth.md#import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.synth.format import parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

REQUIRED: Final = ("messages_json", "synth_id")
"""Columns that a Harmony shard must have."""
OPTIONAL: Final = ("language", "exercise")
"""Columns that are read if a Harmony shard has them."""
_PREFIX: Final = "synth_harmony_shard_"
_BATCH_ROWS: Final = 1000


def shard_name(number: str) -> str:
    """Return the file name of a Harmony shard.

    number: "00" to "03".

    Source: `docs/formats/synth.md#harmony-parquet`.
    """
    return f"{_PREFIX}{number}.parquet"


def shards(folder: Path) -> dict[str, Path]:
    """Return the Harmony shards of a folder by number ("00"), sorted.

    folder: is not searched below.

    Source: `docs/formats/synth.md#harmony-parquet`.
    """
    paths = sorted(folder.glob(shard_name("*")))
    return {path.stem.removeprefix(_PREFIX): path for path in paths}


def open_shard(shard: Path) -> pq.ParquetFile:
    """Open a Harmony shard.

    shard: the Parquet file.

    Raises BadInput if it is not readable Parquet, lacks a required column, or has
    a column that is read more than once. Source: `docs/formats/synth.md#import`.
    """
    file = parquet.opened(shard, [*REQUIRED, *OPTIONAL])
    missing = [name for name in REQUIRED if name not in file.schema_arrow.names]
    if missing:
        raise BadInput(shard, f"has no column {', '.join(missing)}: is it a Harmony shard?")
    return file


def wrong_types(schema: pa.Schema) -> Iterator[str]:
    """Yield what is wrong with the types of the columns that are read.

    schema: of a Harmony shard.

    Source: `docs/formats/synth.md#import`.
    """
    import pyarrow as pa

    for field in schema:
        kind = field.type
        allowed = field.name not in (*REQUIRED, *OPTIONAL) or parquet.is_text(kind)
        if field.name == "synth_id":
            allowed |= pa.types.is_integer(kind)
        elif field.name in OPTIONAL:
            allowed |= pa.types.is_primitive(kind)
        if not allowed:
            yield f"{field.name} is {kind}, not a string"


def shard_violations(path: Path) -> Iterator[Violation]:
    """Yield the violations of one Harmony shard: columns, their types, nulls.

    path: the Parquet file.

    Source: `docs/formats/synth.md#harmony-laws`.
    """
    try:
        shard = open_shard(path)
    except GristmillError as error:
        yield Violation("readable", path.name, str(error))
        return
    with shard:
        for wrong in wrong_types(shard.schema_arrow):
            yield Violation("columns", path.name, wrong)
        # Statistics are kept for leaves, and a struct has several: names are not enough.
        leaves = {shard.schema.column(leaf).path: leaf for leaf in range(len(shard.schema.names))}
        for name in REQUIRED:
            for group in range(shard.num_row_groups if name in leaves else 0):
                statistics = shard.metadata.row_group(group).column(leaves[name]).statistics
                if statistics is not None and statistics.null_count:
                    yield Violation("no nulls", path.name, _null(path, shard, name, group))
                    break


def _null(path: Path, shard: pq.ParquetFile, name: str, group: int) -> str:
    """Return the row, from 1, of the first null of a row group."""
    row = sum(shard.metadata.row_group(earlier).num_rows for earlier in range(group))
    try:
        for batch in parquet.batches(path, shard, _BATCH_ROWS, [name], [group], row):
            if batch.column(name).null_count:
                return f"{name} of row {row + batch.column(name).is_null().index(True).as_py() + 1}"
            row += len(batch)
    except GristmillError as error:
        return str(error)
    return f"{name} in row group {group}, as its statistics say"
