"""Puzzles in Dagster: raw drops and recipes, and datasets of ARC, Sudoku, Maze and Domino.

A raw drop or a recipe file starts runs that depend on other drops.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import dagster as dg

from assets.family import Definitions, family_of
from assets.inbox import Start
from assets.versions import last_run
from gristmill.data_root import DataRoot
from gristmill.puzzles.builds import (
    RECIPES_INBOX,
    buildable,
    missing_sources,
    offered,
    wanted,
)
from gristmill.puzzles.config import BUILT_IN, KINDS, Recipe, read_recipe_file
from gristmill.puzzles.raw import drops


def starts_of_drop(
    built: Definitions, instance: dg.DagsterInstance, path: Path, settled: Collection[str]
) -> list[Start]:
    """Returns the runs of a raw drop: one for each recipe that it is a source of."""
    lake = DataRoot(path.parents[2])
    known = {*_sources(instance), *settled, path.name}
    can = {recipe.name for recipe in buildable(lake, lambda _, name: name in known)}
    chosen = [recipe for recipe in offered(lake) if path.name in recipe.drops]
    starts = [_start(built, lake, recipe, known) for recipe in chosen]
    return [start for start in starts if start.waiting or start.partition in can]


def starts_of_recipe(
    built: Definitions, instance: dg.DagsterInstance, path: Path, settled: Collection[str]
) -> list[Start]:
    """Returns the run of a recipe file; none if its drop has started it since the file changed."""
    lake = DataRoot(path.parents[3])
    recipe = read_recipe_file(path, lake.rules(RECIPES_INBOX)[0])
    start = _start(built, lake, recipe, _sources(instance))
    changed = datetime.fromtimestamp(path.stat().st_ctime, UTC)
    if not start.waiting and _is_started(instance, recipe, changed):
        return [replace(start, waiting="is started already")]
    return [start]


def _is_started(instance: dg.DagsterInstance, recipe: Recipe, since: datetime) -> bool:
    """Whether a run of the recipe was created after a time. It reads the recipe when it starts."""
    run = last_run(instance, [dg.AssetKey.from_user_string(recipe.asset)], recipe.name)
    return run is not None and run.create_timestamp > since


def _start(built: Definitions, lake: DataRoot, recipe: Recipe, known: Collection[str]) -> Start:
    missing = missing_sources(lake, recipe, lambda _, name: name in known)
    waiting = f"waits for {', '.join(f'drops/{drops.INBOX}/{name}' for name in missing)}"
    return Start((built[recipe.asset],), recipe.name, waiting if missing else "")


def _sources(instance: dg.DagsterInstance) -> Collection[str]:
    return instance.get_dynamic_partitions("puzzles_sources")


BUILT_IN_KEYS: Final = {
    f"puzzles_{kind}_recipes": [name for name, each in BUILT_IN.items() if each.kind == kind]
    for kind in KINDS
}
"""The names of built-in recipes by the name of the partitions."""

FAMILY = family_of(
    "puzzles",
    inboxes=lambda built: {
        "puzzles": {"starts": partial(starts_of_drop, built)},
        RECIPES_INBOX: {
            "starts": partial(starts_of_recipe, built),
            "built_in": lambda: BUILT_IN_KEYS,
        },
    },
    available=wanted,
)
