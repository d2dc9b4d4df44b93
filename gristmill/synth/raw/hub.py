"""Raw SYNTH files from a dataset hub: pinned revision, resumed downloads, checked contents.

Everything goes through huggingface_hub; what a file is for belongs to `raw.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_PARTIAL: Final = ".partial"


class HubError(GristmillError):
    """The hub gave something else than it promised, or nothing; what was fetched stays."""


@dataclass(frozen=True)
class Source:
    """A dataset repository at one commit.

    revision: the 40 hex digits of a commit, never a branch, which may move.
    endpoint: address of the hub; None for huggingface_hub's own default.
    token: for repositories that ask for one; False sends none.
    """

    repo_id: str = raw.DATASET
    revision: str = raw.REVISION
    endpoint: str | None = None
    token: str | bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision):
            raise ValueError(f"revision {self.revision!r}: must be a commit's 40 hex digits")


@dataclass(frozen=True)
class RemoteFile:
    """One file as the hub lists it: path in the repository, bytes, sha256 of the contents."""

    path: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Fetched:
    """What a fetch did: the drop's files in order, how many of them came now, how many bytes."""

    files: list[Path]
    downloaded: int
    bytes: int


def remote_files(source: Source) -> list[RemoteFile]:
    """The Parquet files of the repository at that commit, by name.

    Raises HubError where the hub cannot be asked, or lists a file without a sha256
    or two of one name.
    """
    with _told(f"{source.repo_id} at {source.revision}"):
        found = sorted(_listed(_api(source), source), key=lambda file: (file.name, file.path))
    for one, other in pairwise(found):
        if one.name == other.name:
            raise HubError(f"{one.path} and {other.path}: one folder cannot hold both")
    return found


def _api(source: Source) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=source.endpoint, token=source.token)


def _listed(api: HfApi, source: Source) -> Iterator[RemoteFile]:
    from huggingface_hub import RepoFile

    entries = api.list_repo_tree(
        source.repo_id, recursive=True, revision=source.revision, repo_type="dataset"
    )
    for entry in entries:
        if not isinstance(entry, RepoFile) or not entry.path.endswith(".parquet"):
            continue
        if entry.lfs is None:
            raise HubError(f"{entry.path}: the hub tells no sha256, so it cannot be checked")
        yield RemoteFile(entry.path, entry.size, entry.lfs.sha256)


def fetch(folder: Path, source: Source, files: int | None = None) -> Fetched:
    """Bring the first `files` Parquet files of `source` (None: all) into `folder`.

    A file that is there with the right sha256 is kept. A download that broke
    off, even by a kill, goes on where it stopped: its bytes stay in a
    `.partial` file that is renamed once size and sha256 are right. When all
    are there, `.done` says that the drop is whole; it goes as soon as one file
    is missing or another.

    Raises HubError where the hub does not answer, breaks off for good, or sends
    other bytes than it listed.
    """
    wanted = remote_files(source)
    if files is not None:
        wanted = wanted[: max(files, 0)]
    if not wanted:
        raise HubError(f"{source.repo_id} at {source.revision}: no Parquet files")
    folder.mkdir(parents=True, exist_ok=True)
    downloaded = size = 0
    for file in wanted:
        target = folder / file.name
        with _told(str(target)):
            if target.exists() and sha256_file(target) == file.sha256:
                continue
        # Of an earlier fetch of fewer files or another commit: until all are
        # there again nobody may take the drop for whole.
        (folder / raw.DONE).unlink(missing_ok=True)
        with _told(f"{source.repo_id}: {file.path}"):
            _download(source, file, target)
        downloaded, size = downloaded + 1, size + file.bytes
    (folder / raw.DONE).touch()
    return Fetched([folder / file.name for file in wanted], downloaded, size)


def _download(source: Source, file: RemoteFile, target: Path) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        build_hf_headers,
        disable_progress_bars,
    )

    disable_progress_bars("huggingface_hub.http_get")
    url = hf_hub_url(
        source.repo_id,
        file.path,
        repo_type="dataset",
        revision=source.revision,
        endpoint=source.endpoint,
    )
    # Named by its contents: what is left of another revision is not taken up.
    partial = target.with_name(f".{file.name}.{file.sha256[:16]}{_PARTIAL}")
    with partial.open("ab") as out:
        if out.tell() > file.bytes:
            out.truncate(0)
        http_get(
            url,
            out,
            resume_size=out.tell(),
            expected_size=file.bytes,
            headers=build_hf_headers(token=source.token),
        )
    if (found := partial.stat().st_size) != file.bytes:
        partial.unlink()
        raise HubError(f"{file.path}: {found:,} bytes came, {file.bytes:,} were listed")
    if (digest := sha256_file(partial)) != file.sha256:
        partial.unlink()
        raise HubError(f"{file.path}: sha256 {digest}, the hub lists {file.sha256}: fetch again")
    partial.replace(target)


class _told:
    """Turns what the client library raises into a HubError that names what was asked for."""

    def __init__(self, asked: str) -> None:
        self._asked = asked

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        import httpx2

        if isinstance(error, OSError | ValueError | httpx2.HTTPError):
            raise HubError(f"{self._asked}: {error}") from error
        if isinstance(error, LookupError | TypeError | AttributeError):
            # The client takes a hub's answer apart without a look at its form.
            raise HubError(f"{self._asked}: answers unlike a hub ({error!r})") from error
