"""Games and splices as a history names them, and the samples that a loader had of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.read.samples import counts
from gristmill.contract import GristmillError
from gristmill.history.rows import Kept
from gristmill.loading.past import Past
from gristmill.loading.source import Source
from gristmill.provenance import Record

_PGN: Final = "chess/raw/elite"
_ID: Final = 16
"""Characters of a game's id, which may be a hash, that are kept."""
_BATCH: Final = 1 << 14


def rows(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each game, or splice, by its id, with its bytes in the PGN where they are known."""
    is_valid = (folder / folders.VALID).exists()
    sources = [each.get("name") for each in folders.read_sources(folder)]
    for split in ("",) if is_valid else SPLITS:
        path = folders.valid_file(folder) if is_valid else folders.split_file(folder, split)
        recorded = folders.Sidecar.open(folder, split or "games")
        batches = recorded.batches(_BATCH) if recorded else ()
        places = chain.from_iterable(
            zip(*(games[name].tolist() for name in ("pgn", "size", "file")), strict=True)
            for *_, games in batches
        )
        with path.open("rb") as file:
            for number, line in enumerate(filter(bytes.strip, file)):
                row = orjson.loads(line)
                name = str(row["game_id"])[:_ID]
                if "splice_index" in row:
                    name = f"{name} splice {row['splice_index']}"
                begin, size, source = next(places, (-1, 0, -1))
                where, end = "", -1
                if 0 <= source < len(sources):
                    where, end = f"{_PGN}/{record.partition}/{sources[source]}", begin + size
                plies = int(row.get("plies", 0))
                yield Kept(split, name, line, where, begin, end, number, 1, plies)


def past(kept: Past, **_: Any) -> Source:
    """The samples of months as `dataset.opened` gives them."""
    config = kept.identity.numbering["cache"]
    if config["max_samples_per_game"]:
        raise GristmillError(
            f"{kept.identity.artifact}: which samples of each game were drawn is not kept; it is "
            "known where all are taken (max_samples_per_game = 0)"
        )
    least = config["min_context"], config["min_target"]
    return kept.of(counts=lambda plies: counts(plies, *least))
