"""The partitions of the puzzle assets: drops, recipe files, and the recipes of each kind."""

from typing import Final

import dagster as dg

from gristmill.puzzles.raw.recipes import BUILT_IN, KINDS

puzzles_sources = dg.DynamicPartitionsDefinition(name="puzzles_sources")
puzzles_recipes = dg.DynamicPartitionsDefinition(name="puzzles_recipes")
OF_KIND: Final = {
    kind: dg.DynamicPartitionsDefinition(name=f"puzzles_{kind}_recipes") for kind in KINDS
}
"""The partitions of each kind: the names of its recipes."""
BUILT_IN_KEYS: Final = {
    str(OF_KIND[kind].name): [recipe.name for recipe in BUILT_IN.values() if recipe.kind == kind]
    for kind in KINDS
}
"""The names of built-in recipes by the name of the partitions."""
