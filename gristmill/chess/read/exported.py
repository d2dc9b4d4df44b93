"""Games and splices as other programs read them: the lines of their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.raw.months import is_month
from gristmill.exports.table import SPLITS as WRITTEN
from gristmill.exports.table import Split, lines
from gristmill.families import columns_of
from gristmill.provenance import RECORD, read_record

_LICENCE: Final = "cc0-1.0"
"""Of the games of Lichess, which the months are made of; that of a collection is not known."""


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the games of a month, or the splits of a dataset or subset of games or splices.

    asset: its key. folder: its path.
    """
    of_rows = ("chess/game_dataset", "chess/splice_dataset", "chess/subset")
    if asset not in (*of_rows, "chess/valid_games"):
        return
    files = {WRITTEN.get(split, split): f"{split}.jsonl" for split in SPLITS}
    if asset == "chess/valid_games":
        files = {"train": folders.VALID}
    record = read_record(folder / RECORD)
    rows_of = record.inputs[0].asset if asset == "chess/subset" else asset
    licence = _LICENCE if is_month(record.partition or "") else ""
    for name, file in files.items():
        columns = columns_of(rows_of or asset)
        yield lines(folder / file, columns, name=name, file=file, licence=licence)
