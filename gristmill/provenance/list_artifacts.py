"""List the artifacts of a data root by their records, and say whether each is current.

Files are compared by size and time; nothing is hashed. To compare contents, see
`gristmill.provenance.verify`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.families import Kind, kind_of_asset
from gristmill.printable import printable
from gristmill.provenance import find_artifacts, inventory
from gristmill.provenance.check_artifact import MALFORMED
from gristmill.provenance.record import (
    Input,
    Record,
    read_inputs,
    read_record,
    record_path,
)

CURRENT: Final = "current"
FILES_CHANGED: Final = "files changed"
DROP_GONE: Final = "drop gone"
INPUT_GONE: Final = "input gone"
INPUT_CHANGED: Final = "input changed"
RECORD_DAMAGED: Final = "record damaged"
MISSING: Final = "missing"

_MOST_SOURCES = 2


@dataclass(frozen=True)
class Listed:
    """One artifact partition.

    folder: as found, POSIX.
    asset, partition, built, code_version: as recorded; `built` is ISO 8601. None where the record
        is damaged, or for an asset without partitions.
    rows: as the family counts them (`Kind.rows`), None where the record has no such count.
    bytes: of all files, as recorded.
    sources: what it was made from, each `asset partition`, in the record's order.
    state: `current`, `files changed`, `drop gone`, `input gone`, `input changed`,
        `record damaged` or `missing`; the first that holds, the last two before all others.
    why: the first file or input that is not as recorded; empty for a current artifact.
    """

    folder: str
    asset: str | None
    partition: str | None
    rows: int | None
    bytes: int
    built: str | None
    code_version: str | None
    sources: tuple[str, ...]
    state: str
    why: str


def list_artifacts(root: Path, asset: str | None = None) -> list[Listed]:
    """The artifacts below `root`, sorted by asset, partition and folder.

    root: a data root or a folder in one; its `drops` and the folders of builders are not searched.
    asset: list only this asset, damaged records and missing artifacts.

    A raw input counts as changed by its size or time, an artifact by its data version. Files that
    were added to a drop are not seen, nor that code versions or configs changed.
    """
    records = _Records()
    listed = [
        _listed(root, item.folder, item.record_path, records)
        for item in find_artifacts.artifacts(root)
    ]
    listed += [
        Listed(gone.where, None, None, None, 0, None, None, (), MISSING, gone.found)
        for gone in inventory.missing(root.absolute())
    ]
    return sorted(
        (item for item in listed if asset is None or item.asset in (asset, None)),
        key=lambda item: (item.asset or "", item.partition or "", item.folder),
    )


def as_json(listed: Iterable[Listed]) -> str:
    """A JSON array with one object an artifact, whose names are the fields of `Listed`."""
    return json.dumps([asdict(item) for item in listed], indent=2, ensure_ascii=False)


def lines(listed: Iterable[Listed]) -> Iterator[str]:
    """A table for the terminal, one line an artifact, after a line of titles."""
    titles = ("asset", "partition", "rows", "bytes", "built (UTC)", "made from", "state")
    table = [titles, *(_cells(item) for item in listed)]
    widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
    for row in table:
        cells = [
            cell.rjust(width) if title in ("rows", "bytes") else cell.ljust(width)
            for title, cell, width in zip(titles, row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _cells(item: Listed) -> tuple[str, ...]:
    made_from = ", ".join(item.sources[:_MOST_SOURCES])
    if len(item.sources) > _MOST_SOURCES:
        made_from += f" + {len(item.sources) - _MOST_SOURCES}"
    cells = (
        item.asset or item.folder,
        item.partition or "",
        "" if item.rows is None else f"{item.rows:,}",
        f"{item.bytes:,}",
        (item.built or "")[:16].replace("T", " "),
        made_from,
        f"{item.state}: {item.why}" if item.why else item.state,
    )
    return tuple(map(printable, cells))


class _Records:
    """Records by path, each read once: an artifact is an input of several others."""

    def __init__(self) -> None:
        self._read: dict[Path, Record | GristmillError] = {}

    def read(self, path: Path) -> Record:
        """The record at `path`. Raises GristmillError where it cannot be read."""
        if path not in self._read:
            try:
                self._read[path] = read_record(path)
            except GristmillError as error:
                self._read[path] = error
        record = self._read[path]
        if isinstance(record, GristmillError):
            raise record
        return record

    def data_version(self, folder: Path, partition: str | None) -> str | None:
        """Data version of the artifact partition in `folder`, None where there is none."""
        for shared in (False, True):
            path = record_path(folder, partition, shared)
            if path in self._read or path.exists():
                return self.read(path).data_version
        return None


def _listed(root: Path, folder: Path, path: Path, records: _Records) -> Listed:
    try:
        return _described(root, folder, path, records)
    except MALFORMED as error:
        why = " ".join(str(error).split())
        return Listed(folder.as_posix(), None, None, None, 0, None, None, (), RECORD_DAMAGED, why)


def _described(root: Path, folder: Path, path: Path, records: _Records) -> Listed:
    record = records.read(path)
    inputs = read_inputs(record, path)
    state, why = _state(_data_root(root, folder, record), folder, record, inputs, records)
    return Listed(
        folder=folder.as_posix(),
        asset=record.asset,
        partition=record.partition,
        rows=_rows(record),
        bytes=sum(output.bytes for output in record.outputs),
        built=record.created.astimezone(UTC).isoformat(timespec="seconds"),
        code_version=record.code_version,
        sources=tuple(dict.fromkeys(_source(item) for item in inputs)),
        state=state,
        why=why,
    )


def _rows(record: Record) -> int | None:
    kind = kind_of_asset(record.asset) or Kind(record.asset)
    return kind.rows_of(record.counts)


def _data_root(root: Path, folder: Path, record: Record) -> Path:
    """The folder above the artifact that its record's paths start from, else `root`."""
    absolute = folder.absolute()
    depth = len(Path(record.artifact).parts)
    if len(absolute.parents) >= depth:
        above = absolute.parents[depth - 1]
        if above / record.artifact == absolute:
            return above
    return root


def _source(item: Input) -> str:
    return " ".join(name for name in (item.asset, item.partition) if name) or item.path or ""


def _state(
    root: Path, folder: Path, record: Record, inputs: Iterable[Input], records: _Records
) -> tuple[str, str]:
    """The state of one artifact, and why."""
    for output in record.outputs:
        if not _is_unchanged(folder / output.path, output.bytes, output.mtime_ns):
            return FILES_CHANGED, output.path
    changed = ""
    for item in inputs:
        if item.path is None or item.path in record.deleted_inputs:
            continue
        if item.data_version is None:
            if not (root / item.path).exists():
                return DROP_GONE, item.path
            if not _is_unchanged(root / item.path, item.bytes, item.mtime_ns):
                changed = changed or item.path
            continue
        try:
            version = records.data_version(root / item.path, item.partition)
        except MALFORMED:
            version = ""  # the damaged record has a line of its own
        if version is None:
            return INPUT_GONE, _source(item)
        if version != item.data_version:
            changed = changed or _source(item)
    return (INPUT_CHANGED, changed) if changed else (CURRENT, "")


def _is_unchanged(path: Path, size: int | None, mtime_ns: int | None) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return size in (None, stat.st_size) and mtime_ns in (None, stat.st_mtime_ns)
