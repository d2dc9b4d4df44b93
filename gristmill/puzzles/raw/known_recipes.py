"""The recipes of a data root: built in, or from a file; and whether their input is there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill import keys, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import GONE, TOML, WAITS
from gristmill.inbox.account import Account, IsThere, Unread, Waits
from gristmill.inbox.listing import list_inbox
from gristmill.puzzles.raw import drops
from gristmill.puzzles.raw.recipes import (
    BUILT_IN,
    CONFIGS,
    FOLDER,
    Recipe,
    is_part,
    read_recipe_file,
)
from gristmill.settings.tables import Table
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

RECIPES_INBOX = f"{drops.INBOX}/{FOLDER}"


def recipes(lake: DataRoot) -> dict[str, Recipe]:
    """Returns the recipes by name; a file takes the place of a built-in recipe.

    lake: the data root. A file that is refused counts as none: the inbox reports it.
    """
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
    """Returns the recipe of a partition.

    Raises BadKey for a name that is no key, BadInput if its file is refused or has another kind,
    NotReady if there is none.
    """
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
    """The account of a recipe file: it is taken. Raises BadInput where it breaks a rule.

    file: in `drops/puzzles/recipes/`. links: what happens if it is a link.
    """
    _read(DataRoot(file.parents[3]), file, links)
    return Account({"": [file.name]})


def recipe_needs(file: Path, root: Path, is_there: IsThere) -> None:
    """Raise Waits for a recipe with sources that are not there."""
    lake = DataRoot(root)
    recipe = read_recipe_file(file, lake.rules(RECIPES_INBOX)[0])
    if missing := missing_sources(lake, recipe, is_there):
        raise Waits(f"{file}: {_waits_for(missing, lake.inbox(drops.INBOX))}")


def recipe_change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    """What the next build of a dataset takes in place of its record's, empty where nothing.

    Raises BadInput for a file of settings that is refused.
    """
    lake = DataRoot(root)
    recipe = read_recipe_file(file, lake.rules(RECIPES_INBOX)[0])
    given = {**lake.settings(recipe.asset), **recipe.settings}
    found = list(Table(recipe.asset, CONFIGS[recipe.kind]).changes(given, config))
    below = [f"drops/{drops.INBOX}/{source}" for source in recipe.sources]
    # Raw files are recorded in the order of the sources, of which one may be in another.
    if list(dict.fromkeys(drops.source_of(recipe.kind, path) for path in raw)) != below:
        found.insert(0, f"the sources are now {', '.join(recipe.sources)}")
    return "; ".join(found)


def drop_account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a drop by the recipes of its data root, with the settings of its builds."""
    # `gristmill look` asks for a folder anywhere, which may have fewer above it.
    lake = DataRoot([*drop.parents][:3][-1])
    named = [recipe for recipe in recipes(lake).values() if drop.name in recipe.drops]
    given = [
        replace(recipe, settings={**lake.settings(recipe.asset), **recipe.settings})
        for recipe in named
    ]
    return drops.account(drop, links, given)


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
    """Returns the sources of a recipe that are not there.

    is_there: tells whether a drop is whole; default None: every folder is.
    """
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
    """Returns the recipes whose sources are there, without those that a larger one takes in.

    ARC alone is built where there is no ConceptARC, not beside the dataset of both: a person asks
    for it by name. Once it stands it is kept current.
    """
    found = [each for each in recipes(lake).values() if not missing_sources(lake, each, is_there)]
    return [
        recipe
        for recipe in found
        if not any(is_part(recipe, other) for other in found) or _stands(lake, recipe)
    ]


def wanted(lake: DataRoot) -> set[str]:
    """Returns the names of the recipes that somebody asked for: by a drop, a file, or a dataset.

    lake: the data root. A recipe that waits for another drop is one of them.
    """
    inbox, built = lake.inbox(drops.INBOX), {recipe.name for recipe in buildable(lake)}
    return {
        name
        for name, recipe in recipes(lake).items()
        if (
            any((inbox / drop).is_dir() for drop in recipe.drops)
            and (name in built or missing_sources(lake, recipe))
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
