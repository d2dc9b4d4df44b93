"""Puzzles: known recipes, what a dataset is built from, how, where it goes, its bytes on disk."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Final

from gristmill import keys, provenance
from gristmill.asset import Wanted
from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import GONE, TOML, WAITS
from gristmill.inbox.listing import Account, ColumnState, IsThere, Unread, Waits, list_inbox
from gristmill.provenance import raw_inputs
from gristmill.provenance.record import RECORD
from gristmill.publish.build import Attempt, Build, InputChanged
from gristmill.puzzles.config import (
    BUILT_IN,
    CONFIGS,
    DOMINO,
    FOLDER,
    ArcConfig,
    DominoConfig,
    GridConfig,
    MazeConfig,
    Recipe,
    SudokuConfig,
    is_part,
    read_recipe_file,
)
from gristmill.puzzles.format import AMBIGUOUS
from gristmill.puzzles.raw import drops
from gristmill.run import amounts
from gristmill.settings.tables import Settings, Table
from gristmill.takedowns.left_out import left_out
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, opened

_TABLES: Final = 8
"""Tables of a drop whose first rows are looked at."""
RECIPES_INBOX = f"{drops.INBOX}/{FOLDER}"


def recipes(lake: DataRoot) -> dict[str, Recipe]:
    """Returns the recipes by name; a file takes the place of a built-in recipe."""
    found = dict(BUILT_IN)
    links = lake.rules(RECIPES_INBOX)[0]
    folder = lake.inbox(RECIPES_INBOX)
    for entries in list_inbox(folder, TOML, links)[0].values():
        try:
            recipe = _read(lake, Path(entries[0].path), links)
        except (GristmillError, OSError):
            continue
        found[recipe.name] = recipe
    return found


def recipe_of(lake: DataRoot, kind: str, name: str) -> Recipe:
    """Returns the recipe of a partition. Raises BadKey, BadInput as its file does, or NotReady."""
    path = lake.inbox(RECIPES_INBOX) / f"{keys.checked(name)}.toml"
    if not os.path.lexists(path):
        if name not in BUILT_IN:
            raise NotReady(GONE, lake.judged(RECIPES_INBOX, path).reason)
        recipe = BUILT_IN[name]
        _check_published(lake, recipe, path)
    else:
        recipe = _read(lake, path, lake.link_rule())
    if recipe.kind != kind:
        raise BadInput(
            path,
            f"{name} is a recipe of the kind {recipe.kind}: build {recipe.asset}, not "
            f"puzzles/{kind}",
        )
    return recipe


def account(file: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a recipe file in the inbox: it is taken. Raises BadInput as its reader."""
    _read(DataRoot(file.parents[3]), file, links)
    return Account({"": [file.name]})


def recipe_needs(file: Path, root: Path, is_there: IsThere) -> None:
    """Raise Waits for a recipe with sources that are not there."""
    lake = DataRoot(root)
    recipe = read_recipe_file(file, lake.rules(RECIPES_INBOX)[0])
    if missing := missing_sources(lake, recipe, is_there):
        raise Waits(f"{file}: {_waits_for(missing, lake.inbox(drops.INBOX))}")


def recipe_change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    """What a dataset's next build takes in place of its record's. Raises BadInput for its file."""
    lake = DataRoot(root)
    recipe = read_recipe_file(file, lake.rules(RECIPES_INBOX)[0])
    given = {**lake.settings(recipe.asset), **recipe.settings}
    found = list(Table(recipe.asset, CONFIGS[recipe.kind]).changes(given, config))
    below = [f"drops/{drops.INBOX}/{source}" for source in recipe.sources]
    # Raw files are recorded in the order of the sources, of which one may be in another.
    if list(dict.fromkeys(drops.source_of(recipe.kind, path) for path in raw)) != below:
        found.insert(0, f"the sources are now {', '.join(recipe.sources)}")
    return "; ".join(found)


def _recipes_of(drop: Path) -> list[Recipe]:
    """The recipes that name a drop, with the settings of its data root below theirs."""
    # `gristmill look` asks for a folder anywhere, which may have fewer above it.
    lake = DataRoot([*drop.parents][:3][-1])
    return [
        replace(recipe, settings={**lake.settings(recipe.asset), **recipe.settings})
        for recipe in recipes(lake).values()
        if drop.name in recipe.drops
    ]


def drop_account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a drop by the recipes of its data root, with the settings of its builds."""
    return drops.account(drop, links, _recipes_of(drop))


def drop_columns(
    drop: Path, links: LinkRule, account: Account, _counts: Mapping[str, float]
) -> list[ColumnState]:
    """What becomes of the columns of the tables of a drop, by their first rows."""
    from gristmill.corpora.account import Head, states_of
    from gristmill.puzzles.raw.file_forms import is_table
    from gristmill.puzzles.raw.tables import COLUMN_NAMES, first_rows

    role_of = {name: role for role, names in COLUMN_NAMES.items() for name in names}
    for recipe in _recipes_of(drop):
        for role in ("question", "answer"):
            if name := recipe.settings.get(f"{role}_column"):
                role_of = {own: of for own, of in role_of.items() if of != role}
                role_of[str(name).lower()] = role
    names = drop_account(drop, links).taken.get("", ())
    tables = [drop / name for name in names if is_table(name.rpartition("/")[2])]
    heads = [Head("", first_rows(path, links)) for path in tables[:_TABLES]]
    header = [name for head in heads for row in head.rows[:1] for name in row]
    return states_of(heads, {n: role_of[n.lower()] for n in header if n.lower() in role_of})


def drop_needs(drop: Path, root: Path, is_there: IsThere) -> None:
    """Raise Unread for a drop that no recipe reads, Waits where each recipe needs another drop."""
    lake = DataRoot(root)
    known = recipes(lake)
    chosen = [recipe for recipe in known.values() if drop.name in recipe.drops]
    if not chosen:
        folder, (links, *_) = lake.inbox(RECIPES_INBOX), lake.rules(RECIPES_INBOX)
        # A person who wrote one with a mistake needs no other one.
        refused = sorted(list_inbox(folder, TOML, links)[0].keys() - known.keys())
        cure = f"correct {folder}/{refused[0]}.toml, which is refused, or " if refused else ""
        made = drops.proposal(drop, lake.rules(drops.INBOX)[0]).splitlines()
        lines = f"the lines `{'`, `'.join(made)}`, a guess" if made else "its kind and sources"
        raise Unread(
            f"{drop}: no recipe reads it: {cure}write {folder}/NAME.toml with {lines}; `gristmill "
            "look` says more"
        )
    missing = {
        recipe.name: missing_sources(lake, recipe, lambda i, n: n == drop.name or is_there(i, n))
        for recipe in chosen
    }
    if all(missing.values()):
        name, first = next(iter(missing.items()))
        raise Waits(f"{drop}: the recipe {name} {_waits_for(first, drop.parent)}")


def _waits_for(missing: Sequence[str], inbox: Path) -> str:
    named = ", ".join(
        f"drops/{drops.INBOX}/{source}"
        + (" (there, not ready)" if (inbox / source).is_dir() else "")
        for source in missing
    )
    return f"waits for {named}: bring it, or write a recipe without it"


def missing_sources(lake: DataRoot, recipe: Recipe, is_there: IsThere | None = None) -> list[str]:
    """Returns the sources of a recipe that are not there."""
    inbox = lake.inbox(drops.INBOX)
    return [
        source
        for source in recipe.sources
        if not (inbox / source).is_dir()
        or (is_there is not None and not is_there(drops.INBOX, source.partition("/")[0]))
    ]


def ready_sources(lake: DataRoot, recipe: Recipe) -> Account:
    """Returns the account of all drops of a recipe that can be built now."""
    inbox = lake.inbox(drops.INBOX)
    # A drop that is refused says why, before the recipe says that it waits for it.
    there = [name for name in recipe.drops if (inbox / name).exists()]
    accounts = {name: lake.ready_drop(drops.INBOX, name)[1] for name in there}
    if missing := missing_sources(lake, recipe):
        raise NotReady(WAITS, f"the recipe {recipe.name} {_waits_for(missing, inbox)}")
    if (lake.inbox(RECIPES_INBOX) / f"{recipe.name}.toml").exists():
        lake.ready_drop(RECIPES_INBOX, f"{recipe.name}.toml")
    taken = [
        f"{name}/{file}"
        for name, each in accounts.items()
        for files in each.taken.values()
        for file in files
    ]
    left_out = {
        f"{name}/{file}": reason
        for name, each in accounts.items()
        for file, reason in each.left_out.items()
    }
    return Account({"": taken}, left_out)


def buildable(lake: DataRoot, is_there: IsThere | None = None) -> list[Recipe]:
    """Returns the recipes whose sources are there, without those that wait for a person's word.

    ARC alone is built where there is no ConceptARC, not beside the dataset of both: a person asks
    for it by name, as for a thousand augmentations. Once such a dataset stands it is kept current,
    and a smaller one of its sources is no first try any more.
    """
    found = [each for each in offered(lake) if not missing_sources(lake, each, is_there)]
    return [
        recipe
        for recipe in found
        if _stands(lake, recipe)
        or not any(
            is_part(recipe, other) or (other.is_large and other.sources == recipe.sources)
            for other in found
        )
    ]


def offered(lake: DataRoot) -> list[Recipe]:
    """Returns the recipes that a drop starts: all but large ones that do not stand."""
    every = recipes(lake).values()
    return [recipe for recipe in every if not recipe.is_large or _stands(lake, recipe)]


def wanted(lake: DataRoot) -> set[str]:
    """Returns the names of the recipes that somebody asked for: by a drop, a file, or a dataset."""
    inbox, built = lake.inbox(drops.INBOX), {recipe.name for recipe in buildable(lake)}
    given = offered(lake)
    return {
        name
        for name, recipe in recipes(lake).items()
        if (
            any((inbox / drop).is_dir() for drop in recipe.drops)
            and (name in built or (recipe in given and missing_sources(lake, recipe)))
        )
        or (lake.inbox(RECIPES_INBOX) / f"{name}.toml").exists()
        or _stands(lake, recipe)
    }


def _stands(lake: DataRoot, recipe: Recipe) -> bool:
    return (lake.root / lake.artifact("puzzles", recipe.name) / provenance.RECORD).exists()


def _read(lake: DataRoot, path: Path, links: LinkRule) -> Recipe:
    recipe = read_recipe_file(path, links)
    _check_published(lake, recipe, path)
    return recipe


def _check_published(lake: DataRoot, recipe: Recipe, path: Path) -> None:
    """Refuse a recipe with the name of a published dataset of another kind."""
    record = lake.root / lake.artifact("puzzles", recipe.name) / provenance.RECORD
    if not record.exists():
        return
    asset = provenance.read_record(record).asset
    if asset != recipe.asset:
        raise BadInput(
            path,
            f'kind = "{recipe.kind}": {asset} has published a dataset of the name {recipe.name}, '
            "and a name has one kind: rename the recipe, or move the dataset away",
        )


def wanted_of(kind: str, lake: DataRoot) -> list[str]:
    """Returns the recipes of a kind that somebody asked for, sorted by name."""
    every, names = recipes(lake), wanted(lake)
    return sorted(name for name in names if every[name].kind == kind)


RAW = "puzzles/raw"


def puzzle_build(kind: str, wanted: Wanted) -> Build:
    """Returns the build of a dataset."""
    lake = wanted.root
    recipe = recipe_of(lake, kind, wanted.partition)
    account = ready_sources(lake, recipe)
    config = wanted.config(CONFIGS[kind], settings_of_recipe(lake, recipe))
    artifact = lake.artifact("puzzles", recipe.name)
    links = lake.link_rule()
    folders = [lake.inbox(drops.INBOX) / source for source in recipe.sources]

    def listed() -> Iterator[tuple[str, list[Path]]]:
        for source, folder in zip(recipe.sources, folders, strict=True):
            subsets = getattr(config, "subsets", ())
            yield source.partition("/")[0], drops.source_files(kind, folder, links, subsets)

    known = raw_inputs.known_hashes(lake.root / artifact / RECORD)  # these are not hashed again
    inputs = [
        item
        for drop, found in listed()
        for item in raw_inputs.raw_inputs(lake.root, found, RAW, drop, known, links)
    ]
    files = {lake.root / str(item.path) for item in inputs}
    named = map(lake.inbox(drops.INBOX).joinpath, recipe.drops)
    left = left_out(lake, named, files, RAW, recipe.name)

    def make(attempt: Attempt) -> Summary:
        try:
            summary = _make(kind, folders, attempt, config, left.links())
        except BadInput as error:
            if AMBIGUOUS not in error.rule:
                raise
            given = settings_of_recipe(lake, recipe)
            place = place_of(lake, recipe.name, "unique", given)[1]
            raise BadInput(error.file, f"{error.rule} below {place}", error.row) from error
        # The publisher compares only the files that were listed, but the dataset may be made of
        # one that arrived after the listing.
        present = [
            file.relative_to(lake.root).as_posix() for _, found in listed() for file in found
        ]
        if present != [item.path for item in inputs]:
            raise InputChanged(
                f"{recipe.name}: files were added or removed while they were read: materialize the "
                "dataset again once its drops are complete"
            )
        return summary

    sizes = [(item.path or "", item.bytes or 0) for item in inputs]
    needed = estimate(config, sizes, lake.root, links)
    return wanted.build(
        artifact,
        config,
        inputs,
        make,
        left=left,
        space=needed.bytes,
        rows=needed.rows,
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


@dataclass(frozen=True)
class Estimate:
    """About the most that a build takes. rows: of its dataset, 0 if unknown. bytes: on disk."""

    rows: int = 0
    bytes: int = 0


def estimate(
    config: object,
    files: Sequence[tuple[str, int]],
    root: Path = Path(),
    links: LinkRule = REFUSE_LINKS,
) -> Estimate:
    """About the most rows and bytes of a build at one time, by its files and their bytes."""
    total = sum(size for _, size in files)
    if isinstance(config, ArcConfig):
        looked = grids = 0
        for path, _ in files[:: len(files) // _FILES + 1]:
            with suppress(OSError, BadInput), opened(root / path, links) as file:
                head = file.read(_HEAD)
                looked, grids = looked + len(head), grids + len(_GRID.findall(head))
        rows = (sum(size for _, size in files) * grids // max(2 * looked, 1)) * (1 + config.num_aug)
        return Estimate(rows, rows * _example(2 * _ARC_CELLS, config))
    if isinstance(config, SudokuConfig):
        return _sudoku(config, files)
    if isinstance(config, MazeConfig):
        # A file has a byte for each token, and the tokens are kept while parts are made.
        examples = _SYMMETRIES if config.aug else 1
        return Estimate(bytes=total + total * examples * (1 + _itemsize(config)))
    if isinstance(config, GridConfig):
        # A row has two bytes at least for each cell, and is padded to the largest grid.
        examples = _SYMMETRIES if config.dihedral else 1
        return Estimate(bytes=total + total * examples * (4 + _itemsize(config)))
    if isinstance(config, DominoConfig):
        trained = min(config.num_games, config.subsample_size or config.num_games)
        rows = trained * (1 + config.num_aug) + config.num_games
        return Estimate(rows, rows * _example(2 * _DOMINO_TOKENS, config))
    return Estimate()


def takes(drop: Path, text: str, links: LinkRule = REFUSE_LINKS) -> str:
    """About what a build by a recipe takes, in words."""
    made = tomllib.loads(text)
    config = CONFIGS[made["kind"]](**made.get("settings", {}))
    folders = [drop / source.partition("/")[2] for source in made["sources"]]
    subsets = getattr(config, "subsets", ())
    files = [
        file for each in folders for file in drops.source_files(made["kind"], each, links, subsets)
    ]
    found = estimate(config, [(str(file), file.stat().st_size) for file in files], links=links)
    return amounts.needed(found.rows, found.bytes)


def _sudoku(config: SudokuConfig, files: Sequence[tuple[str, int]]) -> Estimate:
    """A line of a CSV file has two boards at least, one of a bank has one."""
    lines = {path: size // _line(path) for path, size in files}
    tested = sum(
        count for path, count in lines.items() if PurePath(path).name.lower() == "test.csv"
    )
    trained = sum(lines.values()) - tested
    taken = min(trained, config.subsample_size or trained)
    rows = taken * (1 + config.num_aug) + tested
    boards = 2 * _SUDOKU_CELLS * sum(lines.values())
    return Estimate(rows, boards + rows * _example(2 * _SUDOKU_CELLS, config))


def _line(path: str) -> int:
    return 2 * _SUDOKU_CELLS if path.lower().endswith(".csv") else _SUDOKU_CELLS


def _example(tokens: int, config: Any) -> int:
    """Bytes of an example in its part and in the dataset."""
    return tokens * (1 + _itemsize(config)) + _OTHER


def _itemsize(config: Any) -> int:
    return _ITEMSIZE[config.dtype]
