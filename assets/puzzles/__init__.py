"""Puzzles in Dagster: raw drops and recipes, and datasets of ARC, Sudoku, Maze and Domino."""

from functools import partial
from typing import Final

from assets.family import family_of
from assets.puzzles.inbox import starts_of_drop, starts_of_recipe
from gristmill.puzzles.raw.known_recipes import RECIPES_INBOX, wanted
from gristmill.puzzles.raw.recipes import BUILT_IN, KINDS

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
