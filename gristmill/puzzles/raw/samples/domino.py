"""The sample of Domino: games are sampled, so that a recipe is all that it needs."""

from __future__ import annotations

from pathlib import Path


def write_domino_sample(path: Path) -> None:
    """Write the recipe of the sample; path: of the file, which must not exist."""
    path.write_text('kind = "domino"\n\n[settings]\nnum_games = 200\nnum_aug = 2\n')
