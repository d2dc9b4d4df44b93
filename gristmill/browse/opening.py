"""The tables of an artifact, and how one is opened."""

from __future__ import annotations

from pathlib import Path

from gristmill.browse.table import Table


def tables_of(place: Path, kind: str | None = None, partition: str | None = None) -> list[str]:
    """The names of the tables of an artifact, the main one first.

    place: its folder. kind: key of its asset; None (default) where its record or files say it.
    partition: of an artifact that shares its folder with others; None (default) for all of them.

    Raises GristmillError where the folder holds nothing that a family knows.
    """
    raise NotImplementedError


def open_table(
    place: Path, kind: str | None = None, name: str | None = None, keep: Path | None = None
) -> Table:
    """Open a table of an artifact.

    place: its folder. kind: key of its asset; None (default) where its record or files say it.
    name: of the table, as `tables_of` names it; None (default) for the main one.
    keep: a folder outside of all artifacts, where the places of lines are kept between processes;
        None (default) keeps them in this process alone.

    Raises GristmillError where there is no such table, or where it cannot be read.
    """
    raise NotImplementedError
