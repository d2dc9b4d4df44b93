"""What a pull finds published in the data root: its record, and whether it is whole."""

from __future__ import annotations

import os
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror.layout import Outer
from gristmill.provenance import Record
from gristmill.provenance.inventory import Entry
from gristmill.provenance.raw_inputs import is_as_written


def standing_record(root: Path, entry: Entry, ignore_unreadable: bool) -> Record | None:
    """The record that is published, None where there is none.

    ignore_unreadable: None also for a record that cannot be read.

    Raises GristmillError for a record that cannot be read.
    """
    path = entry.record(root)
    if not os.path.lexists(path):
        return None
    try:
        return provenance.read_record(path)
    except GristmillError:
        if ignore_unreadable:
            return None
        raise


def is_whole(folder: Path, record: Record) -> bool:
    """Whether a record and its list of inputs are as they were written, and files as it lists them.

    folder: of the artifact; its files are compared by size and time.
    """
    if not is_as_written(folder, record):
        return False
    for output in record.outputs:
        try:
            found = (folder / output.path).stat()
        except OSError:
            return False
        if (found.st_size, found.st_mtime_ns) != (output.bytes, output.mtime_ns):
            return False
    return True


def check_outer(root: Path, outer: Outer | None) -> None:
    """Raise GristmillError where the artifact that a version is nested in is not here as it was."""
    if outer is None:
        return
    if not provenance.holds_record(root / outer.artifact):
        raise GristmillError(f"is nested in {outer.artifact}: pull that artifact first")
    record = provenance.read_record(root / outer.artifact / provenance.RECORD)
    if record.data_version != outer.data_version:
        raise GristmillError(
            f"is of another data version of {outer.artifact}, {outer.data_version[:12]}; "
            f"{record.data_version[:12]} is published here: pull that artifact, too"
        )


def absent_inputs(root: Path, entry: Entry) -> int:
    """How many inputs of a published artifact are not in the data root; 0 where it is gone."""
    try:
        record = provenance.read_record(entry.record(root))
        inputs = provenance.read_inputs(record, entry.record(root))
    except GristmillError:
        return 0  # `verify` reports it
    return sum(item.path is not None and not (root / item.path).exists() for item in inputs)
