"""Valid games that are in the PGN more than once: rows with the game id of an earlier row.

Source: docs/formats/chess.md#equal-games
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gristmill.chess.format import folders
from gristmill.chess.format.folders import VALID, Sidecar, repeated_keys

_ID = len(b'{"game_id": "')
_ID_BYTES = 40
_RECORDS_PER_READ = 1 << 15


@dataclass(frozen=True)
class EqualGames:
    """How many valid games an earlier one equals, and the first of them."""

    games: int = 0
    game_id: str = ""
    pgn_offset: int = 0


def find_equal_games(folder: Path) -> EqualGames:
    """Find the valid games with the id of an earlier one.

    Only rows of equal moves are looked at.
    """
    keys = repeated_keys(folders.games_file(folder, "games"))
    found = Sidecar.open(folder, "games") if len(keys) else None
    if found is None:
        return EqualGames()
    seen: set[bytes] = set()
    games, first = 0, ("", 0)
    with (folder / VALID).open("rb") as rows:
        for _, _, records in found.batches(_RECORDS_PER_READ):
            picked = records[np.isin(records["move_key"], keys)]
            for row, offset in zip(picked["row"].tolist(), picked["pgn"].tolist(), strict=True):
                rows.seek(row + _ID)
                game_id = rows.read(_ID_BYTES)
                if game_id in seen:
                    first = first if games else (game_id.decode(), offset)
                    games += 1
                seen.add(game_id)
    return EqualGames(games, *first)
