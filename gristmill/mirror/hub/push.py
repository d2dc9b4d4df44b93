"""Publishing artifacts in a dataset repository of the hub, by commits of its own library.

The repository holds each artifact under its path in the data root, with its record beside it, so
that a copy of the repository can be read and verified as a data root. A commit shows all of an
artifact or nothing. Fetching from the hub is in `gristmill/inbox/hub.py`, mirrors that `pull` reads
in `pushing.py`. Source: `docs/mirror.md#a-dataset-repository-of-the-hub`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
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
from gristmill.inbox.hub import HubError
from gristmill.mirror import versions
from gristmill.mirror.hub.neutral import neutral
from gristmill.mirror.hub.readme import PARQUET, README, readme, rows_of
from gristmill.mirror.hub.repository import HubRepository
from gristmill.mirror.published import Item, Pushed, damaged, found, of_one_generation
from gristmill.mirror.versions import files_of, record_name
from gristmill.provenance import Output, Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts
from gristmill.run.progress import SILENT, Progress, Stage

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, RepoFile

_SMALL: Final = 5 << 20
"""Most bytes of a file that the hub takes in a commit itself; it stores larger ones apart."""
_FILES, _ATTEMPTS = 1_000, 5


@dataclass
class _Ready:
    """An artifact of which the repository has all that a commit does not bring itself.

    own: paths of its files. removed: paths that a commit takes away, unless it brings them.
    """

    own: set[str]
    size: int
    added: list[CommitOperationAdd] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    sent_bytes: int = 0
    rows: Head = field(default_factory=dict)
    note: str = ""

    def done(self, title: str, commit: str) -> Pushed:
        """What was done with it, once a commit holds it."""
        note, created = f"; {self.note}" if self.note else "", bool(self.added or self.removed)
        said = f"commit {commit[:12]}"
        if created:
            said += f", {len(self.own):,} files, {amounts.size(self.size)}"
            said += f", {amounts.size(self.sent_bytes)} sent"
        return Pushed(title, said + note, created, self.sent_bytes)


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
    room = _FILES
    for entry, _, (item, record) in chosen:
        files = 1 if record is None else len(record.outputs) + 1
        if group and files > room:
            yield group
            group, room = [], _FILES
        group, room = [*group, (entry, item)], room - files
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
        self._head, self._readme, self._parquet = "", "", parquet
        self._listed: dict[str, dict[str, RepoFile]] = {}

    def push(self) -> list[Pushed]:
        """Commit the artifacts; again on top of what others committed meanwhile."""
        for _ in range(_ATTEMPTS):
            self._head, self._listed = self._repository.head(), {}
            self._readme = self._repository.text(self._head, README)
            ready = {entry.title: self._prepared(entry, item) for entry, item in self._items}
            right = {title: each for title, each in ready.items() if isinstance(each, _Ready)}
            own = {path for each in right.values() for path in each.own}
            removed = {path for each in right.values() for path in each.removed} - own
            added = [operation for each in right.values() for operation in each.added]
            added += self._completed(right, removed)
            commit: str | None = self._head
            if added or removed:
                changed = [title for title, each in right.items() if each.added or each.removed]
                title = f"Publish {', '.join(changed or [README])}"[:200]
                commit = self._repository.commit(self._head, title, added, removed)
            if commit is not None:
                return [
                    each.done(title, commit) if isinstance(each, _Ready) else each
                    for title, each in ready.items()
                ]
        raise HubError(f"{self._repository.url}: others commit all the time: push again")

    def _completed(
        self, right: Mapping[str, _Ready], removed: set[str]
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

    def _below(self, folder: str) -> dict[str, RepoFile]:
        """What the head has below a folder, which partitions may share."""
        if folder not in self._listed:
            self._listed[folder] = self._repository.below(self._head, folder)
        return self._listed[folder]

    def _prepared(self, entry: Entry, item: find_artifacts.Artifact) -> _Ready | Pushed:
        def prepare(folder: OpenFolder, record: Record, data: bytes) -> _Ready:
            return self._prepare(folder, entry, record, data)

        try:
            return of_one_generation(item, entry, prepare)
        except HubError:
            raise
        except (GristmillError, OSError) as error:
            return Pushed(entry.title, error=str(error))

    def _prepare(self, folder: OpenFolder, entry: Entry, record: Record, data: bytes) -> _Ready:
        """Send the files that the repository lacks; a commit brings the small ones itself."""
        name, above = record_name(entry), record.artifact
        record, changed = neutral(folder, name, record)
        data = changed.setdefault(name, data)
        own = Output(path=name, bytes=len(data), sha256=sha256(data).hexdigest(), mtime_ns=0)
        files = {f"{above}/{file.path}": file for file in (own, *files_of(record))}
        ready, there = (
            _Ready({*files}, sum(file.bytes for file in files.values())),
            self._below(above),
        )
        for place, file in files.items():
            operation = _operation(place, folder, file, there.get(place), changed.get(file.path))
            self._stage.advance(file.bytes)
            ready.added += [] if operation is None else [operation]
        ready.sent_bytes = sum(operation.upload_info.size for operation in ready.added)
        self._repository.send(ready.added)
        for operation in ready.added:
            file = files[operation.path_in_repo]
            if operation._should_ignore:
                raise GristmillError(f"the repository ignores {operation.path_in_repo}")
            if isinstance(operation.path_or_fileobj, str):
                # The commit brings it, too: read it now, while the folder is open.
                operation.path_or_fileobj = _right(folder, file)
            elif operation.upload_info.sha256.hex() != file.sha256:
                raise damaged(folder.path / file.path)
        if ready.added and f"{above}/{name}" in there:
            ready.removed = self._before(folder.path, f"{above}/{name}", record) - ready.own
        splits = [*splits_of(record.asset, folder.path)]
        stood = {*self._below(f"{PARQUET}/{above}")} if splits else set()
        if stood or (splits and self._parquet):
            if any(each.partition for each in splits):
                stood = {path for path in stood if f"-{record.partition}-" in Path(path).name}
            if ready.added or not stood:
                self._project(record, splits, ready, stood)
        elif ready.added or config_name(above, "") not in self._readme:
            ready.rows, ready.note = rows_of(splits, record)
        return ready

    def _before(self, folder: Path, place: str, record: Record) -> set[str]:
        """What the repository has of the version before, and of what was nested in it.

        What is nested stays where the data version does, and where it is the build that is here.
        """
        there = self._below(record.artifact)
        before = self._repository.record(self._head, place)
        found = _paths(before, place)
        if before.data_version != record.data_version and place.endswith(f"/{provenance.RECORD}"):
            for path in there.keys() - found:
                if path.endswith(f"/{provenance.RECORD}"):
                    nested = self._repository.record(self._head, path)
                    standing = folder / PurePosixPath(path).relative_to(record.artifact)
                    if path.startswith(f"{nested.artifact}/") and not _is_build(standing, nested):
                        found |= _paths(nested, path)
        return found & there.keys()

    def _project(
        self, record: Record, splits: Sequence[Split], ready: _Ready, stood: set[str]
    ) -> None:
        """Send the rows as Parquet; the commit replaces those of the version before."""
        from huggingface_hub import CommitOperationAdd

        with TemporaryDirectory(prefix="gristmill-") as staged:
            partition = (record.partition or "") if any(each.partition for each in splits) else ""
            files = written(splits, Path(staged), f"{PARQUET}/{record.artifact}", partition)
            added = [CommitOperationAdd(each.file, f"{staged}/{each.file}") for each in files]
            self._repository.send(added)
            for operation in added:
                if isinstance(operation.path_or_fileobj, str):
                    operation.path_or_fileobj = Path(operation.path_or_fileobj).read_bytes()
                ready.sent_bytes += operation.upload_info.size
                ready.size += operation.upload_info.size
        ready.added += added
        ready.own |= {each.file for each in files}
        ready.removed |= stood
        ready.rows = head_of([*files], [record], sum(files.values()), record.artifact)


def _operation(
    place: str, folder: OpenFolder, file: Output, remote: RepoFile | None, data: bytes | None
) -> CommitOperationAdd | None:
    """What brings a file to its place in the repository; None where it is there.

    data: its bytes, where the repository gets others than the file has.
    """
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.utils.sha import git_hash

    large = None if remote is None else remote.lfs
    if large is not None and (large.size, large.sha256) == (file.bytes, file.sha256):
        return None
    if data is None and file.bytes > _SMALL and (remote is None or large is not None):
        return CommitOperationAdd(place, folder.inside / file.path)
    data = _right(folder, file) if data is None else data
    if remote is not None and large is None and remote.blob_id == git_hash(data):
        return None
    return CommitOperationAdd(place, data)


def _right(folder: OpenFolder, file: Output) -> bytes:
    """The bytes of a file, if they are those of the record."""
    with (folder.inside / file.path).open("rb") as opened:
        data = opened.read(file.bytes + 1)
    if sha256(data).hexdigest() != file.sha256:
        raise damaged(folder.path / file.path)
    return data


def _paths(record: Record, place: str) -> set[str]:
    """Paths in the repository of all files of an artifact, whose record is at `place`."""
    return {place, *(f"{record.artifact}/{file.path}" for file in files_of(record))}


def _is_build(path: Path, pushed: Record) -> bool:
    """Whether a record in the data root is of the build that was pushed."""
    try:
        here = provenance.read_record(path)
    except GristmillError:
        return False
    return (here.data_version, here.created) == (pushed.data_version, pushed.created)
