"""Drops of the puzzle family: raw files of tasks and puzzles, in one folder for each source.

Source: `docs/formats/puzzles.md#recipes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.contract import BadInput
from gristmill.inbox.account import Account
from gristmill.inbox.marks import is_mark
from gristmill.inbox.sample_mark import left_out_of, not_samples
from gristmill.puzzles.raw.near_names import unpack_hint
from gristmill.puzzles.raw.recipes import BUILT_IN, Recipe
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import Entry, list_files

INBOX: Final = "puzzles"
_TASKS: Final = (".json",)
_TABLES: Final = (".csv", ".txt")

MAZE_FILES: Final = frozenset({"train.csv", "test.csv"})
"""Names of the files of a source of mazes."""
_ARC_DEPTH: Final = 1
_ARC: Final = "arc"
_MAZE: Final = "maze"
_LOOKED_AT: Final = 1 << 20
"""Bytes of the largest task that an account reads."""


def source_files(kind: str, folder: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a source that a builder reads, sorted by path.

    kind: of the recipe. ARC tasks are in folders one level below the source, all other puzzles in
        the source itself.
    folder: the source.
    links: what happens to links; default: they are refused.

    Raises BadInput for a link, pipe, socket or device with the name of such a file, OSError where
    a folder cannot be read.
    """
    found = []
    depth, endings = (_ARC_DEPTH, _TASKS) if kind == _ARC else (0, _TABLES)
    for entry in list_files(
        folder, root=folder, links=links, enter=lambda name: name.count("/") < depth
    ):
        name = entry.name.rpartition("/")[2]
        if entry.name.count("/") != depth or name.startswith("."):
            continue
        if not name.lower().endswith(endings):
            continue
        if entry.refusal is not None:
            raise BadInput(folder / entry.name, entry.refusal)
        if entry.stat.st_mode:
            found.append(entry.name)
    left = not_samples(folder, filter(_counts(kind), found))
    return sorted(folder / name for name in found if name not in left)


def _counts(kind: str) -> Callable[[str], bool]:
    """Whether a file that a builder of a kind lists takes the place of a sample."""
    from gristmill.puzzles.raw.sudoku_bank import is_sudoku_file

    if kind == _ARC:
        return lambda _: True
    return MAZE_FILES.__contains__ if kind == _MAZE else is_sudoku_file


def account(
    drop: Path, links: LinkRule = REFUSE_LINKS, recipes: Collection[Recipe] = BUILT_IN.values()
) -> Account:
    """What becomes of each file of a drop: by names, and a look at the first file of each folder.

    drop: a folder of the inbox.
    links: what happens to links; default: they are refused.
    recipes: those of the data root; default: the built-in ones. Those that name the drop say which
        of its folders are read; a drop that none names is taken for what its files are.

    Raises BadInput where no recipe can take the drop for its source, OSError where it cannot be
    read.
    """
    entries = {entry.name: entry for entry in _visible(drop, links)}
    for name, entry in entries.items():
        if entry.refusal is not None:
            raise BadInput(drop / name, entry.refusal)
    taken: set[str] = set()
    refused: list[tuple[str, BadInput]] = []
    for recipe, kind, source in _named(drop.name, recipes) or _guessed(entries):
        try:
            taken |= {f"{source}/{name}".lstrip("/") for name in _read(kind, drop / source, links)}
        except BadInput as error:
            refused.append((recipe, error))
    if not taken:
        raise refused[0][1] if refused else BadInput(drop, _no_file(entries))
    notes = [f"not for the recipe {recipe}: {error}" for recipe, error in refused if recipe]
    left_out = _left_out(entries, taken) | left_out_of(drop, taken)
    return Account({"": sorted(taken)}, left_out, notes)


def _visible(drop: Path, links: LinkRule) -> Iterator[Entry]:
    """The entries of a drop without marks, settings and hidden ones."""
    for entry in list_files(drop, root=drop.parent, links=links):
        is_hidden = any(part.startswith(".") for part in entry.name.split("/"))
        if not is_hidden and not is_mark(entry.name) and entry.name != FILE:
            yield entry


def _named(drop: str, recipes: Collection[Recipe]) -> list[tuple[str, str, str]]:
    """Recipe, kind and folder below the drop of each source that a recipe names."""
    return [
        (recipe.name, recipe.kind, source.partition("/")[2])
        for recipe in recipes
        for source in recipe.sources
        if source.partition("/")[0] == drop
    ]


def _guessed(names: Collection[str]) -> list[tuple[str, str, str]]:
    """Kinds and folders that a recipe might name: tasks before tables."""
    sources: dict[tuple[str, str], None] = {}
    for kind, endings, above in ((_ARC, _TASKS, 2), ("sudoku", _TABLES, 1)):
        for name in sorted(names, key=lambda name: (name.count("/"), name)):
            if name.lower().endswith(endings) and _is_puzzle(name):
                folders = PurePosixPath(name).parts[:-above]
                sources[kind, "/".join(folders)] = None
        if sources:
            break
    return [("", kind, source) for kind, source in sources]


def _is_puzzle(name: str) -> bool:
    from gristmill.puzzles.raw.sudoku_bank import is_bank

    last = name.rpartition("/")[2]
    return not last.lower().endswith(".txt") or is_bank(last)


def _read(kind: str, folder: Path, links: LinkRule) -> list[str]:
    """Paths in a source of the files that a builder of a kind reads. Raises BadInput as it does."""
    from gristmill.puzzles.raw.arc_tasks import read_task, task_entries
    from gristmill.puzzles.raw.rated_csv import check_header
    from gristmill.puzzles.raw.sudoku_bank import read_bank, sudoku_files
    from gristmill.puzzles.raw.table_names import both_tables

    if not folder.is_dir():
        raise BadInput(folder, "is missing: a source is a folder of puzzles")
    if kind == _ARC:
        first_of: set[str] = set()
        entries = task_entries(folder, links)
        for entry in entries:
            below = entry.name.rpartition("/")[0]
            size = entry.stat.st_size
            if not size or (below not in first_of and size <= _LOOKED_AT):
                read_task(folder, entry.name, links)
            first_of.add(below)
        return [entry.name for entry in entries]
    if kind == _MAZE:
        listed = [entry.name for entry in list_files(folder, root=folder, links=links, deep=False)]
        paths = list(both_tables(folder, listed).values())
        banks: list[Path] = []
    else:
        files = sudoku_files(folder, links)
        paths = [file.path for file in files if file.split is not None]
        banks = [file.path for file in files if file.split is None]
    for path in paths:
        check_header(path, links)
    for path in banks:
        next(read_bank(path, links=links), None)
    return [path.name for path in (*paths, *banks)]


def _left_out(entries: Mapping[str, Entry], taken: Collection[str]) -> dict[str, str]:
    """Why each other file is not read; a folder of which nothing is read stands for its files."""
    used = {"/".join(parts[:k]) for parts in map(_parts, taken) for k in range(len(parts))}
    left: dict[str, str] = {}
    for name in sorted(set(entries) - set(taken)):
        parts = _parts(name)
        folders = ("/".join(parts[:k]) for k in range(1, len(parts)))
        unread = next((folder for folder in folders if folder not in used), None)
        if unread is not None:
            left[f"{unread}/"] = "no recipe reads this folder"
        else:
            is_one = name.lower().endswith((*_TASKS, *_TABLES)) and _is_puzzle(name)
            left[name] = "other files are the source" if is_one else "no file of puzzles"
    return left


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts


def _no_file(names: Collection[str]) -> str:
    return (
        "holds no file of puzzles: put ARC tasks (.json) in folders below it, or puzzles as .csv"
        f" or .txt into it{unpack_hint(names)}"
    )
