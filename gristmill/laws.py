"""Which laws hold of which asset's artifacts.

The laws themselves stand in each family's `laws.py`; they are imported when
they are asked for, since they pull in what the family needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from gristmill.contract import Violation

_LAWS = {
    "macroxue/pack": "gristmill.macroxue.laws:pack_laws",
    "chess/elite_pgn": "gristmill.chess.laws:archive_laws",
    "chess/valid_games": "gristmill.chess.laws:validated_laws",
    "chess/game_dataset": "gristmill.chess.laws:dataset_laws",
    "chess/splice_cache": "gristmill.chess.laws_cache:cache_laws",
    "chess/splice_dataset": "gristmill.chess.laws_splice:splice_laws",
}


def check(asset: str, folder: Path, partition: str | None = None) -> Iterator[Violation]:
    """Yield what `folder`, an artifact of `asset`, breaks; nothing where no laws are known.

    `where` of each violation is a path relative to the folder. Laws of a folder
    that several partitions share take the partition as their second argument.
    """
    if asset not in _LAWS:
        return
    module, name = _LAWS[asset].split(":")
    law = getattr(import_module(module), name)
    yield from law(folder)
