"""Where raw puzzles can be fetched from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gristmill.inbox import hub
from gristmill.inbox.hub import HubError, Reached, Source

SOURCES: Final[Mapping[str, str]] = {
    "sudoku-extreme": "sapientinc/sudoku-extreme",
    "maze-30x30-hard-1k": "sapientinc/maze-30x30-hard-1k",
}
"""The repository of each drop that can be fetched."""
FILES: Final = ("train.csv", "test.csv")
"""The files of a repository that a drop gets."""


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
    files = {file.path: file for file in hub.listed(source, lambda path: path in FILES)}
    if missing := sorted(set(FILES) - files.keys()):
        raise HubError(f"{repo} at {commit}: has no file {missing[0]}")
    return Reached(source, files)
