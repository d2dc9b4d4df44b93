"""The raw drops that an artifact was made from, as rows of its event that lead to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

import dagster as dg

from assets.checking.equal_inputs import equal_inputs, named
from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.printable import cut, printable
from gristmill.provenance import Input, Record

_MOST_RECORDS, _MOST_ROWS, _LONGEST = 20, 8, 120
_LONGEST_LIST: Final = 1000
EQUAL: Final = "equal raw files"
"""Name of the row of equal raw files."""
_BY_SHARD: Final = frozenset({"synth/raw", "synth/ready_harmony"})
"""Raw assets whose partitions are the shards that are built from a drop, not the drops."""


def drop_rows(record: Record, root: Path) -> dict[str, dg.MetadataValue | str]:
    """Returns the raw drops of an artifact, over any number of steps, as rows of an event.

    Each drop is a link to the partition of its raw asset in the UI. A link has no host, so that it
    leads to the server that shows the page. At most 8 are listed; none for an artifact that was
    downloaded, sampled, or made from all partitions of another.
    """
    found: dict[str, str] = {}
    for name, address in _raw_drops(record, root):
        # A drop that several partitions were built from is shown without one.
        same = found.get(name, address) == address
        found[name] = address if same else address.partition("&")[0]
    names = ["source drop"] if len(found) == 1 else [f"source drop/{name}" for name in found]
    rows: dict[str, dg.MetadataValue | str] = {
        cut(printable(name), _LONGEST): dg.MetadataValue.url(address)
        for name, address in zip(names, found.values(), strict=True)
    }
    if len(rows) > _MOST_ROWS:
        first = dict(list(rows.items())[:_MOST_ROWS])
        return {**first, "more source drops": f"{len(rows) - _MOST_ROWS:,}"}
    return rows


def equal_rows(record: Record, root: Path) -> dict[str, str]:
    """Returns the raw files of an artifact that have the same bytes as a row of its event."""
    groups = equal_inputs(_inputs(record, root))
    return {EQUAL: cut(named(groups), _LONGEST_LIST)} if groups else {}


def _raw_drops(record: Record, root: Path) -> Iterator[tuple[str, str]]:
    """Name of each drop, and the page of its partition in the UI."""
    todo, seen = [record], {(record.artifact, record.partition)}
    while todo:
        holder = todo.pop(0)
        for item in _inputs(holder, root):
            if item.data_version is None:
                yield from _page(item, holder)
            elif (item.path, item.partition) not in seen and len(seen) < _MOST_RECORDS:
                seen.add((str(item.path), item.partition))
                if (made_from := _record(item, root)) is not None:
                    todo.append(made_from)


def _inputs(record: Record, root: Path) -> list[Input]:
    path = provenance.published_record_path(root / record.artifact, record.partition)
    if record.inputs_file is None or path is None:
        return list(record.inputs)
    try:
        return provenance.read_inputs(record, path)
    except GristmillError:
        return []  # the check `intact` reports it


def _record(item: Input, root: Path) -> Record | None:
    """The record of an input that still has the version that was used."""
    path = provenance.published_record_path(root / str(item.path), item.partition)
    try:
        record = None if path is None else provenance.read_record(path)
    except GristmillError:
        return None  # the check `intact` reports it
    return record if record is not None and record.data_version == item.data_version else None


def _page(item: Input, holder: Record) -> Iterator[tuple[str, str]]:
    parts = PurePosixPath(item.path or "").parts
    if item.asset is None or parts[:1] != ("drops",) or len(parts) < 3:
        return
    partition = holder.partition if item.asset in _BY_SHARD else item.partition
    if partition is not None:
        address = (
            f"/assets/{quote(item.asset)}?view=partitions&partition={quote(partition, safe='')}"
        )
        yield "/".join(parts[1:3]), address
