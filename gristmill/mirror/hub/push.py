"""Publishing artifacts in a dataset repository of the hub, by commits of its own library.

The repository holds each artifact under its path in the data root, with its record beside it, so
that a copy of the repository can be read and verified as a data root. A commit shows all of an
artifact or nothing. Fetching from the hub is in `gristmill/inbox/hub.py`, mirrors that `pull` reads
in `pushing.py`. Source: `docs/mirror.md#a-dataset-repository-of-the-hub`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.exports.card import Head, config_name
from gristmill.exports.card import head as head_of
from gristmill.exports.project import written
from gristmill.exports.table import Split
from gristmill.families import splits_of
from gristmill.inbox.hub import HubError, RemoteFile
from gristmill.mirror import versions
from gristmill.mirror.hub.neutral import neutral
from gristmill.mirror.hub.readme import PARQUET, README, projected, readme, rows_of
from gristmill.mirror.hub.repository import HubRepository
from gristmill.mirror.layout import sha256_of
from gristmill.mirror.published import (
    Item,
    Pushed,
    damaged,
    found,
    named_files,
    of_one_generation,
)
from gristmill.provenance import Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts
from gristmill.run.progress import SILENT, Progress, Stage

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

_SMALL: Final = 5 << 20
"""Most bytes of a file that the hub takes in a commit itself; it stores larger ones apart."""
_FILES, _ATTEMPTS = 1_000, 5


@dataclass(frozen=True)
class Committed(Pushed):
    """What a push to a dataset repository did with one artifact partition.

    commit: that holds it; None where the push of this artifact failed.
    files, total_bytes: of the artifact, its record included.
    """

    commit: str | None = None
    files: int = 0
    total_bytes: int = 0
    note: str = ""

    def __str__(self) -> str:
        if self.commit is None:
            return f"failed     {self.title}: {self.error}"
        note = f"; {self.note}" if self.note else ""
        if not self.created:
            return f"unchanged  {self.title}: commit {self.commit[:12]}{note}"
        return (
            f"pushed     {self.title}: commit {self.commit[:12]}, {self.files:,} files, "
            f"{amounts.size(self.total_bytes)}, {amounts.size(self.sent_bytes)} sent{note}"
        )


@dataclass
class _Ready:
    """An artifact of which the repository has all that a commit does not bring itself."""

    files: list[tuple[str, int, str]]
    added: list[CommitOperationAdd] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    nested: dict[Entry, list[str]] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    sent_bytes: int = 0
    rows: Head = field(default_factory=dict)
    note: str = ""

    @property
    def changes(self) -> bool:
        """Whether a commit is needed."""
        return bool(self.added or self.removed)


def push(
    root: Path,
    url: str,
    names: Sequence[str] = (),
    *,
    artifacts: Sequence[find_artifacts.Artifact] | None = None,
    parallel: int = 8,
    parquet: bool = False,
    progress: Progress = SILENT,
) -> list[Pushed]:
    """Publish artifacts of a data root in a dataset repository; returns what became of each.

    root: the data root.
    url: `hf://datasets/OWNER/NAME`, or with `@BRANCH`. A repository that is missing is made, and is
        private.
    names, artifacts, progress: as for `pushing.push`.
    parallel: files that are sent at once; default 8.
    parquet: push the rows as Parquet, too, for the README.md; default False: only of artifacts that
        were pushed so before. They are written into the folder of temporary files first.

    What the repository has is not sent again. An artifact that cannot be pushed does not stop the
    others. Raises MirrorError for a wrong URL, without the library or a token, HubError where the
    hub does not answer, GristmillError for a name that means nothing.
    """
    repository = HubRepository(url, parallel)
    root = root.absolute()
    chosen = versions.chosen(found(root, artifacts), names, str(root))
    total = sum(output.bytes for _, _, (_, record) in chosen if record for output in record.outputs)
    done: list[Pushed] = []
    with progress.stage("push", "bytes", total) as stage:
        repository.make()
        for batch in _batches(chosen):
            done += _Batch(repository, stage, batch, parquet).push()
    return done


def _batches(
    chosen: Sequence[tuple[Entry, str, Item]],
) -> Iterator[list[tuple[Entry, find_artifacts.Artifact]]]:
    """The artifacts in groups for one commit each: of so many files, and one artifact at least."""
    group: list[tuple[Entry, find_artifacts.Artifact]] = []
    count = 0
    for entry, _, (item, record) in chosen:
        files = 1 if record is None else len(record.outputs) + 1
        if group and count + files > _FILES:
            yield group
            group, count = [], 0
        group.append((entry, item))
        count += files
    if group:
        yield group


class _Batch:
    """Artifacts that one commit brings."""

    def __init__(
        self,
        repository: HubRepository,
        stage: Stage,
        items: Sequence[tuple[Entry, find_artifacts.Artifact]],
        parquet: bool,
    ) -> None:
        self._repository, self._stage, self._items = repository, stage, items
        self._readme, self._parquet = "", parquet

    def push(self) -> list[Pushed]:
        """Commit the artifacts; again on top of what others committed meanwhile."""
        for _ in range(_ATTEMPTS):
            head = self._repository.head()
            self._readme = self._repository.text(head, README)
            ready = [self._prepared(head, entry, item) for entry, item in self._items]
            right = {
                entry.title: each
                for (entry, _), each in zip(self._items, ready, strict=True)
                if isinstance(each, _Ready)
            }
            removed = self._all_removed(ready)
            added = [operation for each in right.values() for operation in each.added]
            added += self._completed(right, removed)
            commit: str | None = head
            if added or removed:
                changed = [title for title, each in right.items() if each.changes] or [README]
                title = f"Publish {', '.join(changed)}"
                commit = self._repository.commit(head, title[:200], added, removed)
            if commit is not None:
                return [
                    self._done(commit, entry, each)
                    for (entry, _), each in zip(self._items, ready, strict=True)
                ]
        raise HubError(f"{self._repository.url}: others commit all the time: push again")

    def _completed(
        self, right: Mapping[str, _Ready], removed: Collection[str]
    ) -> list[CommitOperationAdd]:
        """What brings the README.md that names the rows of the artifacts, where it is another."""
        from huggingface_hub import CommitOperationAdd

        found = {title: each.rows for title, each in right.items() if each.rows}
        try:
            text, notes = readme(self._readme, found, removed, self._repository.name)
        except GristmillError as error:
            text, notes = self._readme, dict.fromkeys(found, str(error))
        for title, note in notes.items():
            right[title].note = note
        return [] if text == self._readme else [CommitOperationAdd(README, text.encode())]

    def _all_removed(self, ready: Sequence[_Ready | GristmillError]) -> set[str]:
        """What the commit removes; of nested artifacts that it brings, what they say themselves."""
        right = [
            (entry, each)
            for (entry, _), each in zip(self._items, ready, strict=True)
            if isinstance(each, _Ready)
        ]
        brought = {entry for entry, _ in right}
        removed = {path for _, each in right for path in each.removed}
        for _, each in right:
            for entry, paths in each.nested.items():
                removed.update(() if entry in brought else paths)
        return removed

    def _prepared(
        self, head: str, entry: Entry, item: find_artifacts.Artifact
    ) -> _Ready | GristmillError:
        name = item.record_path.relative_to(item.folder).as_posix()

        def prepare(folder: OpenFolder, record: Record) -> _Ready:
            return self._prepare(head, folder, name, record)

        try:
            return of_one_generation(item, entry, prepare)
        except HubError:
            raise
        except GristmillError as error:
            return error
        except OSError as error:
            return GristmillError(f"{item.folder}: {error}")

    def _prepare(self, head: str, folder: OpenFolder, name: str, record: Record) -> _Ready:
        """Send the files that the repository lacks; a commit brings the small ones itself."""
        record, changed = neutral(folder, name, record)
        named = named_files(folder, name, record, changed.get(name))
        above = record.artifact
        ready = _Ready([(f"{above}/{path}", size, sha256) for path, size, sha256 in named])
        there = self._repository.files(head, [path for path, _, _ in ready.files])
        sent: list[tuple[CommitOperationAdd, SourceFile]] = []
        for path, size, sha256 in named:
            file = SourceFile(
                folder.inside / path, folder.path / path, size, sha256, changed.get(path)
            )
            place = f"{above}/{path}"
            operation = self._operation(place, file, there.get(place), ready)
            if operation is None:
                self._stage.advance(size)
            else:
                sent.append((operation, file))
        self._repository.send([operation for operation, _ in sent])
        for operation, file in sent:
            file.compare(operation.upload_info.sha256.hex())
            if isinstance(operation.path_or_fileobj, str):
                # The commit brings it, too: read it now, while the folder is open.
                operation.path_or_fileobj = data = file.read()
                ready.blobs[operation.path_in_repo] = git_id(data)
            self._stage.advance(file.size)
            ready.sent_bytes += file.size
        ready.added = [operation for operation, _ in sent]
        if (standing := there.get(f"{above}/{name}")) is not None and ready.added:
            before = self._repository.record(head, standing)
            own = {path for path, _, _ in ready.files}.union(paths(before, name))
            gone = own - {path for path, _, _ in ready.files}
            ready.removed = sorted(self._repository.files(head, sorted(gone)))
            if name == provenance.RECORD and before.data_version != record.data_version:
                ready.nested = left_behind(self._repository, head, folder.path, above, own)
        splits = [*splits_of(record.asset, folder.path)]
        if splits and (self._parquet or projected(self._readme, record, splits)):
            if ready.changes or not projected(self._readme, record, splits, whole=False):
                self._project(head, record, splits, ready)
        elif ready.changes or config_name(above, "") not in self._readme:
            ready.rows, ready.note = rows_of(splits, record)
        return ready

    def _project(self, head: str, record: Record, splits: Sequence[Split], ready: _Ready) -> None:
        """Send the rows as Parquet; the commit replaces those of the version before."""
        from huggingface_hub import CommitOperationAdd

        with TemporaryDirectory(prefix="gristmill-") as staged:
            partition = (record.partition or "") if any(each.partition for each in splits) else ""
            files = written(splits, Path(staged), f"{PARQUET}/{record.artifact}", partition)
            added = [CommitOperationAdd(each.file, f"{staged}/{each.file}") for each in files]
            self._repository.send(added)
            for operation in added:
                path, said = operation.path_in_repo, operation.upload_info
                if isinstance(operation.path_or_fileobj, str):
                    operation.path_or_fileobj = data = Path(staged, path).read_bytes()
                    ready.blobs[path] = git_id(data)
                ready.files.append((path, said.size, said.sha256.hex()))
                ready.sent_bytes += said.size
        before = projected(self._readme, record, splits, whole=False)
        gone = before - {each.file for each in files}
        ready.added += added
        ready.removed += self._repository.files(head, sorted(gone))
        ready.rows = head_of([*files], [record], sum(files.values()), record.artifact)

    def _operation(
        self, place: str, file: SourceFile, remote: RemoteFile | None, ready: _Ready
    ) -> CommitOperationAdd | None:
        """What brings a file into the repository; None where it is there."""
        from huggingface_hub import CommitOperationAdd

        if remote is not None and (remote.sha256, remote.bytes) == (file.sha256, file.size):
            return None
        is_large = file.size > _SMALL and file.data is None
        if is_large and (remote is None or remote.sha256 is not None):
            return CommitOperationAdd(place, file.opened)
        data = file.read()
        ready.blobs[place] = git_id(data)
        if remote is not None and remote.digest == ready.blobs[place]:
            return None
        return CommitOperationAdd(place, data)

    def _done(self, commit: str, entry: Entry, ready: _Ready | GristmillError) -> Pushed:
        """Compare what the commit holds with the artifact."""
        if isinstance(ready, GristmillError):
            return Committed(entry.title, None, error=str(ready))
        there = self._repository.files(commit, [path for path, _, _ in ready.files])
        for path, _, sha256 in ready.files:
            remote = there.get(path)
            if remote is None or remote.digest not in (sha256, ready.blobs.get(path)):
                reason = f"commit {commit[:12]} has {path} with other bytes, or not at all"
                return Committed(entry.title, None, error=f"{reason}: push it again")
        return Committed(
            entry.title,
            None,
            ready.changes,
            ready.sent_bytes,
            commit=commit,
            files=len(ready.files),
            total_bytes=sum(size for _, size, _ in ready.files),
            note=ready.note,
        )


def left_behind(
    repository: HubRepository, head: str, folder: Path, artifact: str, own: Collection[str]
) -> dict[Entry, list[str]]:
    """Files of nested artifacts in the repository that are not nested in an artifact here."""
    there = repository.below(head, artifact)
    found: dict[Entry, list[str]] = {}
    for path in sorted(there):
        place = PurePosixPath(path)
        nested = place.parent.as_posix()
        if place.name != provenance.RECORD or path in own or nested == artifact:
            continue
        record = repository.record(head, there[path])
        standing = folder / place.parent.relative_to(artifact) / provenance.RECORD
        if record.artifact == nested and _build_of(record) != _standing(standing):
            found[Entry(nested)] = [
                each for each in paths(record, provenance.RECORD) if each in there
            ]
    return found


def paths(record: Record, name: str) -> list[str]:
    """Paths in the repository of all files of an artifact.

    name: path of the record in the artifact's folder.
    """
    inside = [name, *(output.path for output in record.outputs)]
    if record.inputs_file is not None:
        inside.append(record.inputs_file.path)
    return [f"{record.artifact}/{path}" for path in inside]


def _build_of(record: Record) -> tuple[str, datetime]:
    """What a record has in common with the one that is pushed in its place."""
    return record.data_version, record.created


def _standing(path: Path) -> tuple[str, datetime] | None:
    """The build of a record in the data root, None where there is none, or an unreadable one."""
    try:
        return _build_of(provenance.read_record(path))
    except GristmillError:
        return None


@dataclass(frozen=True)
class SourceFile:
    """A file of an artifact: a path that opens it, its path for messages, and what it should be.

    data: its bytes, where the repository gets others than the file has.
    """

    opened: Path
    shown: Path
    size: int
    sha256: str
    data: bytes | None = None

    def compare(self, sha256: str) -> None:
        """Raise BadInput where a file with this sha256 is not the one in the record."""
        if sha256 != self.sha256:
            raise damaged(self.shown)

    def read(self) -> bytes:
        """Its bytes, if they are those of the record."""
        if self.data is not None:
            return self.data
        with self.opened.open("rb") as file:
            data = file.read(self.size + 1)
        self.compare(sha256_of(data))
        return data


def git_id(data: bytes) -> str:
    """Git's id of contents."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
