"""Pushing: what is published in a data root becomes new versions in a mirror.

First all files are sent, then the records, each of which makes a version, so that no reader sees a
version of which anything is missing. Source: `docs/mirror.md#push`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.mirror import versions
from gristmill.mirror.store import HUB_SCHEME, MOST, MirrorError, Store
from gristmill.mirror.versions import (
    Item,
    Known,
    Pushed,
    Transfer,
    Version,
    found,
    of_one_generation,
    transferring,
)
from gristmill.provenance import Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts
from gristmill.run.progress import SILENT, Progress

PARALLEL: Final = 8


@dataclass(frozen=True)
class _Ready:
    """An artifact whose files are in the mirror, but for its record."""

    version: Version
    record: Record
    data: bytes
    sent: int


def push(
    root: Path,
    url: str | Store,
    names: Sequence[str] = (),
    *,
    artifacts: Sequence[find_artifacts.Artifact] | None = None,
    parallel: int = PARALLEL,
    parquet: bool = False,
    progress: Progress = SILENT,
) -> list[Pushed]:
    """Push artifacts of a data root to a mirror, and return what became of each.

    root: the data root.
    url: of the mirror, as for `Store`, or a Store; or of a dataset repository, as for
        `hub.push.push`.
    names: which artifacts, as for `versions.chosen`; all by default.
    artifacts: those of the data root to choose from; default None: the root is searched.
    parallel: files that are sent at once, and with 32 MiB the memory that is taken; default 8.
    parquet: as for `hub.push.push`.
    progress: gets the stage "push" in bytes; default silent.

    An artifact that cannot be pushed does not stop the others. Raises MirrorError where the mirror
    cannot be read, GristmillError for a name that means nothing.
    """
    if isinstance(url, str) and url.startswith(HUB_SCHEME):
        from gristmill.mirror import hub as hub_push

        return hub_push.push(
            root,
            url,
            names,
            artifacts=artifacts,
            parallel=parallel,
            parquet=parquet,
            progress=progress,
        )
    if parquet:
        raise MirrorError(f"{url}: --parquet is for dataset repositories: hf://datasets/OWNER/NAME")
    store = url if isinstance(url, Store) else Store(url)
    root = root.absolute()
    chosen = versions.chosen(found(root, artifacts), names, str(root))
    above = os.path.commonpath([entry.artifact for entry, _, _ in chosen]) if chosen else ""
    known = versions.listed(store, above)
    total = sum(output.bytes for _, _, (_, record) in chosen if record for output in record.outputs)
    with (
        progress.stage("push", "bytes", total) as stage,
        transferring(store, parallel, stage) as (transfer, at_once),
    ):
        ready = list(at_once.map(lambda each: _prepared(transfer, known, each), chosen))
    return [_finished(store, each) if isinstance(each, _Ready) else each for each in ready]


def _prepared(transfer: Transfer, known: Known, chosen: tuple[Entry, str, Item]) -> _Ready | Pushed:
    """Send what the mirror lacks of an artifact. A rebuild meanwhile is sent in its place."""
    entry, _, (item, _) = chosen
    last = known[entry][-1] if entry in known else None

    def send(folder: OpenFolder, record: Record, data: bytes) -> _Ready | Pushed:
        if last is not None and _is_of(transfer.store, last, record):
            return Pushed(entry.title, str(last))
        if len(data) > MOST:
            raise GristmillError(
                f"{item.record_path}: has {len(data):,} bytes, and a mirror takes {MOST:,}: build "
                "the artifact in several partitions, or in larger files"
            )
        version = Version.after(last, entry, record, data)
        return _Ready(version, record, data, transfer.send(folder, record, version))

    try:
        return of_one_generation(item, entry, send)
    except (GristmillError, OSError) as error:
        return Pushed(entry.title, error=str(error))


def _is_of(store: Store, last: Version, record: Record) -> bool:
    """Whether a version holds the data of a record, made in the same way of the same."""
    if last.data_version != record.data_version:
        return False
    try:
        return versions.read(store, last)[1].fingerprint == record.fingerprint
    except GristmillError:
        return False  # a right one comes after it


def _finished(store: Store, ready: _Ready) -> Pushed:
    """Make the version of an artifact whose files are all there."""
    version, title = ready.version, ready.version.entry.title
    files = versions.files_of(ready.record)
    try:
        store.flush(version.file(file) for file in files)
        store.write(version.key, [ready.data], len(ready.data))
        store.flush([version.key])
    except (GristmillError, OSError) as error:
        return Pushed(title, error=str(error))
    sent = ready.sent + len(ready.data)
    said = f"{version}, {len(files) + 1:,} files, {amounts.size(sent)} sent"
    return Pushed(title, said, True, sent)
