"""Rows of any artifact: by page, searched, filtered, sorted, each with its picture and origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.browse.opening import open_table, tables_of
    from gristmill.browse.source import Table
    from gristmill.browse.table import (
        Column,
        Filter,
        Found,
        Picture,
        Query,
        Raw,
        Row,
        StillCounting,
        Token,
    )

__all__, __getattr__ = lazy_exports(__name__)
