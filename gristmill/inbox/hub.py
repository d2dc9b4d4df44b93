"""Fetches files of a dataset hub into a drop: one commit, and the bytes that the hub lists.

The client library downloads; what is here compares the files with the list of the hub, and puts
them into the drop once all are there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.inbox.copying import only_copy
from gristmill.inbox.listing import Account
from gristmill.run.progress import SILENT, Progress, Stage

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ORIGIN: Final = ".source.json"
"""File of a fetched drop that names the repository, the commit and the files."""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class HubError(GristmillError):
    """The hub did not answer, or sent other bytes than it listed. Fetched files stay."""


@dataclass(frozen=True)
class Source:
    """A dataset repository at one commit.

    repo_id: owner and name.
    revision: 40 hex digits of a commit. A branch is refused, because its commit may change.
    endpoint: address of the hub; None (default) for the one of huggingface_hub.
    token: for repositories that need one; False (default) sends none.

    Raises ValueError for another revision.
    """

    repo_id: str
    revision: str
    endpoint: str | None = None
    token: str | bool = False

    def __post_init__(self) -> None:
        if not _COMMIT.fullmatch(self.revision):
            raise ValueError(f"revision {self.revision!r}: must be the 40 hex digits of a commit")


@dataclass(frozen=True)
class RemoteFile:
    """One file as the hub lists it.

    sha256: of its contents, in hex; None for a small file that the repository holds itself.
    """

    path: str
    bytes: int
    sha256: str | None
    blob: str | None = None

    @property
    def name(self) -> str:
        """File name without its folder."""
        return self.path.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """What identifies the contents."""
        return self.sha256 or self.blob or ""

    def has_bytes_of(self, path: Path) -> bool:
        """Whether a file on disk has these contents. Raises OSError if it cannot be read."""
        if self.sha256 is not None:
            return sha256_file(path) == self.sha256
        # The id is git's: an address of contents, which the hub also checks with TLS.
        head = b"blob %d\0" % path.stat().st_size
        with path.open("rb") as file:
            of_git = hashlib.file_digest(file, lambda: hashlib.sha1(head, usedforsecurity=False))
        return of_git.hexdigest() == self.blob


@dataclass(frozen=True)
class Reached:
    """What a repository holds for a drop.

    files: by the path in the drop.
    left_out: why each other data file of the repository is not fetched, by its path.
    """

    source: Source
    files: Mapping[str, RemoteFile]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def account(self) -> Account:
        """What becomes of each data file of the repository."""
        return Account({"": list(self.files)}, self.left_out)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files.values())


def commit_of(
    repo_id: str, revision: str = "main", endpoint: str | None = None, token: str | bool = False
) -> str:
    """Return the commit that a branch of a repository has now.

    Raises HubError if the hub does not answer, or has no such repository or revision.
    """
    with hub_errors(f"{repo_id} at {revision}"):
        commit = _api(endpoint, token).dataset_info(repo_id, revision=revision).sha
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise ValueError(f"the hub names no commit, but {str(commit)[:60]!r}")
    return commit


def listed(source: Source, wanted: Callable[[str], bool]) -> list[RemoteFile]:
    """Return files of a repository, sorted by name and path.

    Raises HubError if the hub does not answer.
    """
    from huggingface_hub import RepoFile

    with hub_errors(f"{source.repo_id} at {source.revision}"):
        entries = _api(source.endpoint, source.token).list_repo_tree(
            source.repo_id, recursive=True, revision=source.revision, repo_type="dataset"
        )
        files = [
            RemoteFile(
                entry.path,
                entry.size,
                None if entry.lfs is None else entry.lfs.sha256,
                entry.blob_id,
            )
            for entry in entries
            if isinstance(entry, RepoFile) and wanted(entry.path)
        ]
    return sorted(files, key=lambda file: (file.name, file.path))


def download(source: Source, file: RemoteFile, folder: Path, stage: Stage | None = None) -> Path:
    """Download a file to its path below `folder`; one that is there is kept.

    Raises HubError if the hub does not answer, or sends other bytes than it listed.
    """
    from huggingface_hub import hf_hub_download

    with hub_errors(f"{source.repo_id}: {file.path}"):
        path = Path(
            hf_hub_download(
                source.repo_id,
                file.path,
                repo_type="dataset",
                revision=source.revision,
                local_dir=folder,
                endpoint=source.endpoint,
                token=source.token,
                tqdm_class=_bars(stage),
            )
        )
        if not file.has_bytes_of(path):
            path.unlink()
            kind = "sha256" if file.sha256 else "blob"
            raise HubError(
                f"{file.path}: its {kind} is not {file.digest}, which the hub lists: fetch again"
            )
    return path


def fetch_drop(
    drop: Path,
    place: Reached,
    progress: Progress = SILENT,
    mark: str | None = None,
) -> list[RemoteFile]:
    """Download files into a drop, and return those; files with the right contents are kept.

    mark: name of the file that says that the drop is complete; it is removed while it is not.
        Default None.

    Files are downloaded into the hidden folder `.fetch-<drop>` beside the drop, which the sensor
    does not see, and moved when all are there; an interrupted fetch continues with its whole
    files. Raises HubError as `download`, GristmillError where another process brings the drop.
    """
    # A drop may be a link to another disk, between which nothing is renamed.
    folder = drop.resolve().with_name(f".fetch-{drop.name}")
    done, source, files = 0, place.source, place.files
    origin = {
        "repository": source.repo_id,
        "revision": source.revision,
        "files": {
            name: {"path": file.path, "bytes": file.bytes, "digest": file.digest}
            for name, file in files.items()
        },
    }
    moves: dict[str, Path] = {}
    with hub_errors(str(drop)):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        only_copy(drop.resolve()),
        hub_errors(str(drop)),
        progress.stage("fetch", "bytes", place.bytes) as stage,
    ):
        folder.mkdir(exist_ok=True)
        for name, file in files.items():
            with hub_errors(str(drop / name)):
                is_kept = (drop / name).exists() and file.has_bytes_of(drop / name)
            if not is_kept:
                if mark is not None:
                    (drop / mark).unlink(missing_ok=True)
                moves[name] = download(source, file, folder, stage)
            done += file.bytes
            stage.move_to(done, place.bytes)
        drop.mkdir(exist_ok=True)
        for name, path in moves.items():
            (drop / name).parent.mkdir(parents=True, exist_ok=True)
            path.replace(drop / name)
        (folder / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
        (folder / ORIGIN).replace(drop / ORIGIN)
        if mark is not None:
            (drop / mark).touch()
        shutil.rmtree(folder)
    return [files[name] for name in moves]


def _api(endpoint: str | None, token: str | bool) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, token=token)


def _bars(stage: Stage | None) -> type:
    """A class of progress bars, as the client library makes them, that shows nothing of its own."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bars(tqdm):
        def __init__(self, *values: Any, **options: Any) -> None:
            options["disable"] = True
            super().__init__(*values, **options)  # type: ignore[no-untyped-call]

        def update(self, count: float | None = 1) -> None:
            if stage is not None:
                stage.advance(int(count or 0))

        # With these two the library has one bar for what it receives and for what it writes.
        def update_transfer(self, count: float) -> None: ...

        def set_transfer_postfix_str(self, *_: Any, **__: Any) -> None: ...

    return Bars


@contextmanager
def hub_errors(request: str) -> Iterator[None]:
    """Turns errors of the client library into a HubError that names the request."""
    import httpx2

    try:
        yield
    except (OSError, ValueError, httpx2.HTTPError) as error:
        raise HubError(f"{request}: {error}") from error
    except (LookupError, TypeError, AttributeError) as error:
        # The client library does not check the form of an answer before it reads it.
        raise HubError(
            f"{request}: the answer is not that of a dataset hub ({error!r}): check the endpoint"
        ) from error
