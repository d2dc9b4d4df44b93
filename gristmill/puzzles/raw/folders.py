"""The folders of a build's sources, before anything in them is read: there, named, in order.

Source: `docs/formats/puzzles.md#recipes`, `docs/formats/puzzles.md#trace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from gristmill.contract import BadInput


def source_folders(sources: Sequence[Path] | Path) -> list[Path]:
    """The folders of one or more sources.

    sources: a folder, or several.

    Raises BadInput for a source that is missing, or no folder.
    """
    folders = [sources] if isinstance(sources, Path) else list(sources)
    for folder in folders:
        if not folder.exists():
            raise BadInput(folder, "is missing: a source is a folder of puzzles")
        if not folder.is_dir():
            raise BadInput(folder, "is no folder: name the folder that the file is in")
    return folders


def source_labels(folders: Sequence[Path]) -> dict[Path, str]:
    """The name of each source: as much of the end of its path as tells it from the others."""
    parts = {folder: folder.absolute().parts[1:] for folder in folders}
    for length in range(1, max(map(len, parts.values()), default=1) + 1):
        labels = {folder: "/".join(of[-length:]) for folder, of in parts.items()}
        if len(set(labels.values())) == len(parts):
            break
    return labels


def labelled_folders(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """The folders with their names, sorted by them, so that their order changes nothing.

    Raises BadInput for a folder that is there twice.
    """
    labels = source_labels(folders)
    named = sorted((labels[folder], folder) for folder in folders)
    for (label, _), (other, folder) in pairwise(named):
        if label == other:
            raise BadInput(folder, "is named twice: name each source once")
    return named
