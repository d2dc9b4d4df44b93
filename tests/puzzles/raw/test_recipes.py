"""Built-in recipes: each is one that a file could say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.puzzles.raw.recipe_file import read_recipe_file
from gristmill.puzzles.raw.recipes import BUILT_IN, CONFIGS, KINDS, Recipe, is_part


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


@pytest.mark.parametrize("recipe", BUILT_IN.values(), ids=lambda recipe: str(recipe.name))
def test_a_built_in_recipe_is_one_that_a_file_of_its_name_could_say(
    recipe: Recipe, tmp_path: Path
) -> None:
    lines = [f'kind = "{recipe.kind}"', f"sources = {shown(list(recipe.sources))}", "[settings]"]
    lines += [f"{name} = {shown(value)}" for name, value in recipe.settings.items()]
    path = tmp_path / f"{recipe.name}.toml"
    path.write_text("\n".join(lines))
    assert read_recipe_file(path) == recipe


def test_every_kind_has_a_config_and_a_recipe() -> None:
    assert set(KINDS) == set(CONFIGS) == {recipe.kind for recipe in BUILT_IN.values()}


def test_the_recipes_of_the_original_have_its_settings() -> None:
    assert BUILT_IN["arc-aug-1000"].settings == {"num_aug": 1000, "dtype": "uint8"}
    assert BUILT_IN["arc-aug-1000"].sources == ("arc_agi", "concept_arc/corpus")
    assert BUILT_IN["arc-1-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-1-aug-1000"].sources == ("arc_agi",)
    assert BUILT_IN["arc-2-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-2-aug-1000"].sources == ("arc_agi_2",)
    assert BUILT_IN["domino-optimal-play"].settings == {}
    assert BUILT_IN["maze-30x30-hard-1k"].settings == {}


def test_of_built_in_recipes_arc_alone_is_part_of_another_one() -> None:
    pairs = {
        (one.name, two.name)
        for one in BUILT_IN.values()
        for two in BUILT_IN.values()
        if is_part(one, two)
    }
    assert pairs == {("arc-1-aug-1000", "arc-aug-1000")}
    whole = BUILT_IN["arc-aug-1000"]
    assert not is_part(Recipe("arc-1-aug-1000", "arc", ("arc_agi",)), whole), "a person's own"
