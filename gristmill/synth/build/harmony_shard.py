"""A Harmony shard as a file: its name, how it is opened, and its violations.

Source: `docs/formats/synth.md#import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.synth.format import parquet
from gristmill.synth.format.untrusted_parquet import UntrustedParquet
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    import pyarrow as pa

REQUIRED: Final = ("messages_json", "synth_id")
"""Columns that a Harmony shard must have."""
OPTIONAL: Final = ("language", "exercise")
"""Columns that are read if a Harmony shard has them."""
_PREFIX: Final = "synth_harmony_shard_"
_BATCH_ROWS: Final = 1000
_SHOWN: Final = 300


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


def open_shard(shard: Path, links: LinkRule | None = None) -> UntrustedParquet:
    """Open a Harmony shard.

    shard: the Parquet file.
    links: as for `UntrustedParquet`, default None.

    Raises BadInput if it is not readable Parquet, lacks a required column, or has
    a column that is read more than once. Source: `docs/formats/synth.md#import`.
    """
    file = UntrustedParquet(shard, [*REQUIRED, *OPTIONAL], REQUIRED, links)
    if missing := [name for name in REQUIRED if name not in file.names]:
        file.close()
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


def no_text_form(path: Path, error: Exception, before: int) -> BadInput:
    """Return the error for a value that cannot be cast to a string.

    path: the shard.
    error: of the cast, as for a time in a time zone that is unknown.
    before: number of rows before the rows that were cast.
    """
    rule = f"holds a value that has no text form in this row or one after it ({error})"[:_SHOWN]
    return BadInput(path, f"{rule}: correct it, or leave out its column", before + 1)


def shard_violations(path: Path, links: LinkRule | None = None) -> Iterator[Violation]:
    """Yield the violations of one Harmony shard: columns, their types, nulls.

    path: the Parquet file.
    links: as for `UntrustedParquet`, default None.

    Source: `docs/formats/synth.md#harmony-laws`.
    """
    try:
        shard = open_shard(path, links)
    except GristmillError as error:
        yield Violation("readable", path.name, str(error))
        return
    with shard:
        for wrong in wrong_types(shard.schema):
            yield Violation("columns", path.name, wrong)
        for name, counts in shard.nulls.items():
            group = next((group for group, count in enumerate(counts) if count), None)
            if group is not None:
                yield Violation("no nulls", path.name, _null(shard, name, group))


def _null(shard: UntrustedParquet, name: str, group: int) -> str:
    """Return the row, from 1, of the first null of a row group."""
    row = sum(shard.groups[:group])
    try:
        for batch in shard.batches(_BATCH_ROWS, [name], [group]):
            if batch.column(name).null_count:
                return f"{name} of row {row + batch.column(name).is_null().index(True).as_py() + 1}"
            row += len(batch)
    except GristmillError as error:
        return str(error)
    return f"{name} in row group {group}, as its statistics say"
