"""What the name of a file of games says: its month, and by its ending what it is.

Source: docs/formats/chess.md#months
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

# The first archive of the database.
FIRST_MONTH = "2020-06"
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_BARE = re.compile(r"\d{4}-\d{2}", re.ASCII)
_NAMED = re.compile(r"(?<!\d)\d{4}-\d{2}(?!\d)", re.ASCII)
_LINK = re.compile(r"lichess_elite_(\d{4}-\d{2})\.zip(?:\?|$)", re.ASCII)


def check_month(month: str) -> str:
    """Return a month. Raises BadInput unless it is `YYYY-MM` and not before the first archive."""
    if not _MONTH.fullmatch(month) or month < FIRST_MONTH:
        raise BadInput(month, f"is not a month of the archive (YYYY-MM, {FIRST_MONTH} or later)")
    return month


def parse_month_list(text: str, name: str = "month list") -> list[str]:
    """The months of a list, without repetitions: one month or one link a line.

    Empty lines and lines that begin with `#` are skipped. Raises BadInput for any other line, with
    `name` for the list, and for a list without months.
    """
    months: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        link = _LINK.search(entry)
        if not link and not _BARE.fullmatch(entry):
            raise BadInput(
                name, f"Unsupported month entry {entry!r}; write YYYY-MM or a link", number
            )
        months[check_month(link[1] if link else entry)] = None
    if not months:
        raise BadInput(name, "has no months; write one a line, as YYYY-MM")
    return list(months)


def is_month(key: str) -> bool:
    """Whether a partition key is that of a month, and not of a collection."""
    return _BARE.fullmatch(key) is not None


def month_in(name: str) -> str | None:
    """The month in the name of a drop; None unless there is exactly one."""
    months = set(_NAMED.findall(name))
    return months.pop() if len(months) == 1 else None


def has_ended(month: str, day: date) -> bool:
    """Whether a month is one of the archive, and over on a day."""
    return bool(_MONTH.fullmatch(month)) and FIRST_MONTH <= month < f"{day:%Y-%m}"


def month_before(month: str) -> str:
    """The month before a month."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - 1}-12" if number == 1 else f"{year}-{number - 1:02d}"


def due_months(
    tick: date, present: Collection[str], limit: int = 3, look_back: int = 12
) -> list[str]:
    """The months that a tick of the schedule should ask for, oldest first.

    tick: date of the tick.
    present: months that need not be asked for.
    limit: months to return at most, 3 by default.
    look_back: how many months before the tick count, 12 by default; no month before
        the first archive counts.

    Where more months are missing than `limit`, the choice changes from week to week:
    months that stay unpublished or damaged cannot keep the others waiting.
    """
    missing: list[str] = []
    month = f"{tick.year}-{tick.month:02d}"
    for _ in range(look_back):
        month = month_before(month)
        if month >= FIRST_MONTH and month not in present:
            missing.append(month)
    missing.reverse()
    if len(missing) <= limit:
        return missing
    start = (tick.toordinal() // 7) * limit % len(missing)
    return sorted((missing + missing)[start : start + limit])


MONTH_ENDINGS: Final = (".zip", ".pgn", ".pgn.zst")
"""What the name of a month's drop ends in."""
ENDINGS: Final = (*MONTH_ENDINGS, ".pgn.gz", ".pgn.bz2")
"""What the name of a collection's file ends in."""
# Archives of other kinds, and what unpacks them.
_OTHER: Final = {
    ".gz": "gunzip",
    ".bz2": "bunzip2",
    ".xz": "unxz",
    ".7z": "7z x",
    ".rar": "unrar x",
    ".tar": "tar -xf",
    ".tgz": "tar -xf",
    ".zst": "unzstd",
}


def ending_in(name: str, endings: Sequence[str] = ENDINGS) -> str:
    """The ending of a name, in small letters; empty for none of `endings`."""
    return next((each for each in endings if name.lower().endswith(each)), "")


def ending_of(file: Path, endings: Sequence[str] = MONTH_ENDINGS) -> str:
    """The ending of a file, in small letters; one of `endings`.

    Raises BadInput for another ending, with what to do.
    """
    if ending := ending_in(file.name, endings):
        return ending
    if rule := packed_otherwise(file.name):
        raise BadInput(file, rule)
    raise BadInput(file, f"is neither {' nor '.join(endings)}; pack or rename it")


def packed_otherwise(name: str) -> str:
    """What to do with an archive of another kind; empty for what is none."""
    known = (word for each, word in _OTHER.items() if name.lower().endswith(each))
    if command := next(known, None):
        command = _OTHER[".tar"] if ".tar." in name.lower() else command
        return (
            f"is packed in a form that is not read: unpack it with `{command}`, and bring the .pgn"
        )
    return ""
