"""Publishing artifacts in a dataset repository of the hub, by commits of its own library.

The repository holds each artifact under its path in the data root, with its record beside it, so
that a copy of the repository can be read and verified as a data root. A commit shows all of an
artifact or nothing. Fetching from the hub is in `gristmill/inbox/hub.py`, mirrors that `pull` reads
in `transfers.py`. Source: `docs/mirror.md#a-dataset-repository-of-the-hub`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import yaml

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.exports import card
from gristmill.exports.card import Head
from gristmill.exports.project import written
from gristmill.exports.table import Split
from gristmill.families import splits_of
from gristmill.inbox.hub import HubError, hub_errors
from gristmill.mirror import versions
from gristmill.mirror.store import MirrorError
from gristmill.mirror.versions import Item, Pushed, damaged, files_of, found, record_name
from gristmill.provenance import Output, Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts
from gristmill.run.progress import SILENT, Progress, Stage

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi, RepoFile

_MOST: Final = 64 << 20


def neutral(folder: OpenFolder, name: str, record: Record) -> tuple[Record, dict[str, bytes]]:
    """The record of what is pushed, and the files of it that differ from those that stand here."""
    named = sorted({record.artifact, *(each.path for each in record.inputs if each.path)})
    texts = b"|".join(re.escape(json.dumps(each)[1:-1].encode()) for each in named)
    # A text that begins with a slash, up to the last place of an artifact in it.
    path = re.compile(rb'"/(?:[^"\\]|\\.)*(/(?:' + texts + rb')(?=["/]))')
    changed: dict[str, bytes] = {}
    outputs = list(record.outputs)
    for at, output in enumerate(outputs):
        if output.payload or not output.path.endswith(".json") or output.bytes > _MOST:
            continue
        data = (folder.inside / output.path).read_bytes()
        if hashlib.sha256(data).hexdigest() != output.sha256:
            raise damaged(folder.path / output.path)
        if (text := path.sub(rb'"\1', data)) != data:
            changed[output.path] = text
            said = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
            outputs[at] = output.model_copy(update=said)
    if not changed:
        return record, {}
    pushed = record.model_copy(update={"outputs": outputs}).sealed()
    return pushed, changed | {name: pushed.to_bytes()}


README: Final = "README.md"
PARQUET: Final = "parquet"
"""The folder of a repository with rows that are pushed as Parquet, below it by artifact."""
_REPLACED: Final = ("configs", "dataset_info", "size_categories")
_BODY: Final = """# {name}

Each folder with a `provenance.json`, or `provenance/`, is an artifact that Gristmill built. The
record lists its files with their sha256, what they were made from, and the settings.
`gristmill verify --no-inputs` compares a download with it, and `gristmill trace` leads from a row
to its raw bytes.
"""


def rows_of(splits: Sequence[Split], record: Record) -> tuple[Head, str]:
    """What the head of a README.md says of the rows of an artifact, and why it says nothing.

    splits: of the folder, if any. record: of the partition that is pushed.
    """
    if any(not each.file for each in splits):
        return {}, "load_dataset does not open it: push it with --parquet"
    above, rows = record.artifact, card.rows_in(splits, [record])
    inside = [replace(each, file=f"{above}/{each.file}") for each in card.filled(splits, [record])]
    try:
        return (card.head(inside, [record], rows, above) if inside else {}), ""
    except GristmillError as error:
        return {}, f"load_dataset does not open it: {error}"


def readme(
    before: str, found: Mapping[str, Head], removed: Collection[str], name: str
) -> tuple[str, dict[str, str]]:
    """The README.md of a repository after a push; by artifact, what a person should know of it.

    Raises BadInput where the head that stands is no YAML.
    """
    kept = yaml.safe_load(card.parted(before, README)[0]) or {}
    standing = _named(kept.get("configs"))
    configs = {key: each for key in standing if (each := _left(standing[key], removed))}
    infos = _named(kept.get("dataset_info"))
    infos = {key: infos[key] for key in infos if key in configs or key not in standing}
    for each in (each for said in found.values() for each in said["configs"]):
        key = each["config_name"]
        if key in configs and _formats(configs[key]) != _formats(each):  # now as Parquet
            del configs[key]
            infos.pop(key, None)
    notes: dict[str, str] = {}
    taken = []
    for title, said in found.items():
        formats = set().union(*map(_formats, configs.values()))
        own = set().union(*map(_formats, said["configs"]))
        if formats and own != formats:
            of, others = ", ".join(sorted(own)), ", ".join(sorted(formats))
            notes[title] = f"load_dataset does not open it: its rows are {of}, others {others}"
            continue
        taken.append(said)
        for each in said["configs"]:
            key = each["config_name"]
            configs[key] = _joined(configs[key], each) if key in configs else each
        for key, each in _named(said.get("dataset_info")).items():
            has = {item["name"] for item in each["features"]}
            before_it = infos.get(key, {}).get("features", []) if key.startswith("all.") else []
            more = [item for item in before_it if item["name"] not in has]
            infos[key] = {**each, "features": [*each["features"], *more]}
        licence, stated = said.get("license", "not known"), kept.get("license")
        if stated not in (None, licence):
            notes[title] = f"its licence is {licence}, and README.md says {stated}"
    merged = {"configs": [*configs.values()], "dataset_info": [*infos.values()]}
    after = _of_all(taken, kept, not standing) | {key: merged[key] for key in merged if merged[key]}
    if not taken and configs == standing:
        return before, notes
    return card.completed(before or _BODY.format(name=name), after, README, _REPLACED), notes


def _of_all(taken: Sequence[Head], kept: Head, is_first: bool) -> Head:
    """What the head says of all rows; of several sizes the largest, which is not too large."""
    licences = {each.get("license") for each in taken}
    sizes = [size for each in (kept, *taken) for size in each.get("size_categories", [])]
    found = {
        "license": licences.pop() if is_first and len(licences) == 1 else None,
        "language": sorted({code for each in taken for code in each.get("language", [])}),
        "size_categories": sorted(set(sizes), key=card.size_rank)[-1:],
        "tags": ["gristmill"],
    }
    return {key: value for key, value in found.items() if value}


def _named(entries: Any) -> dict[str, dict[str, Any]]:
    """Entries of the head by the name of their config; a single one may be no list."""
    listed = [entries] if isinstance(entries, Mapping) else entries or []
    return {str(each.get("config_name", "default")): dict(each) for each in listed}


def _files(config: Head) -> Iterator[tuple[str, list[str]]]:
    """The files of each split of a config, in any form that the library takes."""
    given = config.get("data_files") or []
    for each in [given] if isinstance(given, str) else given:
        split, path = ("train", each) if isinstance(each, str) else (each["split"], each["path"])
        yield split, [path] if isinstance(path, str) else path


def _formats(config: Head) -> set[str]:
    return {PurePosixPath(path).suffix for _, paths in _files(config) for path in paths} - {""}


def _left(config: Head, removed: Collection[str]) -> Head | None:
    """A config without the files that are removed; None where nothing is left."""
    files = list(_files(config))
    if not any(path in removed for _, paths in files for path in paths):
        return config
    left = ((split, [path for path in paths if path not in removed]) for split, paths in files)
    listed = [{"split": split, "path": paths} for split, paths in left if paths]
    return {**config, "data_files": listed} if listed else None


def _joined(before: Head, after: Head) -> Head:
    """A config with the files of two: those of several partitions."""
    files: dict[str, set[str]] = {}
    for split, paths in (*_files(before), *_files(after)):
        files.setdefault(split, set()).update(paths)
    listed = [{"split": split, "path": sorted(paths)} for split, paths in files.items()]
    return {**before, "data_files": listed}


_URL: Final = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([\w.-]+))?/?", re.ASCII)


class HubRepository:
    """A branch of a dataset repository."""

    def __init__(self, url: str, parallel: int) -> None:
        if (parts := _URL.fullmatch(url)) is None:
            raise MirrorError(f"{url}: a dataset repository is hf://datasets/OWNER/NAME[@BRANCH]")
        try:
            from huggingface_hub import HfApi, get_token
        except ModuleNotFoundError as error:
            raise MirrorError(
                f"{url}: publishing on the hub needs its library: "
                f"pip install 'gristmill[pipeline]' ({error})"
            ) from error
        self.url, self._repo, self._branch = url, parts[1], parts[2] or "main"
        self.name = parts[1].partition("/")[2]
        self._parallel, token = parallel, get_token()
        if token is None:
            raise MirrorError(
                f"{url}: the hub takes commits with a token alone: set HF_TOKEN, or call "
                "`hf auth login`"
            )
        self._api: HfApi = HfApi(token=token)

    def make(self) -> None:
        """Make the repository where there is none, private, and the branch."""
        with hub_errors(self.url):
            if not self._api.repo_exists(self._repo, repo_type="dataset"):
                self._api.create_repo(self._repo, repo_type="dataset", private=True, exist_ok=True)
            if self._branch != "main":
                self._api.create_branch(
                    self._repo, branch=self._branch, repo_type="dataset", exist_ok=True
                )

    def head(self) -> str:
        """The newest commit of the branch."""
        with hub_errors(self.url):
            return str(self._api.dataset_info(self._repo, revision=self._branch).sha)

    def below(self, commit: str, folder: str) -> dict[str, RepoFile]:
        """All files of a commit below a folder, by path."""
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import EntryNotFoundError

        with hub_errors(self.url):
            try:
                listed = self._api.list_repo_tree(
                    self._repo, folder, recursive=True, revision=commit, repo_type="dataset"
                )
                return {each.path: each for each in listed if isinstance(each, RepoFile)}
            except EntryNotFoundError:
                return {}

    def text(self, commit: str, path: str) -> str:
        """The text of a file of a commit; empty where it has none."""
        from huggingface_hub.errors import EntryNotFoundError

        with hub_errors(self.url), tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
            try:
                found = self._api.hf_hub_download(
                    self._repo, path, repo_type="dataset", revision=commit, local_dir=folder
                )
            except EntryNotFoundError:
                return ""
            return Path(found).read_text()

    def record(self, commit: str, path: str) -> Record:
        """A record in a commit. Raises HubError where the file is none."""
        try:
            return versions.parsed_record(self.text(commit, path).encode(), path)
        except GristmillError as error:
            raise HubError(
                f"{self.url}: {path} is no record of an artifact ({error}): remove it there, then "
                "push again"
            ) from error

    def send(self, operations: Iterable[CommitOperationAdd]) -> None:
        """Send what a commit does not bring itself, and what the hub does not have."""
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            are_progress_bars_disabled,
            disable_progress_bars,
        )

        if not are_progress_bars_disabled():
            disable_progress_bars()  # the push shows its own
        with hub_errors(self.url):
            try:
                self._api.preupload_lfs_files(
                    self._repo,
                    operations,
                    repo_type="dataset",
                    revision=self._branch,
                    num_threads=self._parallel,
                )
            except RuntimeError as error:  # what the library makes of a failed upload
                raise HubError(f"{self.url}: {error} {error.__cause__}") from error

    def commit(
        self, head: str, title: str, added: Iterable[CommitOperationAdd], removed: Iterable[str]
    ) -> str | None:
        """Commit on top of `head`; the new commit, None where the branch has another head now."""
        from huggingface_hub import CommitOperationDelete
        from huggingface_hub.errors import HfHubHTTPError

        gone = [CommitOperationDelete(path, is_folder=False) for path in sorted(removed)]
        with hub_errors(self.url):
            try:
                done = self._api.create_commit(
                    self._repo,
                    [*added, *gone],
                    commit_message=title,
                    repo_type="dataset",
                    revision=self._branch,
                    parent_commit=head,
                    num_threads=self._parallel,
                )
            except HfHubHTTPError as error:
                if error.response is not None and error.response.status_code == 412:
                    return None
                raise
        return str(done.oid)


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
    names, artifacts, progress: as for `transfers.push`.
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
            return versions.of_one_generation(item, entry, prepare)
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
        elif ready.added or card.config_name(above, "") not in self._readme:
            ready.rows, ready.note = rows_of(splits, record)
        return ready

    def _before(self, folder: Path, place: str, record: Record) -> set[str]:
        """What the repository has of the version before, and of what was nested in it."""
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
        ready.rows = card.head([*files], [record], sum(files.values()), record.artifact)


def _operation(
    place: str, folder: OpenFolder, file: Output, remote: RepoFile | None, data: bytes | None
) -> CommitOperationAdd | None:
    """What brings a file to its place in the repository; None where it is there."""
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
