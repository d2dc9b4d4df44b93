"""The drops of chess: one file for each month in `drops/chess/`."""

from __future__ import annotations

from pathlib import Path

from assets.chess.partitions import chess_months
from gristmill import provenance
from gristmill.chess.raw.months import month_in
from gristmill.contract import BadInput, GristmillError
from gristmill.inbox.sample_mark import real_paths
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, has_file
from resources import Lake

RAW_DROP = "chess/raw_drop"
ENDINGS = (".zip", ".pgn", ".pgn.zst")


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


def drop_refusal(path: Path) -> str | None:
    """Returns why a file in `drops/chess/` cannot be built, or None.

    path: the file.
    """
    month = month_in(path.name)
    if month is None or not chess_months.has_partition_key(month):
        return (
            f"{month or path.name} is not a month that has ended, from 2020-06 on: put the month "
            "into the file's name, as lichess_elite_2024-01.zip"
        )
    return None


def available(lake: Lake) -> set[str]:
    """Returns the months that need no download: those with a drop, and those with a built PGN.

    lake: the data root.

    A month whose drop the inbox refuses is none of them: it is reported as refused, and not built.
    """
    try:
        links = lake.link_rule()
    except GristmillError:
        links = REFUSE_LINKS  # a wrong file of the data root refuses no drop
    dropped, refused = set(), set()
    for path in _drops(lake):
        month = str(month_in(path.name))
        if month in dropped or not _can_be_built(path, links):
            refused.add(month)
        dropped.add(month)
    built = lake.root.glob(f"chess/raw/elite/*/{provenance.RECORD}")
    return (dropped | {path.parent.name for path in built}) - refused


def _can_be_built(path: Path, links: LinkRule) -> bool:
    try:
        return drop_refusal(path) is None and has_file(path, root=path.parent, links=links)
    except BadInput:
        return False


def _drops(lake: Lake) -> list[Path]:
    inbox = lake.inbox("chess")
    by_month: dict[str | None, list[Path]] = {}
    for path in sorted(inbox.iterdir()) if inbox.is_dir() else []:
        if path.name.endswith(ENDINGS) and not path.name.startswith("."):
            by_month.setdefault(month_in(path.name), []).append(path)
    return sorted(path for files in by_month.values() for path in real_paths(files))
