"""Finding artifacts on disk: a walk over folders that yields every provenance record.

A builder may replace a folder during the walk; every listing is the listing of
one moment (`stable_listing`). See also `check_artifact`: one record against the disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.layout import WORK
from gristmill.provenance import record as provenance
from gristmill.provenance import stable_listing
from gristmill.provenance.record import Record


@dataclass(frozen=True)
class Artifact:
    """A record on disk, and the folder whose files it describes."""

    folder: Path
    record_path: Path

    def holds(self, path: Path) -> bool:
        """Whether `path` is the artifact's folder or lies below it."""
        return path == self.folder or self.folder in path.parents

    def data_root(self, record: Record) -> Path | None:
        """The folder below which the artifact has the path that `record` names, None elsewhere."""
        depth = len(Path(record.artifact).parts)
        root = self.folder.parents[depth - 1] if len(self.folder.parents) >= depth else None
        return root if root is not None and root / record.artifact == self.folder else None


def artifacts(path: Path) -> Iterator[Artifact]:
    """Every artifact at or below `path`, without what lies in `.gristmill` folders."""
    folders, names = stable_listing.listing(path)
    if path.name == provenance.SHARED_RECORDS:
        records = (name for name in names if name.endswith(".json"))
        yield from (Artifact(path.parent, path / name) for name in records)
    elif provenance.RECORD in names:
        yield Artifact(path, path / provenance.RECORD)
    for name in folders:
        if name != WORK:
            yield from artifacts(path / name)


def artifacts_of(
    path: Path, asset: str, partitions: Collection[str] | None = None
) -> list[Artifact]:
    """The artifacts of `asset` at or below `path`, of `partitions` alone where they are given."""
    return [item for item in artifacts(path.absolute()) if is_of(item, asset, partitions)]


def artifacts_in(folder: Path) -> list[Artifact]:
    """The artifacts whose files lie in `folder` itself, not in a nested artifact."""
    _, names = stable_listing.listing(folder)
    own = [provenance.RECORD] if provenance.RECORD in names else []
    _, records = stable_listing.listing(folder / provenance.SHARED_RECORDS)
    shared = [f"{provenance.SHARED_RECORDS}/{name}" for name in records if name.endswith(".json")]
    return [Artifact(folder, folder / name) for name in own + shared]


def folders_of(items: Iterable[Artifact]) -> list[Path]:
    """The folders of artifacts, each once, in the order of the artifacts."""
    return list(dict.fromkeys(item.folder for item in items))


def is_of(artifact: Artifact, asset: str, partitions: Collection[str] | None) -> bool:
    """Whether an artifact belongs to `asset` and `partitions` (None for all).

    An artifact with an unreadable record belongs to every asset, so that the
    check of its record reports it.
    """
    try:
        record = provenance.read_record(artifact.record_path)
    except GristmillError:
        return True
    return record.asset == asset and (partitions is None or record.partition in partitions)


def count(path: Path) -> int:
    """How many artifacts are at or below `path`."""
    return sum(1 for _ in artifacts(path.absolute()))
