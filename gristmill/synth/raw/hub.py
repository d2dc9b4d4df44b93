"""Downloads raw SYNTH files from a dataset hub: pinned commit, resumed downloads, checked bytes.

All requests go through huggingface_hub. See also `files.py`: what the files are for.
Source: `docs/formats/synth.md#pinned-download`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.synth.raw.files import DATASET, DONE, REVISION

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_PARTIAL: Final = ".partial"


class HubError(GristmillError):
    """The hub did not answer, or sent other bytes than it listed. Fetched files stay."""


@dataclass(frozen=True)
class Source:
    """A dataset repository at one commit.

    repo_id: owner and name, default "PleIAs/SYNTH".
    revision: 40 hex digits of a commit, default `REVISION`. A branch is refused,
        because its commit may change.
    endpoint: address of the hub; None (default) for the one of huggingface_hub.
    token: for repositories that need one; False (default) sends none.

    Raises ValueError for another revision.
    Source: `docs/formats/synth.md#pinned-download`.
    """

    repo_id: str = DATASET
    revision: str = REVISION
    endpoint: str | None = None
    token: str | bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision):
            raise ValueError(f"revision {self.revision!r}: must be the 40 hex digits of a commit")


@dataclass(frozen=True)
class RemoteFile:
    """One file as the hub lists it.

    path: in the repository.
    bytes: size of the file.
    sha256: of its contents, in hex.
    """

    path: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """File name without its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Fetched:
    """What a fetch did.

    files: of the drop, in order.
    downloaded: number of files that this fetch downloaded.
    bytes: sum of their sizes.
    """

    files: list[Path]
    downloaded: int
    bytes: int


def remote_files(source: Source) -> list[RemoteFile]:
    """Return the Parquet files of a repository, sorted by name.

    source: the repository at one commit.

    Raises HubError if the hub does not answer, lists a file without a sha256, or
    lists two files of one name. Source: `docs/formats/synth.md#pinned-download`.
    """
    with _HubErrors(f"{source.repo_id} at {source.revision}"):
        listed = sorted(_parquet_files(source), key=lambda file: (file.name, file.path))
    for one, other in pairwise(listed):
        if one.name == other.name:
            raise HubError(
                f"{one.path} and {other.path}: one folder cannot hold both, rename one in the "
                "repository"
            )
    return listed


def _api(source: Source) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=source.endpoint, token=source.token)


def _parquet_files(source: Source) -> Iterator[RemoteFile]:
    from huggingface_hub import RepoFile

    entries = _api(source).list_repo_tree(
        source.repo_id, recursive=True, revision=source.revision, repo_type="dataset"
    )
    for entry in entries:
        if not isinstance(entry, RepoFile) or not entry.path.endswith(".parquet"):
            continue
        if entry.lfs is None:
            raise HubError(f"{entry.path}: the hub lists no sha256, so the file cannot be checked")
        yield RemoteFile(entry.path, entry.size, entry.lfs.sha256)


def fetch(
    folder: Path, source: Source, files: int | None = None, *, progress: Progress = SILENT
) -> Fetched:
    """Download the first Parquet files of a repository, by name, into a drop.

    folder: the drop. It is made if it is missing.
    source: the repository at one commit.
    files: number of files; None (default) for all.
    progress: gets the stage "fetch", in bytes of all these files.

    A file with the right sha256 is kept. An unfinished download, even of a killed
    process, is a `.partial` file; the next fetch continues it. `.done` is written
    after the last file. It is removed as soon as one file is missing or different.

    Raises HubError if the hub does not answer, closes the connection for good, or
    sends other bytes than it listed. Source: `docs/formats/synth.md#pinned-download`.
    """
    wanted = remote_files(source)
    if files is not None:
        wanted = wanted[: max(files, 0)]
    if not wanted:
        raise HubError(
            f"{source.repo_id} at {source.revision}: no Parquet files to fetch (files = {files})"
        )
    folder.mkdir(parents=True, exist_ok=True)
    downloaded = size = before = 0
    total = sum(file.bytes for file in wanted)
    with progress.stage("fetch", unit="bytes", total=total) as stage:
        for file in wanted:
            target = folder / file.name
            with _HubErrors(str(target)):
                present = target.exists() and sha256_file(target) == file.sha256
            if not present:
                # `.done` may be from an earlier fetch of fewer files or of another commit.
                # The drop is not complete before all files of this fetch are there.
                (folder / DONE).unlink(missing_ok=True)
                with _HubErrors(f"{source.repo_id}: {file.path}"):
                    _download(source, file, target, stage, before, total)
                downloaded, size = downloaded + 1, size + file.bytes
            before += file.bytes
            stage.move_to(before, total)
    (folder / DONE).touch()
    return Fetched([folder / file.name for file in wanted], downloaded, size)


class _Reporting:
    """A file under download that reports how long it is after each write."""

    def __init__(self, file: BinaryIO, stage: Stage, before: int, total: int) -> None:
        self._file, self._stage = file, stage
        self._before, self._total = before, total

    def write(self, data: bytes) -> int:
        size = self._file.write(data)
        self._stage.move_to(self._before + self._file.tell(), self._total)
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _download(
    source: Source, file: RemoteFile, target: Path, stage: Stage, before: int, total: int
) -> None:
    """Download one file; the stage is of all files, of which `before` bytes are done."""
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
    # The name has the sha256, so a partial file of another revision is not continued.
    partial = target.with_name(f".{file.name}.{file.sha256[:16]}{_PARTIAL}")
    with partial.open("ab") as out:
        if out.tell() > file.bytes:
            # `truncate` leaves the position, and `tell` below is where the download continues.
            out.seek(out.truncate(0))
        http_get(
            url,
            cast("BinaryIO", _Reporting(out, stage, before, total)),
            resume_size=out.tell(),
            expected_size=file.bytes,
            headers=build_hf_headers(token=source.token),
        )
    _check_download(file, partial)
    partial.replace(target)


def _check_download(file: RemoteFile, partial: Path) -> None:
    """Compare a downloaded file with the listing; remove it if it differs."""
    if (size := partial.stat().st_size) != file.bytes:
        partial.unlink()
        raise HubError(
            f"{file.path}: received {size:,} bytes, the hub lists {file.bytes:,}: fetch again"
        )
    if (digest := sha256_file(partial)) != file.sha256:
        partial.unlink()
        raise HubError(f"{file.path}: sha256 {digest}, the hub lists {file.sha256}: fetch again")


class _HubErrors:
    """Turns errors of the client library into a HubError that names the request."""

    def __init__(self, request: str) -> None:
        self._request = request

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        import httpx2

        if isinstance(error, OSError | ValueError | httpx2.HTTPError):
            raise HubError(f"{self._request}: {error}") from error
        if isinstance(error, LookupError | TypeError | AttributeError):
            # The client library does not check the form of an answer before it reads it.
            raise HubError(
                f"{self._request}: the answer is not that of a dataset hub ({error!r}): check "
                "the endpoint"
            ) from error
