"""Which chess artifact a folder is; needs no module that reads the artifacts."""

from __future__ import annotations

import json
from pathlib import Path

from gristmill.chess.format.names import SOURCE, SPLICE_INDICES, STATS, SUBSET, VALID, split_file
from gristmill.contract import BadInput

_ASSETS = {
    "validated": "chess/valid_games",
    "dataset": "chess/game_dataset",
    "cache": "chess/splice_cache",
    "splices": "chess/splice_dataset",
    "subset": "chess/subset",
}


def kind_of(path: Path) -> str | None:
    """The kind of a chess folder (docs/formats/chess.md#folders).

    Raises BadInput where stats.json is damaged: it says which of the two datasets this is.
    """
    if (path / VALID).is_file():
        return "validated"
    if (path / "train" / SPLICE_INDICES).is_file():
        return "cache"
    if (path / SUBSET).is_file():
        return "subset"
    if split_file(path, "train").is_file() and (path / STATS).is_file():
        try:
            stats = json.loads((path / STATS).read_bytes())
        except (ValueError, RecursionError) as error:
            raise BadInput(path / STATS, f"not JSON ({error}); build the folder again") from error
        if not isinstance(stats, dict):
            raise BadInput(path / STATS, "not a JSON object; build the folder again")
        return "dataset" if "dataset_format" in stats else "splices"
    return None


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none.

    folder: any path.
    """
    if (folder / SOURCE).is_file() and any(folder.glob("*.pgn")):
        return "chess/elite_pgn"
    return _ASSETS.get(kind_of(folder) or "")
