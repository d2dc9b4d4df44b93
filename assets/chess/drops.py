"""Months that arrive as files: which there are, which cannot be built, which are at hand."""

from __future__ import annotations

from pathlib import Path

from assets.chess.partitions import chess_months
from gristmill import provenance
from gristmill.chess.raw.months import month_in
from gristmill.contract import BadInput
from resources import Lake

RAW_DROP = "chess/raw_drop"
ENDINGS = (".zip", ".pgn", ".pgn.zst")


def drop_of(lake: Lake, month: str) -> Path | None:
    """The file in `drops/chess/` that carries the month. Raises BadInput where there are two."""
    files = [path for path in _drops(lake) if month_in(path.name) == month]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise BadInput(files[0].parent, f"{len(files)} files carry {month}: {names}: leave one")
    return files[0] if files else None


def drop_refusal(path: Path) -> str | None:
    """Why a file in `drops/chess/` is no month that can be built now, None where it is."""
    month = month_in(path.name)
    if month is None or not chess_months.has_partition_key(month):
        return f"{month or path.name} is no month that is over: the archive begins with 2020-06"
    return None


def available(lake: Lake) -> set[str]:
    """The months that can be built without asking the server: dropped, or downloaded before."""
    dropped = {str(month_in(path.name)) for path in _drops(lake) if drop_refusal(path) is None}
    built = lake.root.glob(f"chess/raw/elite/*/{provenance.RECORD}")
    return dropped | {path.parent.name for path in built}


def _drops(lake: Lake) -> list[Path]:
    inbox = lake.inbox("chess")
    files = sorted(inbox.iterdir()) if inbox.is_dir() else []
    return [path for path in files if path.name.endswith(ENDINGS) and not path.name.startswith(".")]
