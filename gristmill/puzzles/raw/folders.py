"""The folders of a build's sources, before anything in them is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gristmill.contract import BadInput


def source_folders(sources: Sequence[Path] | Path) -> list[Path]:
    """The folders of one or more sources.

    sources: a folder, or several.

    Raises BadInput for a source that is missing, or no folder.
    Source: `docs/formats/puzzles.md#recipes`.
    """
    folders = [sources] if isinstance(sources, Path) else list(sources)
    for folder in folders:
        if not folder.exists():
            raise BadInput(folder, "is missing: a source is a folder of puzzles")
        if not folder.is_dir():
            raise BadInput(folder, "is no folder: name the folder that the file is in")
    return folders
