"""Downloads files from a dataset hub: pinned commit, resumed downloads, checked bytes."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress, Stage

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PARTIAL: Final = ".partial"
"""Ending of an unfinished download."""
ORIGIN: Final = ".source.json"
"""File of a fetched drop that names the repository, the commit and the files."""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_READ_BYTES: Final = 1 << 20


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

    bytes: size of the file.
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
        return self.found_in(path) == self.digest

    def found_in(self, path: Path) -> str:
        """The same digest of a file on disk. Raises OSError if it cannot be read."""
        if self.sha256 is not None:
            return sha256_file(path)
        # The id is git's: an address of contents, which the hub also checks with TLS.
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        with path.open("rb") as file:
            while octets := file.read(_READ_BYTES):
                digest.update(octets)
        return digest.hexdigest()


@dataclass(frozen=True)
class Fetched:
    """What a fetch did.

    bytes: sum of their sizes.
    """

    files: list[Path]
    downloaded: int
    bytes: int


def commit_of(
    repo_id: str, revision: str = "main", endpoint: str | None = None, token: str | bool = False
) -> str:
    """Return the commit that a branch of a repository has now.

    revision: a branch, tag or commit; default "main".

    Raises HubError if the hub does not answer, or has no such repository or revision.
    """
    with HubErrors(f"{repo_id} at {revision}"):
        commit = _api(endpoint, token).dataset_info(repo_id, revision=revision).sha
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise ValueError(f"the hub names no commit, but {str(commit)[:60]!r}")
    return commit


def listed(source: Source, wanted: Callable[[str], bool]) -> list[RemoteFile]:
    """Return files of a repository, sorted by name and path.

    Raises HubError if the hub does not answer.
    """
    from huggingface_hub import RepoFile

    with HubErrors(f"{source.repo_id} at {source.revision}"):
        entries = _api(source.endpoint, source.token).list_repo_tree(
            source.repo_id, recursive=True, revision=source.revision, repo_type="dataset"
        )
        files = [
            RemoteFile(
                entry.path,
                entry.size,
                None if entry.lfs is None else entry.lfs.sha256,
                None if entry.lfs is not None else entry.blob_id,
            )
            for entry in entries
            if isinstance(entry, RepoFile) and wanted(entry.path)
        ]
    return sorted(files, key=lambda file: (file.name, file.path))


def download(
    source: Source,
    wanted: Sequence[tuple[RemoteFile, Path]],
    *,
    on_change: Callable[[], object] = lambda: None,
    progress: Progress = SILENT,
) -> Fetched:
    """Download files; a file with the right contents is kept.

    progress: gets the stage "fetch", in bytes of all these files, and a line for each retry.

    An unfinished download, even of a killed process, is a `.partial` file; the next call
    continues it. Raises HubError if the hub does not answer, closes the connection for good, or
    sends other bytes than it listed.
    """
    downloaded = size = before = 0
    total = sum(file.bytes for file, _ in wanted)
    with progress.stage("fetch", unit="bytes", total=total) as stage:
        for file, target in wanted:
            with HubErrors(str(target)):
                present = target.exists() and file.has_bytes_of(target)
            if not present:
                on_change()
                with HubErrors(f"{source.repo_id}: {file.path}"), _Retries(stage):
                    _download(source, file, target, stage, before, total)
                downloaded, size = downloaded + 1, size + file.bytes
            before += file.bytes
            stage.move_to(before, total)
    return Fetched([target for _, target in wanted], downloaded, size)


def fetch_drop(
    drop: Path,
    source: Source,
    files: Mapping[str, RemoteFile],
    described: Mapping[str, Mapping[str, object]],
    progress: Progress = SILENT,
) -> Fetched:
    """Download files into a drop; files with the right contents are kept.

    progress: gets the stage "fetch", in bytes.

    Files are downloaded into the hidden folder `.fetch-<drop>` beside the drop, which the sensor
    does not see, and moved when all are there; a fetch that was interrupted goes on.
    Raises HubError as `download`.
    """
    folder = drop.with_name(f".fetch-{drop.name}")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = []
    for name, file in files.items():
        kept = drop / name
        with HubErrors(str(kept)):
            is_kept = kept.is_file() and file.has_bytes_of(kept)
        wanted.append((file, kept if is_kept else folder / name))
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    fetched = download(source, wanted, progress=progress)
    origin = {"repository": source.repo_id, "revision": source.revision, "files": described}
    (folder / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    drop.mkdir(exist_ok=True)
    for name in (*sorted(files), ORIGIN):
        if (folder / name).exists():
            (drop / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).replace(drop / name)
    shutil.rmtree(folder)
    return replace(fetched, files=[drop / name for name in files])


def _api(endpoint: str | None, token: str | bool) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, token=token)


class _Retries(logging.Handler):
    """A context that reports, line by line, what the client library warns of: its retries."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(logging.WARNING)
        self._stage = stage

    def emit(self, record: logging.LogRecord) -> None:
        self._stage.say(" ".join(record.getMessage().split()))

    def __enter__(self) -> None:
        logging.getLogger("huggingface_hub").addHandler(self)

    def __exit__(self, *error: object) -> None:
        logging.getLogger("huggingface_hub").removeHandler(self)


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
    # The name has the digest, so a partial file of another revision is not continued.
    partial = target.with_name(f".{target.name}.{file.digest[:16]}{PARTIAL}")
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
    if (digest := file.found_in(partial)) != file.digest:
        partial.unlink()
        kind = "blob" if file.sha256 is None else "sha256"
        raise HubError(f"{file.path}: {kind} {digest}, the hub lists {file.digest}: fetch again")


class HubErrors:
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
