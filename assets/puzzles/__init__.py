"""Puzzles in Dagster: raw drops and recipes, and datasets of ARC, Sudoku, Maze and Domino."""

from assets.family import Family
from assets.puzzles.assets import ASSETS, CHECKS
from assets.puzzles.choices import CHOICES
from assets.puzzles.inbox import INBOXES
from assets.puzzles.local_builds import LOCAL
from gristmill.puzzles.raw.known_recipes import wanted
from resources import PuzzlesHub

FAMILY = Family(
    assets=ASSETS,
    checks=CHECKS,
    inboxes=INBOXES,
    hubs={"puzzles": PuzzlesHub()},
    available=wanted,
    local=LOCAL,
    choices=CHOICES,
)
