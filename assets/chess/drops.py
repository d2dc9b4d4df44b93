"""The drops of chess: one file for each month in `drops/chess/`."""

from __future__ import annotations

from pathlib import Path

from gristmill import provenance
from gristmill.chess.raw.drops import ENDINGS
from gristmill.chess.raw.months import month_in
from gristmill.contract import BadInput
from gristmill.inbox import READY
from gristmill.inbox.sample_mark import real_paths
from resources import Lake

RAW_DROP = "chess/raw_drop"


def drop_of(lake: Lake, month: str) -> Path | None:
    """Returns the drop of a month, or None.

    lake: the data root.
    month: as `2024-01`.

    Raises BadInput if several files have the month in their names.
    """
    files = [path for path in _drops(lake) if month_in(path.name) == month]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise BadInput(
            files[0].parent, f"{len(files)} files have the month {month}: {names}: keep one"
        )
    return files[0] if files else None


def available(lake: Lake) -> set[str]:
    """Returns the months that need no download: those with a drop, and those with a built PGN.

    lake: the data root.

    A month whose drop is refused is one of them if its PGN is built: it fails, and the inbox says
    why of the others.
    """
    dropped = {
        str(month_in(path.name))
        for path in _drops(lake)
        if lake.judged("chess", path).state == READY
    }
    built = lake.root.glob(f"chess/raw/elite/*/{provenance.RECORD}")
    return dropped | {path.parent.name for path in built}


def _drops(lake: Lake) -> list[Path]:
    inbox = lake.inbox("chess")
    by_month: dict[str | None, list[Path]] = {}
    for path in sorted(inbox.iterdir()) if inbox.is_dir() else []:
        if path.name.lower().endswith(ENDINGS) and not path.name.startswith("."):
            by_month.setdefault(month_in(path.name), []).append(path)
    return sorted(path for files in by_month.values() for path in real_paths(files))
