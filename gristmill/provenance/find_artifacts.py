"""Finding artifacts on disk: a walk over folders that yields every provenance record."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gristmill.contract import GristmillError
from gristmill.layout import DROPS, WORK
from gristmill.provenance import record as provenance
from gristmill.provenance.record import Input, Record


@dataclass(frozen=True)
class Artifact:
    """A record on disk, and the folder whose files it describes."""

    folder: Path
    record_path: Path

    def holds(self, path: Path) -> bool:
        """Whether `path` is the artifact's folder or lies below it."""
        return path == self.folder or self.folder in path.parents

    @property
    def partition(self) -> str | None:
        """The partition of a folder that several share, by the name of its record; else None."""
        shared = self.record_path.parent == self.folder / provenance.SHARED_RECORDS
        return self.record_path.stem if shared else None

    @property
    def title(self) -> Path:
        """What messages name it by: its folder, or its record where partitions share the folder."""
        return self.folder if self.partition is None else self.record_path

    def recorded_root(self) -> Path | None:
        """`data_root` by the record on disk, None where it cannot be read."""
        try:
            return self.data_root(provenance.read_record(self.record_path))
        except GristmillError:
            return None

    def data_root(self, record: Record) -> Path | None:
        """The folder below which the artifact has the path that `record` names, None elsewhere."""
        depth = len(Path(record.artifact).parts)
        root = self.folder.parents[depth - 1] if len(self.folder.parents) >= depth else None
        return root if root is not None and root / record.artifact == self.folder else None


def artifacts(path: Path, leave_out: str = DROPS) -> Iterator[Artifact]:
    """Every artifact at or below `path`, without what lies in `.gristmill` folders.

    A link to an artifact is followed, as to one that was moved to another disk, or to a version
    in the link form; other links are not.

    leave_out: name of a folder in `path` that is not searched (default: the drops of a data root,
        whose files a person or a download named).
    """
    folders, names, links = provenance.listing(path)
    # A folder in the place of a record is a record that cannot be read.
    names = sorted([*names, *(name for name in folders if name.endswith(".json"))])
    if path.name == provenance.SHARED_RECORDS:
        records = (name for name in names if name.endswith(".json"))
        yield from (Artifact(path.parent, path / name) for name in records)
    elif provenance.RECORD in names:
        yield Artifact(path, path / provenance.RECORD)
    for name in folders:
        if name not in (WORK, leave_out):
            yield from artifacts(path / name, leave_out="")
    for name in links:
        if name not in (WORK, leave_out) and artifacts_in(path / name):
            yield from artifacts(path / name, leave_out="")


def readable(items: Iterable[Artifact]) -> Iterator[tuple[Artifact, Record, list[Input]]]:
    """Artifacts with records and inputs; what cannot be read is left out: `verify` reports it."""
    for item in items:
        try:
            record = provenance.read_record(item.record_path)
            inputs = provenance.read_inputs(record, item.record_path)
        except provenance.MALFORMED:
            continue
        yield item, record, inputs


class Used(NamedTuple):
    """An artifact that others were made from; user: the first of those that a walk began with."""

    artifact: Artifact
    record: Record
    inputs: list[Input]
    user: Artifact


def used_by(items: Iterable[Artifact], data_root: Path | None = None) -> Iterator[Used]:
    """The artifacts that `items` were made from, over any number of steps, each once.

    data_root: where paths of inputs start; default: by each artifact's own place.

    One that is gone, was built again or has no readable record is left out: the check of the record
    that names it reports that.
    """
    todo = [Used(*each, each[0]) for each in readable(items)]
    known = {each.artifact.record_path for each in todo}
    for each in todo:
        root = data_root or each.artifact.data_root(each.record)
        for given in each.inputs:
            if root is None or given.path is None or given.data_version is None:
                continue
            folder = root / given.path
            path = provenance.published_record_path(folder, given.partition)
            if path is None or path in known:
                continue
            for found in readable([Artifact(folder, path)]):
                if found[1].data_version == given.data_version:
                    known.add(path)
                    todo.append(Used(*found, each.user))
                    yield todo[-1]


def artifacts_of(
    path: Path, asset: str, partitions: Collection[str] | None = None
) -> list[Artifact]:
    """The artifacts of `asset` at or below `path`, of `partitions` alone where they are given.

    An artifact with an unreadable record belongs to every asset, so that the check of its record
    reports it.
    """

    def is_of(item: Artifact) -> bool:
        try:
            record = provenance.read_record(item.record_path)
        except (GristmillError, ValueError):
            return True
        return record.asset == asset and (partitions is None or record.partition in partitions)

    return [item for item in artifacts(path.absolute()) if is_of(item)]


def artifacts_in(folder: Path) -> list[Artifact]:
    """The artifacts whose files lie in `folder` itself, not in a nested artifact."""
    own = [provenance.RECORD] if os.path.lexists(folder / provenance.RECORD) else []
    folders, names, _ = provenance.listing(folder / provenance.SHARED_RECORDS)
    records = sorted([*folders, *names])
    shared = [f"{provenance.SHARED_RECORDS}/{name}" for name in records if name.endswith(".json")]
    return [Artifact(folder, folder / name) for name in own + shared]


def recorded_root(folder: Path) -> Path | None:
    """The data root of the artifacts in `folder` by their records, None where none says it."""
    roots = (item.recorded_root() for item in artifacts_in(folder))
    return next((root for root in roots if root is not None), None)


def count(path: Path) -> int:
    """How many artifacts are at or below `path`."""
    return sum(1 for _ in artifacts(path.absolute()))
