"""Which files choose the config of puzzle datasets: the recipe, then the data root's."""

from __future__ import annotations

from functools import partial

from assets.choices import Choices
from gristmill.puzzles.raw.known_recipes import RECIPES_INBOX, recipe_of
from gristmill.puzzles.raw.recipes import BUILT_IN, CONFIGS, Recipe
from gristmill.settings.tables import Settings
from resources import Lake


def recipe_settings(lake: Lake, recipe: Recipe) -> Settings:
    """Returns the table of the data root's file, and the settings of the recipe before it."""
    root = lake.settings(recipe.asset)
    file = lake.inbox(RECIPES_INBOX) / f"{recipe.name}.toml"
    return Settings({**root, **recipe.settings}, file=file if file.exists() else root.file)


def _settings(kind: str, lake: Lake, key: str) -> Settings:
    return recipe_settings(lake, recipe_of(lake, kind, key))


def _place(lake: Lake, key: str, field: str, given: Settings) -> tuple[str, str]:
    """What gives a value of a recipe's dataset, and where a person writes another one."""
    file = lake.inbox(RECIPES_INBOX) / f"{key}.toml"
    built_in = BUILT_IN.get(key)
    if file.exists():
        return str(file) if field in given else "the default", f"[settings] in {file}"
    if built_in is not None and field in built_in.settings:
        return f"the built-in recipe {key}", f"[settings] in {file}, a recipe in place of that one"
    table = f"[puzzles.{built_in.kind}]" if built_in is not None else "its table"
    return str(given.file) if field in given else "the default", f"{table} in {given.file}"


CHOICES = {
    f"puzzles/{kind}": Choices(f"puzzles/{kind}", partial(_settings, kind), place=_place)
    for kind in CONFIGS
}
