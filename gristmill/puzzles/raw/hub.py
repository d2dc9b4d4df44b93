"""Where raw puzzles can be fetched from, and fetching them into a drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.inbox import hub
from gristmill.inbox.hub import Fetched, HubError, RemoteFile, Source
from gristmill.run.progress import SILENT, Progress

SOURCES: Final[Mapping[str, str]] = {
    "sudoku-extreme": "sapientinc/sudoku-extreme",
    "maze-30x30-hard-1k": "sapientinc/maze-30x30-hard-1k",
}
"""The repository of each drop that can be fetched."""
FILES: Final = ("train.csv", "test.csv")
"""The files of a repository that a drop gets."""


@dataclass(frozen=True)
class Reached:
    """What a repository holds."""

    source: Source
    files: tuple[RemoteFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)


def reached(
    repo: str, revision: str = "main", endpoint: str | None = None, token: str | bool = False
) -> Reached:
    """Look at a repository: its commit, and the files that a drop would get.

    revision: branch, tag or commit; default "main".
    endpoint: address of the hub; None (default) for the usual one.
    token: for repositories that need one; False (default) sends none.

    Raises HubError if the hub does not answer, has no such repository, or if the repository lacks
    one of `FILES`.
    """
    commit = hub.commit_of(repo, revision, endpoint, token)
    source = Source(repo, commit, endpoint, token)
    files = tuple(hub.listed(source, lambda path: path in FILES))
    if missing := sorted(set(FILES) - {file.path for file in files}):
        raise HubError(f"{repo} at {commit}: has no file {missing[0]}")
    return Reached(source, files)


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> Fetched:
    """Download the files of a repository into a drop; files with the right contents are kept.

    drop: the folder in the inbox.
    place: what was reached.
    progress: gets the stage "fetch", in bytes.

    Raises HubError as `gristmill.inbox.hub.fetch_drop`.
    """
    files = {file.name: file for file in place.files}
    described = {name: {"bytes": file.bytes, "digest": file.digest} for name, file in files.items()}
    return hub.fetch_drop(drop, place.source, files, described, progress)
