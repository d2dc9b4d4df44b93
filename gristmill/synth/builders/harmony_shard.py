"""A Harmony shard as a file: its name, how it is opened, and its violations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.corpora.split_file import files
from gristmill.synth.format import parquet
from gristmill.synth.format.parquet import OwnParts, UntrustedParquet
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGES: Final = "messages_json"
ID: Final = "synth_id"
REQUIRED: Final = (MESSAGES, ID)
"""Columns that a Harmony shard must have."""
METADATA: Final = "metadata_json"
"""A column whose values must be strict JSON, if a Harmony shard has it as strings."""
OPTIONAL: Final = ("language", "exercise")
"""Columns that are read if a Harmony shard has them."""
_PREFIX: Final = "synth_harmony_shard_"
_BATCH_ROWS: Final = 1000
_SHOWN: Final = 300


def shard_name(number: str) -> str:
    """Return the file name of a Harmony shard."""
    return f"{_PREFIX}{number}.parquet"


def shards(folder: Path) -> dict[str, Path]:
    """Return the Harmony shards of a folder by number ("00"), sorted."""
    paths = sorted(folder.glob(shard_name("*")))
    return {path.stem.removeprefix(_PREFIX): path for path in paths}


def open_shard(
    shard: Path, links: LinkRule | None = None, *, is_own: bool = False
) -> UntrustedParquet:
    """Open a Harmony shard, of our own also one in parts.

    Raises BadInput for no Parquet, or a column missing or twice.
    """
    several = files(shard) if is_own else [shard]
    columns = [*REQUIRED, *OPTIONAL], REQUIRED
    if several != [shard]:
        return OwnParts(several, *columns)
    file = UntrustedParquet(shard, *columns, links, is_own)
    if missing := [name for name in REQUIRED if name not in file.names]:
        file.close()
        raise BadInput(shard, f"has no column {', '.join(missing)}: is it a Harmony shard?")
    return file


def wrong_types(
    schema: pa.Schema, texts: Sequence[str] = (MESSAGES,), values: Sequence[str] = OPTIONAL
) -> Iterator[str]:
    """Yield what is wrong with the types of columns. values: strings or single values."""
    import pyarrow as pa

    for field in schema:
        kind = field.type
        allowed = field.name not in (*texts, ID, *values) or parquet.is_text(kind)
        if field.name == ID:
            allowed |= pa.types.is_integer(kind)
        elif field.name in values:
            allowed |= pa.types.is_primitive(kind)
        if not allowed:
            wanted = "a string or an integer" if field.name == ID else "a string"
            yield f"{field.name} is {kind}, not {wanted}: write the column as strings"


def no_text_form(path: Path, error: Exception, before: int) -> BadInput:
    """Return the error for a value that cannot be cast to a string."""
    rule = f"holds a value that has no text form in this row or one after it ({error})"[:_SHOWN]
    return BadInput(path, f"{rule}: correct it, or leave out its column", before + 1)


def checked_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that are read for a rule alone."""
    there = METADATA in schema.names and parquet.is_text(schema.field(METADATA).type)
    return [METADATA] if there else []


def with_texts(batch: pa.RecordBatch, shard: Path, before: int) -> pa.RecordBatch:
    """Return the batch with numbers and times in optional columns as strings."""
    import pyarrow as pa

    columns = list(batch.columns)
    for place, (name, column) in enumerate(zip(batch.schema.names, columns, strict=True)):
        if name in OPTIONAL and not parquet.is_text(column.type):
            try:
                columns[place] = column.cast(pa.string())
            except pa.ArrowException as error:
                raise no_text_form(shard, error, before) from error
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def columns_of(batch: pa.RecordBatch) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """A batch's columns as Python values, and why rows are refused; a bad synth_id has escapes."""
    columns: dict[str, list[Any]] = {}
    refused: dict[int, str] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name], broken = parquet.values(column)
        for index, error in broken.items():
            refused[index] = f"UnicodeDecodeError: {name} is not UTF-8: {error}"
            if name == "synth_id":
                columns[name][index] = error.object.decode(errors="backslashreplace")
    return columns, refused


def shard_violations(path: Path, links: LinkRule | None = None) -> Iterator[Violation]:
    """Yield the violations of one Harmony shard: columns, their types, nulls."""
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
