"""From a row of an artifact back to the raw file, by the records: the walk, and its steps.

Each family has one table of edges, by asset: an edge takes a row and gives what a person reads of
it, then the rows of inputs that it was made from, or the bytes of the raw file. `walk` follows.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill import contract
from gristmill.contract import GristmillError
from gristmill.families import Request
from gristmill.hashing import kept, sha256_file
from gristmill.provenance import inventory
from gristmill.provenance import record as provenance
from gristmill.provenance.find_artifacts import Artifact, artifacts_in
from gristmill.provenance.raw_inputs import Stamp, stamp_of
from gristmill.provenance.record import MALFORMED, Input, Record, wrong_path
from gristmill.untrusted.files import opened
from gristmill.untrusted.walk import unpack

ALL: Final = "0"
"""The sample of a command that names none: all inputs."""


class NotTraced(GristmillError):
    """The records do not lead further; the text says why and what to do."""


@dataclass(frozen=True)
class Origin(contract.Trace):
    """One step of a trace, as names and values for a person.

    values: what a person reads, by name.
    """

    values: Mapping[str, object]

    def facts(self) -> dict[str, object]:
        """The values, in their order."""
        return dict(self.values)


class Row(NamedTuple):
    """A row of an artifact: its asset, its folder, and its place there as the edge takes it."""

    asset: str
    folder: Path
    place: Any = None


Steps = Iterator[contract.Trace | Row]
Edge = Callable[[Path, Any], Steps]


def walk(edges: Mapping[str, Edge], row: Row) -> Iterator[contract.Trace]:
    """The steps from a row to the raw files that it was made from.

    edges: of all assets on the way.

    Raises what is wrong with the row itself. Where it leads no further the last step says why.
    """

    def steps() -> Iterator[contract.Trace]:
        for step in edges[row.asset](row.folder, row.place):
            yield from walk(edges, step) if isinstance(step, Row) else (step,)

    found = steps()
    yield from islice(found, 1)
    try:
        yield from found
    except (GristmillError, OSError) as error:
        yield Origin({"not_traced": " ".join(str(error).split())})


@dataclass(frozen=True)
class Source:
    """A published artifact whose record says what it was made from.

    folder: of the artifact.
    root: the data root.
    record_path: of its record.
    record, inputs: as on disk.
    """

    folder: Path
    root: Path
    record_path: Path
    record: Record
    inputs: tuple[Input, ...]

    @property
    def title(self) -> str:
        """The artifact in messages."""
        return " ".join(filter(None, (self.record.asset, self.record.partition)))

    def made_from(self, *assets: str, partition: str | None = None) -> Source:
        """The artifact of one of `assets` that this one was made from.

        partition: of it, where there are several; default: the first one.

        Raises NotTraced where it is gone or was built again since: then a place in it may be
        another sample's.
        """
        for item in self.inputs:
            published = item.path is not None and item.data_version is not None
            if published and item.asset in assets and partition in (None, item.partition):
                return self._source(item)
        raise NotTraced(f"{self.title} was not made from {' or '.join(assets)}")

    def raw_inputs(self) -> list[Input]:
        """The raw files that this artifact was made from, in the order of their paths."""
        raw = [item for item in self.inputs if item.is_of_drop]
        return sorted(raw, key=lambda item: str(item.path))

    def raw_file(self, item: Input) -> Path:
        """The path of a raw file, to be read. Raises NotTraced where it is not as recorded."""
        if state := self.state(item):
            raise NotTraced(f"{item.path} {state}: the place of the sample in it is not known")
        return self.root / str(item.path)

    def state(self, item: Input) -> str | None:
        """What is different about a raw file, None where nothing is.

        It is hashed only where its size is the recorded one and its time is not.
        """
        path = self.root / str(item.path)
        try:
            found = path.stat()
            if item.bytes not in (None, found.st_size):
                return f"has {found.st_size:,} bytes, {item.bytes:,} when {self.title} was built"
            if item.mtime_ns != found.st_mtime_ns and kept(sha256_file, path) != item.sha256:
                return f"has other bytes than when {self.title} was built"
        except OSError:
            return "is gone"
        return None

    def raw_input(self, path: str) -> Input:
        """The raw file of this path relative to the data root. Raises NotTraced for none."""
        for item in self.inputs:
            if item.data_version is None and item.path == path:
                return item
        raise NotTraced(f"{self.title} was made from no {path}: build it again")

    def raw_facts(self, item: Input) -> dict[str, object]:
        """Path relative to the data root, bytes and sha256 of a raw file, and what is different."""
        facts: dict[str, object] = {
            "raw_file": item.path,
            "raw_bytes": f"0-{item.bytes}",
            "raw_sha256": item.sha256,
        }
        state = self.state(item)
        return facts if state is None else facts | {"raw_note": f"the file {state}"}

    def _source(self, item: Input) -> Source:
        name = " ".join(filter(None, (item.asset, item.partition))) or str(item.path)
        folder = self.root / str(item.path)
        if provenance.published_record_path(folder, item.partition) is None:
            removed = inventory.was_removed(self.root, str(item.path), item.partition)
            gone = "was removed" if removed else "is gone"
            raise NotTraced(f"{name}, which {self.title} was made from, {gone}")
        found = source(folder, item.partition)
        if (published := found.record.data_version) != item.data_version:
            raise NotTraced(
                f"{name} was built again after {self.title} was made from it (data version "
                f"{published[:12]}, recorded {str(item.data_version)[:12]}): build {self.title} "
                "again"
            )
        return found


def source(folder: Path, partition: str | None = None) -> Source:
    """The artifact in a folder, with its record.

    folder: of the artifact.
    partition: its key, where several partitions share the folder.

    Raises NotTraced where there is no record that can be read, or the folder was moved out of its
    data root.
    """
    folder = folder.absolute()
    shared = [] if partition is None or "/" in partition else [(partition, True)]
    for each, is_shared in (*shared, (None, False)):
        path = provenance.record_path(folder, each, is_shared)
        if os.path.lexists(path):
            return _read(Artifact(folder, path))
    of = "" if partition is None else f" of {partition}"
    raise NotTraced(f"{folder} has no provenance record{of}")


def _read(item: Artifact) -> Source:
    listed = provenance.inputs_path(item.record_path)
    stamp = stamp_of(listed.stat()) if listed.exists() else None
    return kept(_read_record, item.record_path, item.folder, stamp)


def _read_record(path: Path, folder: Path, _stamp: Stamp | None) -> Source:
    item = Artifact(folder, path)
    try:
        record = provenance.read_record(item.record_path)
        inputs = tuple(provenance.read_inputs(record, item.record_path))
        root = item.data_root(record)
    except MALFORMED as error:
        raise NotTraced(str(error)) from error
    wrong = (*inventory.wrong_paths(record), *inventory.wrong_inputs(inputs))
    if wrong:
        raise NotTraced(f"{item.record_path}: {wrong[0]}: build the artifact again")
    if root is None:
        raise NotTraced(
            f"{item.folder} was moved out of its data root, where it is {record.artifact}: "
            "trace it there"
        )
    return Source(item.folder, root, path, record, inputs)


def inputs_of(
    folder: Path, partition: str | None = None, sample: str = ALL
) -> Iterator[contract.Trace]:
    """What artifacts without samples of their own were made from, one step an input.

    partition: of a folder that several partitions share; None for all of them.
    sample: what is asked for: a partition of the folder, a file of it, or ALL (default).

    Yields one step where nothing is recorded. Raises NotTraced as `source`, and for a sample that
    is neither.
    """
    items = artifacts_in(folder.absolute())
    found = [source(folder, partition)] if partition else [_read(item) for item in items]
    wanted = [
        made
        for made in found
        if sample in (ALL, made.record.partition)
        or any(sample == output.path for output in made.record.outputs)
    ]
    if found and not wanted:
        parts = ", ".join(str(made.record.partition) for made in found if made.record.partition)
        has = f"its partitions are {parts}" if parts else "it has no samples"
        raise NotTraced(f"{folder} has no sample {sample}: {has}; a file of it is a sample, too")
    for made in wanted:
        if not made.inputs:
            yield Origin({"artifact": made.title, "made_from": "nothing: it has no inputs"})
        for item in made.inputs:
            facts: dict[str, object] = {"artifact": made.title}
            if item.data_version is None:
                yield Origin(facts | made.raw_facts(item))
                continue
            name = " ".join(filter(None, (item.asset, item.partition)))
            facts |= {"made_from": name, "folder": item.path, "data_version": item.data_version}
            try:
                made._source(item)
            except NotTraced as error:
                facts["note"] = str(error)
            yield Origin(facts)


def of_request(record: str, request: Request) -> Iterator[contract.Trace]:
    """Yield the inputs of a manifest; record: the name of its record."""
    return inputs_of(request.path, record, request.sample)


_FILES: Final = ("raw_file", "raw_steps")
_PACKED: Final = ("gz", "bz2", "xz", "zst")
_BINARY: Final = (*_PACKED, "zip", "parquet")
_MOST_WHOLE: Final = 1 << 16
"""Bytes of a file that is shown whole, where no smaller range is known to hold the sample."""
_READ: Final = 1 << 20


def raw_text(root: Path, facts: Mapping[str, object]) -> str | None:
    """The raw text of a sample; None where the facts name no bytes and no row of Parquet.

    None, too, where they note that the file is gone, or another one by now.

    root: the data root. facts: one step of an origin. Bytes that are no UTF-8 are escaped; a row of
    Parquet is an object of JSON.
    """
    named = next((str(facts[name]) for name in _FILES if name in facts), "")
    if not named or wrong_path(named) or "raw_note" in facts:
        return None
    file = root / named
    if "raw_row_group" in facts:
        import pyarrow.parquet as pq

        group, inside = (int(str(facts[name])) for name in ("raw_row_group", "raw_row_in_group"))
        with pq.ParquetFile(file) as held:
            (row,) = held.read_row_group(group).slice(inside - 1, 1).to_pylist()
        return json.dumps(row, ensure_ascii=False, default=str)
    place = facts.get("raw_unpacked_bytes", facts.get("raw_bytes"))
    if place is None:
        return None
    begin, end = map(int, str(place).split("-"))
    is_whole = "raw_unpacked_bytes" not in facts and (begin, end) == (0, file.stat().st_size)
    if is_whole and (end > _MOST_WHOLE or file.suffix.lstrip(".").lower() in _BINARY):
        return None
    return _bytes(file, facts.get("raw_member"), begin, end).decode("utf-8", "backslashreplace")


def _bytes(file: Path, member: object, begin: int, end: int) -> bytes:
    """Bytes of a file, of its text if it is packed, or of a member of an archive."""
    ending = file.suffix.lstrip(".").lower()
    with opened(file) as raw:
        if member is not None:
            with zipfile.ZipFile(raw) as archive, archive.open(str(member)) as inside:
                return _cut(iter(lambda: inside.read(_READ), b""), begin, end)
        if ending in _PACKED:
            return _cut(unpack(raw, file, ending), begin, end)
        raw.seek(begin)
        return raw.read(end - begin)


def _cut(parts: Iterator[bytes], begin: int, end: int) -> bytes:
    """The bytes from `begin` to `end`; what follows is not unpacked."""
    kept, at = bytearray(), 0
    for part in parts:
        kept += part[max(begin - at, 0) : max(end - at, 0)]
        at += len(part)
        if at >= end:
            break
    return bytes(kept)
