"""Drops of the puzzle family: raw files of tasks and puzzles, in one folder for each source.

Source: `docs/formats/puzzles.md#recipes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.inbox.sample_mark import not_samples
from gristmill.puzzles.raw.near_names import unpack_hint
from gristmill.puzzles.raw.sudoku_bank import is_sudoku_file
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import list_files

INBOX: Final = "puzzles"
_TASKS: Final = (".json",)
_TABLES: Final = (".csv", ".txt")
ENDINGS: Final = (*_TASKS, *_TABLES)
"""Endings of files that hold tasks or puzzles."""


MAZE_FILES: Final = frozenset({"train.csv", "test.csv"})
"""Names of the files of a source of mazes."""
_ARC_DEPTH: Final = 1
_COUNTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "arc": lambda _: True,
    "sudoku": is_sudoku_file,
    "maze": MAZE_FILES.__contains__,
}
"""Whether a file that a builder lists takes the place of a sample."""


def source_files(kind: str, folder: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a source that a builder reads, sorted by path.

    kind: of the recipe. ARC tasks are in folders one level below the source, all other puzzles in
        the source itself.
    folder: the source.
    links: what happens to links; default: they are refused.

    Raises BadInput for a link, pipe, socket or device with the name of such a file, OSError where
    a folder cannot be read. Source: `docs/formats/puzzles.md#recipes`.
    """
    found = []
    depth, endings = (_ARC_DEPTH, _TASKS) if kind == "arc" else (0, _TABLES)
    for entry in list_files(
        folder, root=folder, links=links, enter=lambda name: name.count("/") < depth
    ):
        name = entry.name.rpartition("/")[2]
        if entry.name.count("/") != depth or name.startswith(".") or not name.endswith(endings):
            continue
        if entry.refusal is not None:
            raise BadInput(folder / entry.name, entry.refusal)
        if entry.stat.st_mode:
            found.append(entry.name)
    left = not_samples(folder, filter(_COUNTS[kind], found))
    return sorted(folder / name for name in found if name not in left)


def refusal(drop: Path, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Why no recipe can take a drop for its source, None where one may.

    drop: a folder of the inbox.
    links: what happens to links; default: they are refused.

    Source: `docs/formats/puzzles.md#recipes`.
    """
    names = []
    try:
        for entry in list_files(drop, root=drop.parent, links=links):
            names.append(entry.name)
            name = entry.name.rpartition("/")[2]
            if name.endswith(ENDINGS) and not name.startswith("."):
                return None
    except BadInput as error:
        return str(error)
    return (
        f"{drop}: holds no file of puzzles: put ARC tasks (.json) in folders below it, or puzzles "
        f"as .csv or .txt into it{unpack_hint(names)}"
    )
