"""Pushing: what is published in a data root becomes new versions in a mirror.

First all files are sent, then the versions are created, so that no reader sees a version of which
anything is missing. How files are sent belongs to `send.py`. Source: `docs/mirror.md#push`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror import versions
from gristmill.mirror.layout import (
    PART_BYTES,
    File,
    Manifest,
    Outer,
    Place,
    Version,
    WrongVersion,
    sha256_of,
)
from gristmill.mirror.published import Item, Pushed, found, named_files, of_one_generation
from gristmill.mirror.send import Known, Sender, Sent, Source
from gristmill.mirror.store import HUB_SCHEME, MirrorError, Store
from gristmill.provenance import Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run.progress import SILENT, Progress

PARALLEL: Final = 8
_ARTIFACTS: Final = 4


@dataclass(frozen=True)
class _Ready:
    """An artifact whose files are in the mirror; `draft` is None where its version is there."""

    place: Place
    draft: Version | None
    standing: Version | None
    sent: Sent


def push(
    root: Path,
    url: str | Store,
    names: Sequence[str] = (),
    *,
    artifacts: Sequence[find_artifacts.Artifact] | None = None,
    parallel: int = PARALLEL,
    part_bytes: int = PART_BYTES,
    read_back: bool = False,
    parquet: bool = False,
    progress: Progress = SILENT,
) -> list[Pushed]:
    """Push artifacts of a data root to a mirror, and return what became of each.

    root: the data root.
    url: of the mirror, as for `Store`, or a Store; or of a dataset repository, as for
        `hub.push.push`, which always compares what it holds, and takes no `part_bytes`.
    names: which artifacts, as for `versions.chosen`; all by default.
    artifacts: those of the data root to choose from; default None: the root is searched.
    parallel: parts that are sent at once; default 8.
    part_bytes: bytes of a part, 16 MiB by default; memory is `parallel` times as much.
    read_back: read every object of these artifacts from the mirror and compare it; those that are
        wrong are written again. Default False.
    parquet: as for `hub.push.push`.
    progress: gets the stage "push" in bytes; default silent.

    An artifact that cannot be pushed does not stop the others. Raises MirrorError where the mirror
    cannot be read, GristmillError for a name that means nothing.
    """
    if isinstance(url, str) and url.startswith(HUB_SCHEME):
        from gristmill.mirror.hub import push as hub_push

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
    known = _known(store, [entry for entry, _, _ in chosen])
    standing = versions.newest(store, known, parallel)
    total = sum(output.bytes for _, _, (_, record) in chosen if record for output in record.outputs)
    with progress.stage("push", "bytes", total) as stage:
        sender = Sender(store, parallel, part_bytes, read_back, stage)
        ready = _prepared(root, sender, chosen, standing, known)
    return [
        _finished(store, entry, each, standing.get(Place(entry)))
        for (entry, _, _), each in zip(chosen, ready, strict=True)
    ]


def _prepared(
    root: Path,
    sender: Sender,
    chosen: Sequence[tuple[Entry, str, Item]],
    standing: Mapping[Place, Version | WrongVersion],
    known: versions.Numbers,
) -> list[_Ready | GristmillError]:
    """Send the files of all artifacts, and end the sender."""

    def prepared(item: tuple[Entry, str, Item]) -> _Ready | GristmillError:
        try:
            push_one = _Push(root, sender, Place(item[0]), standing, known)
            return push_one.prepare(item[2][0], always=sender.read_back)
        except GristmillError as error:
            return error
        except OSError as error:
            return GristmillError(f"{item[2][0].folder}: {error}")

    try:
        with ThreadPoolExecutor(_ARTIFACTS) as pool:
            return list(pool.map(prepared, chosen))
    finally:
        sender.close()


def _known(store: Store, entries: Sequence[Entry]) -> versions.Numbers:
    """The versions that the mirror has of these artifacts."""
    wanted = set(entries)
    below = os.path.commonpath([entry.artifact for entry in entries]) if entries else ""
    return {
        place: numbers
        for place, numbers in versions.numbers(store, below).items()
        if place.entry in wanted
    }


def _finished(
    store: Store,
    entry: Entry,
    ready: _Ready | GristmillError,
    newest: Version | WrongVersion | None,
) -> Pushed:
    """Create the version of an artifact whose files are all there, after the newest one."""
    if isinstance(ready, GristmillError):
        return Pushed(entry.title, None, error=str(ready))
    try:
        store.flush(ready.sent.keys)
        if ready.draft is None:
            return Pushed(entry.title, ready.standing, sent_bytes=ready.sent.bytes)
        version, created = versions.add(store, ready.place, ready.draft)
        store.flush([ready.place.version(version.number)])
    except (GristmillError, OSError) as error:
        return Pushed(entry.title, None, error=str(error))
    wrong = str(newest) if isinstance(newest, WrongVersion) else None
    return Pushed(entry.title, version, created, ready.sent.bytes, unreadable=wrong)


class _Push:
    """Sends one artifact partition, of one generation."""

    def __init__(
        self,
        root: Path,
        sender: Sender,
        place: Place,
        newest: Mapping[Place, Version | WrongVersion],
        known: versions.Numbers,
    ) -> None:
        self._root, self._sender, self._place = root, sender, place
        # After a version that cannot be read comes the next number.
        standing = newest.get(place)
        self._standing = standing if isinstance(standing, Version) else None
        self._last = known[place][-1] if place in known else 0

    def prepare(self, item: find_artifacts.Artifact, always: bool) -> _Ready:
        """Send what the mirror lacks of an artifact. A rebuild meanwhile is sent in its place."""
        name = item.record_path.relative_to(item.folder).as_posix()

        def send(folder: OpenFolder, record: Record) -> _Ready:
            return self._send(folder, name, record, always)

        return of_one_generation(item, self._place.entry, send)

    def _send(self, folder: OpenFolder, record_name: str, record: Record, always: bool) -> _Ready:
        standing, outer = self._standing, self._outer(folder)
        is_there = standing is not None and standing.is_of(
            record.data_version, record.fingerprint, outer
        )
        sent = Sent()
        if standing is not None and is_there and not always:
            return _Ready(self._place, None, standing, sent)
        files = self._files(folder, record_name, record, sent)
        manifest = Manifest(
            artifact=record.artifact,
            partition=record.partition,
            shared=self._place.entry.partition is not None,
            record=record_name,
            part_bytes=self._sender.part_bytes,
            files=files,
        )
        data = manifest.to_bytes()
        sha256 = sha256_of(data)
        if standing is not None and is_there and standing.manifest != sha256:
            # It was pushed from a build of the same contents, with another record.
            is_there = self._is_whole(standing, files)
        if standing is None or not is_there or standing.manifest == sha256:
            self._sender.place(sha256, len(data), lambda: data, sent)
        if is_there:
            return _Ready(self._place, None, standing, sent)
        draft = Version(
            number=self._last + 1,
            artifact=record.artifact,
            asset=record.asset,
            partition=record.partition,
            data_version=record.data_version,
            fingerprint=record.fingerprint,
            record=record.digest,
            outer=outer,
            manifest=sha256,
            total_bytes=manifest.total_bytes,
            files=len(files),
            writer=uuid.uuid4().hex,
            pushed=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return _Ready(self._place, draft, standing, sent)

    def _is_whole(self, standing: Version, right: Sequence[File]) -> bool:
        """Whether the mirror gives the manifest of a version, and each of its parts."""
        try:
            listed = versions.read_manifest(self._sender.store, self._place, standing)
        except MirrorError:
            return False
        given = {part for file in right for part in file.parts}
        parts = (part for file in listed.files for part in file.sizes(listed.part_bytes))
        sizes = {sha256: size for _, size, sha256 in parts if sha256 not in given}
        return all(self._sender.gives(sha256, size) for sha256, size in sizes.items())

    def _files(
        self, folder: OpenFolder, record_name: str, record: Record, sent: Sent
    ) -> list[File]:
        sources = [
            Source(folder.inside / path, folder.path / path, path, size, sha256)
            for path, size, sha256 in named_files(folder, record_name, record)
        ]
        found = self._sender.send(sources, self._listed(), sent)
        return sorted(found, key=lambda file: file.path)

    def _listed(self) -> Known:
        """What the newest version lists; nothing where its manifest is gone, or damaged."""
        if self._standing is None or self._sender.read_back:
            return Known()
        try:
            earlier = versions.read_manifest(self._sender.store, self._place, self._standing)
        except MirrorError:
            return Known()  # all is compared; that the mirror does not answer is said by that
        is_cut_alike = earlier.part_bytes == self._sender.part_bytes
        return Known(
            {file.sha256: file for file in earlier.files} if is_cut_alike else {},
            {part for file in earlier.files for part in file.parts},
        )

    def _outer(self, folder: OpenFolder) -> Outer | None:
        """The artifact that this one, which is open, is nested in."""
        above = list(Path(self._place.entry.artifact).parents)[:-1]
        path = next((path for path in above if provenance.holds_record(self._root / path)), None)
        if path is None:
            return None
        record = provenance.read_record(self._root / path / provenance.RECORD)
        if folder.replaced():
            raise GristmillError(f"{folder.path}: {path} was built again: push again")
        return Outer(artifact=path.as_posix(), data_version=record.data_version)
