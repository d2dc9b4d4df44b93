"""Months of the elite database: their names, month lists, and which are due at a date."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date

from gristmill.contract import BadInput

FIRST_MONTH = "2020-06"
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_BARE = re.compile(r"\d{4}-\d{2}", re.ASCII)
_NAMED = re.compile(r"(?<!\d)\d{4}-\d{2}(?!\d)", re.ASCII)
_LINK = re.compile(r"lichess_elite_(\d{4}-\d{2})\.zip(?:\?|$)", re.ASCII)


def check_month(month: str) -> str:
    """The month if it is `YYYY-MM` and not before the first archive; raises BadInput."""
    if not _MONTH.fullmatch(month) or month < FIRST_MONTH:
        raise BadInput(month, f"is not a month of the archive (YYYY-MM, {FIRST_MONTH} or later)")
    return month


def parse_month_list(text: str, name: str = "month list") -> list[str]:
    """Months of a list (docs/formats/chess.md#month-list): one a line, bare or as a link.

    Empty lines and lines with `#` in front are skipped, repeats dropped. Raises
    BadInput for any other line, and for a list without months.
    """
    months: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        link = _LINK.search(entry)
        if not link and not _BARE.fullmatch(entry):
            raise BadInput(name, f"Unsupported month entry {entry!r}", number)
        months[check_month(link[1] if link else entry)] = None
    if not months:
        raise BadInput(name, "has no months; write one a line, as YYYY-MM")
    return list(months)


def month_in(name: str) -> str | None:
    """The one month that a file's name carries, as in `lichess_elite_2024-01.zip`; else None."""
    found = set(_NAMED.findall(name))
    return found.pop() if len(found) == 1 else None


def month_before(month: str) -> str:
    """The month before a month."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - 1}-12" if number == 1 else f"{year}-{number - 1:02d}"


def due_months(
    tick: date, present: Collection[str], limit: int = 3, look_back: int = 12
) -> list[str]:
    """The months that a scheduled tick should ask for, at most `limit`, oldest first.

    They are of the `look_back` months that were over at the tick, not before
    the first archive, and not in `present`. Where more are missing than asked
    for, the choice goes round from week to week, so that months which stay
    unpublished or broken cannot keep the others waiting. Depends on the
    arguments alone.
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
