"""What a drop waits for before it is taken: marks, names of unfinished files, and its age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gristmill.inbox.marks import INCOMPLETE, Marks, Settling
from gristmill.printable import printable

EMPTY: Final = "the folder holds no file: copy the files of the drop into it, or remove it"
"""Why an empty folder is refused."""


def held_back(marks: Marks, unfinished: str, settling: Settling) -> str:
    """Returns why a drop waits whatever its age; empty where it does not."""
    if INCOMPLETE in marks.names:
        mark = printable(marks.names[INCOMPLETE])
        return f"{mark} says that it is not complete: remove that file when it is"
    if unfinished:
        return (
            f"{printable(unfinished)} has a name that tools give to files they have not finished: "
            "let the copy end, or remove the file"
        )
    if settling.require_done and not marks.says_complete:
        return printable(marks.missing())
    return ""


def young_until(marks: Marks, since: int, now_ns: int, settling: Settling) -> str:
    """Returns until when a drop must stay unchanged, in words; empty where it did for long enough.

    now_ns: nanoseconds since 1970.

    The time of the newest file counts, too, so that a drop that was moved in as a whole, or that
    came while nothing looked, does not wait again.
    """
    changed = since * 1_000_000
    if 0 < marks.newest_ns <= now_ns:
        changed = min(changed, marks.newest_ns)
    until = changed + int(settling.seconds * 1e9)
    if until <= now_ns:
        return ""
    at = datetime.fromtimestamp(-(-until // 1_000_000_000), UTC)
    return (
        "its files came or changed a short time ago: without .done or SHA256SUMS it is taken if "
        f"nothing changes until {at:%Y-%m-%d %H:%M:%S} UTC (settle_seconds)"
    )
