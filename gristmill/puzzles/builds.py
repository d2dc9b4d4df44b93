"""Puzzles: what a dataset is built from, how, where it goes, and how much room that takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Final

from gristmill.asset import Wanted
from gristmill.contract import BadInput, Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Input, raw_inputs
from gristmill.provenance.record import RECORD
from gristmill.publish.build import Attempt, Build, InputChanged
from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.format.names import AMBIGUOUS
from gristmill.puzzles.raw import drops
from gristmill.puzzles.raw.known_recipes import RECIPES_INBOX, ready_sources, recipe_of
from gristmill.puzzles.raw.recipes import BUILT_IN, CONFIGS, DOMINO, Recipe
from gristmill.settings.tables import Settings
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, opened

RAW = "puzzles/raw"


def puzzle_build(kind: str, wanted: Wanted) -> Build:
    """Returns the build of a dataset.

    kind: of the puzzle, as `sudoku`. Chosen values come before those of the recipe.
    """
    lake = wanted.root
    recipe = recipe_of(lake, kind, wanted.partition)
    account = ready_sources(lake, recipe)
    config = wanted.config(CONFIGS[kind], settings_of_recipe(lake, recipe))
    artifact = lake.artifact("puzzles", recipe.name)
    links = lake.link_rule()
    folders = [lake.inbox(drops.INBOX) / source for source in recipe.sources]
    subsets = getattr(config, "subsets", ())
    inputs = _inputs(lake, recipe, folders, artifact, links, subsets)

    def make(attempt: Attempt) -> Summary:
        try:
            summary = _make(kind, folders, attempt, config, links)
        except BadInput as error:
            if AMBIGUOUS not in error.rule:
                raise
            given = settings_of_recipe(lake, recipe)
            place = place_of(lake, recipe.name, "unique", given)[1]
            raise BadInput(error.file, f"{error.rule} below {place}", error.row) from error
        # The publisher compares only the files that were listed, but the dataset may be made of
        # one that arrived after the listing.
        present = [
            file.relative_to(lake.root).as_posix()
            for folder in folders
            for file in drops.source_files(kind, folder, links, subsets)
        ]
        if present != [item.path for item in inputs]:
            raise InputChanged(
                f"{recipe.name}: files were added or removed while they were read: materialize the "
                "dataset again once its drops are complete"
            )
        return summary

    return wanted.build(
        artifact,
        config,
        inputs,
        make,
        space=space(
            config, [(item.path or "", item.bytes or 0) for item in inputs], lake.root, links
        ),
        account=account if recipe.sources else None,
    )


def settings_of(kind: str, lake: DataRoot, key: str) -> Settings:
    """Returns what files give for the dataset of a recipe."""
    return settings_of_recipe(lake, recipe_of(lake, kind, key))


def settings_of_recipe(lake: DataRoot, recipe: Recipe) -> Settings:
    """Returns the table of the data root's file, and the settings of the recipe before it."""
    root = lake.settings(recipe.asset)
    file = lake.inbox(RECIPES_INBOX) / f"{recipe.name}.toml"
    return Settings({**root, **recipe.settings}, file=file if file.exists() else root.file)


def place_of(lake: DataRoot, key: str, field: str, given: Settings) -> tuple[str, str]:
    """Returns what gives a value of a recipe's dataset, and where a person writes another one."""
    file = lake.inbox(RECIPES_INBOX) / f"{key}.toml"
    built_in = BUILT_IN.get(key)
    if file.exists():
        return str(file) if field in given else "the default", f"[settings] in {file}"
    if built_in is not None and field in built_in.settings:
        return f"the built-in recipe {key}", f"[settings] in {file}, a recipe in place of that one"
    table = f"[puzzles.{built_in.kind}]" if built_in is not None else "its table"
    return str(given.file) if field in given else "the default", f"{table} in {given.file}"


def _inputs(
    lake: DataRoot,
    recipe: Recipe,
    folders: Sequence[Path],
    artifact: str,
    links: LinkRule,
    subsets: Sequence[str],
) -> list[Input]:
    """The raw files of all sources; files that the record knows are not hashed again."""
    known = raw_inputs.known_hashes(lake.root / artifact / RECORD)
    return [
        item
        for source, folder in zip(recipe.sources, folders, strict=True)
        for item in raw_inputs.raw_inputs(
            lake.root,
            drops.source_files(recipe.kind, folder, links, subsets),
            RAW,
            source.partition("/")[0],
            known,
            links,
        )
    ]


def _make(
    kind: str, folders: Sequence[Path], attempt: Attempt, config: object, links: LinkRule
) -> Summary:
    """Build the dataset of a kind."""
    build = getattr(import_module(f"gristmill.puzzles.builders.{kind}"), f"build_{kind}")
    common = {"parts": attempt.parts, "progress": attempt.progress}
    if kind == DOMINO:
        summary: Summary = build(attempt.out, config, **common)
    else:
        summary = build(folders, attempt.out, config, **common, links=links)
    return summary


_ARC_CELLS: Final = 900
_GRID: Final = re.compile(rb"\[\s*\[\s*[0-9]")
_FILES, _HEAD = 64, 1 << 16
"""Files of tasks whose first bytes are looked at."""
_SUDOKU_CELLS: Final = 81
_DOMINO_TOKENS: Final = 72
_SYMMETRIES: Final = 8
_ITEMSIZE: Final = {"int32": 4, "uint8": 1}
_OTHER: Final = 40
"""Bytes of an example beside its tokens: origins, in the part and in the dataset, and indices."""


def space(
    config: object,
    files: Sequence[tuple[str, int]],
    root: Path = Path(),
    links: LinkRule = REFUSE_LINKS,
) -> int:
    """About the most bytes that a build has on disk at one time, 0 for a config that is not known.

    files: paths below `root`, and their bytes. links: what happens to links.
    The parts, whose tokens are uint8, and the dataset are there together at the end.
    """
    total = sum(size for _, size in files)
    if isinstance(config, ArcConfig):
        return _pairs(files, root, links) * (1 + config.num_aug) * _example(2 * _ARC_CELLS, config)
    if isinstance(config, SudokuConfig):
        return _sudoku(config, files)
    if isinstance(config, MazeConfig):
        # A file has a byte for each token, and the tokens are kept while parts are made.
        examples = _SYMMETRIES if config.aug else 1
        return total + total * examples * (1 + _itemsize(config))
    if isinstance(config, GridConfig):
        # A row has two bytes at least for each cell, and is padded to the largest grid.
        examples = _SYMMETRIES if config.dihedral else 1
        return total + total * examples * (4 + _itemsize(config))
    if isinstance(config, DominoConfig):
        trained = min(config.num_games, config.subsample_size or config.num_games)
        rows = trained * (1 + config.num_aug) + config.num_games
        return rows * _example(2 * _DOMINO_TOKENS, config)
    return 0


def _pairs(files: Sequence[tuple[str, int]], root: Path, links: LinkRule) -> int:
    """About how many pairs tasks have, by the grids in the first bytes of some files."""
    looked = grids = 0
    for path, _ in files[:: len(files) // _FILES + 1]:
        with suppress(OSError, BadInput), opened(root / path, links) as file:
            head = file.read(_HEAD)
            looked, grids = looked + len(head), grids + len(_GRID.findall(head))
    return sum(size for _, size in files) * grids // max(2 * looked, 1)


def _sudoku(config: SudokuConfig, files: Sequence[tuple[str, int]]) -> int:
    """A line of a CSV file has two boards at least, one of a bank has one."""
    lines = {path: size // _line(path) for path, size in files}
    tested = sum(
        count for path, count in lines.items() if PurePath(path).name.lower() == "test.csv"
    )
    trained = sum(lines.values()) - tested
    taken = min(trained, config.subsample_size or trained)
    rows = taken * (1 + config.num_aug) + tested
    boards = 2 * _SUDOKU_CELLS * sum(lines.values())
    return boards + rows * _example(2 * _SUDOKU_CELLS, config)


def _line(path: str) -> int:
    return 2 * _SUDOKU_CELLS if path.lower().endswith(".csv") else _SUDOKU_CELLS


def _example(tokens: int, config: Any) -> int:
    """Bytes of an example in its part and in the dataset."""
    return tokens * (1 + _itemsize(config)) + _OTHER


def _itemsize(config: Any) -> int:
    """Bytes of a token in the dataset."""
    return _ITEMSIZE[config.dtype]
