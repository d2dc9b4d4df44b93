"""Downloads raw SYNTH files from a dataset hub into a drop."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gristmill.inbox import hub
from gristmill.inbox.hub import Fetched, HubError, RemoteFile
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.raw.files import DATASET, DONE, REVISION

__all__ = ["Fetched", "HubError", "RemoteFile", "Source", "fetch", "remote_files"]


@dataclass(frozen=True)
class Source(hub.Source):
    """A dataset repository at one commit, by default the pinned one of SYNTH.

    repo_id: owner and name, default "PleIAs/SYNTH".
    revision: 40 hex digits of a commit, default `REVISION`. A branch is refused,
        because its commit may change.
    endpoint: address of the hub; None (default) for the one of huggingface_hub.
    token: for repositories that need one; False (default) sends none.

    Raises ValueError for another revision.
    """

    repo_id: str = DATASET
    revision: str = REVISION


def remote_files(source: Source) -> list[RemoteFile]:
    """Return the Parquet files of a repository, sorted by name."""
    listed = hub.listed(source, lambda path: path.endswith(".parquet"))
    for file in listed:
        if file.sha256 is None:
            raise HubError(f"{file.path}: the hub lists no sha256, so the file cannot be checked")
    for one, other in pairwise(listed):
        if one.name == other.name:
            raise HubError(
                f"{one.path} and {other.path}: one folder cannot hold both, rename one in the "
                "repository"
            )
    return listed


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
    sends other bytes than it listed.
    """
    wanted = remote_files(source)
    if files is not None:
        wanted = wanted[: max(files, 0)]
    if not wanted:
        raise HubError(
            f"{source.repo_id} at {source.revision}: no Parquet files to fetch (files = {files})"
        )
    folder.mkdir(parents=True, exist_ok=True)
    # `.done` may be from an earlier fetch of fewer files or of another commit.
    # The drop is not complete before all files of this fetch are there.
    fetched = hub.download(
        source,
        [(file, folder / file.name) for file in wanted],
        on_change=lambda: (folder / DONE).unlink(missing_ok=True),
        progress=progress,
    )
    (folder / DONE).touch()
    return fetched
