"""Drops that are marked as samples, whatever they hold."""

from pathlib import Path

from gristmill.inbox.marks import mark_of, sums_in, written_sums


def mark(drop: Path) -> Path:
    """Mark all files of a drop, or the file that it is, as a sample's own; return the drop."""
    mark_of(drop).write_bytes(written_sums(sums_in(drop)))
    return drop
