"""Fetching raw SYNTH files. Source: `docs/formats/synth.md#pinned-download`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from gristmill import keys
from gristmill.inbox import hub
from gristmill.inbox.hub import HubError, Reached, RemoteFile, Source
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.raw.files import DONE


def drop_name(source: Source) -> str:
    """Name of the drop for the files, as `SYNTH-6ebe6a97`."""
    return keys.checked(f"{source.repo_id.rpartition('/')[2]}-{source.revision[:8]}")


def reached(source: Source, count: int | None = None) -> Reached:
    """The first Parquet files of a repository, by name.

    count: how many; None (default) for all.

    Raises HubError if the hub does not answer, if there is no such file, or one that one folder
    cannot hold or whose sha256 is not known.
    """
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
    files = {file.name: file for file in listed[:count]}
    if not files:
        raise HubError(f"{source.repo_id} at {source.revision}: no Parquet files to fetch")
    return Reached(source, files)


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> list[RemoteFile]:
    """Download files into a drop, with `.done` once all are there.

    Raises HubError as `gristmill.inbox.hub.fetch_drop`.
    """
    with hub.HubErrors(str(drop)):
        for left in drop.glob(".*.partial"):  # of version 0.9; the drop would wait for it
            left.unlink()
    return hub.fetch_drop(drop, place, progress, DONE)
