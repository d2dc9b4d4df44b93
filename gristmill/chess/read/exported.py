"""Games and splices as other programs read them: the lines of their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.chess.config import SPLITS
from gristmill.chess.format import names
from gristmill.exports.table import SPLITS as WRITTEN
from gristmill.exports.table import Split, lines
from gristmill.families import columns_of

_LICENCE: Final = "cc0-1.0"
"""Of the games of Lichess, which the months are made of."""


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the games of a month, or the splits of a dataset of games or splices.

    asset: its key. folder: its path.
    """
    files = {}
    if asset == "chess/valid_games":
        files = {"train": names.VALID}
    elif asset in ("chess/game_dataset", "chess/splice_dataset"):
        files = {WRITTEN.get(split, split): f"{split}.jsonl" for split in SPLITS}
    for name, file in files.items():
        yield lines(folder / file, columns_of(asset), name=name, file=file, licence=_LICENCE)
