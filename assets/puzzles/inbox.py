"""The inboxes of the puzzle family: folders of raw puzzles, and recipe files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from assets.inbox import Inbox, Start
from assets.puzzles import assets
from assets.puzzles.partitions import BUILT_IN_KEYS, puzzles_recipes, puzzles_sources
from gristmill.data_root import DataRoot
from gristmill.puzzles.raw import drops
from gristmill.puzzles.raw.known_recipes import (
    RECIPES_INBOX,
    buildable,
    missing_sources,
    recipes,
)
from gristmill.puzzles.raw.recipe_file import read_recipe_file
from gristmill.puzzles.raw.recipes import Recipe


def starts_of_drop(
    instance: dg.DagsterInstance, path: Path, settled: Collection[str]
) -> list[Start]:
    """Returns the runs of a raw drop: one for each recipe that it is a source of."""
    lake = DataRoot(path.parents[2])
    known = {*_sources(instance), *settled, path.name}
    built = {recipe.name for recipe in buildable(lake, lambda _, name: name in known)}
    chosen = [recipe for recipe in recipes(lake).values() if path.name in recipe.drops]
    starts = [_start(lake, recipe, known) for recipe in chosen]
    return [start for start in starts if start.waiting or start.partition in built]


def starts_of_recipe(
    instance: dg.DagsterInstance, path: Path, settled: Collection[str]
) -> list[Start]:
    """Returns the run of a recipe file; none if its drop has started it since the file changed."""
    lake = DataRoot(path.parents[3])
    recipe = read_recipe_file(path, lake.rules(RECIPES_INBOX)[0])
    start = _start(lake, recipe, _sources(instance))
    changed = datetime.fromtimestamp(path.stat().st_ctime, UTC)
    if not start.waiting and _is_started(instance, recipe, changed):
        return [replace(start, waiting="is started already")]
    return [start]


def _is_started(instance: dg.DagsterInstance, recipe: Recipe, since: datetime) -> bool:
    """Whether a run of the recipe was created after a time. It reads the recipe when it starts."""
    runs = instance.get_runs(
        dg.RunsFilter(tags={"dagster/partition": recipe.name}, created_after=since)
    )
    asset = dg.AssetKey.from_user_string(recipe.asset)
    return any(asset in (run.asset_selection or ()) for run in runs)


def _start(lake: DataRoot, recipe: Recipe, known: Collection[str]) -> Start:
    missing = missing_sources(lake, recipe, lambda _, name: name in known)
    waiting = f"waits for {', '.join(f'drops/{drops.INBOX}/{name}' for name in missing)}"
    return Start((assets.BUILT[recipe.kind],), recipe.name, waiting if missing else "")


def _sources(instance: dg.DagsterInstance) -> Collection[str]:
    """The raw drops that have arrived."""
    return instance.get_dynamic_partitions(str(puzzles_sources.name))


INBOXES = [
    Inbox(
        folder=drops.INBOX,
        raw_drop=assets.raw.key,
        partitions=puzzles_sources,
        targets=list(assets.BUILT.values()),
        starts=starts_of_drop,
    ),
    Inbox(
        folder=RECIPES_INBOX,
        raw_drop=assets.recipe.key,
        partitions=puzzles_recipes,
        targets=list(assets.BUILT.values()),
        starts=starts_of_recipe,
        built_in=BUILT_IN_KEYS,
    ),
]
