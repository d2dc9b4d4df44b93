"""The columns of an asset's artifacts, as the UI shows them beside its latest event.

The columns are in `gristmill/<family>/show/columns.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import dagster as dg

from gristmill import families
from gristmill.markdown import stored_size

NAME: Final = "dagster/column_schema"
"""The metadata entry that the UI takes for the columns of an asset."""
_AROUND: Final = 300
"""Bytes that Dagster stores around each column, a little more than they are."""


@cache
def column_schema(asset: str) -> dg.TableSchema | None:
    """Returns the columns of an asset's artifacts; None where they are no tables."""
    columns = families.columns_of(asset)
    if not columns:
        return None
    return dg.TableSchema(
        columns=[dg.TableColumn(each.name, each.type, each.text) for each in columns]
    )


def column_metadata(asset: str) -> dict[str, Any]:
    """Returns the entry for an event; empty where the artifacts are no tables."""
    schema = column_schema(asset)
    return {} if schema is None else {NAME: dg.MetadataValue.table_schema(schema)}


@cache
def stored_bytes(asset: str) -> int:
    """Returns the bytes of the entry as Dagster stores it, a little more than they are."""
    schema = column_schema(asset)
    return sum(
        _AROUND + stored_size(f"{column.name}{column.type}{column.description}")
        for column in (schema.columns if schema else ())
    )
