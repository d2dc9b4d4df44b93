"""The tables `[inbox]` and `[inbox.<name>]`: how drops are opened, and when one has arrived.

Source: docs/drops.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from gristmill.settings.fields import Checked
from gristmill.settings.kinds import Ge, Help, Le, Unit
from gristmill.settings.tables import Table

_WEEK: Final = 604_800
_AS_IN_INBOX: Final = Help("As in [inbox], for this inbox alone; default: what [inbox] has.")


@dataclass(frozen=True)
class InboxSettings(Checked):
    """How files of drops are opened, and when a drop has arrived."""

    follow_links: Annotated[
        bool, Help("Follow links in drops to files in `roots`; false refuses every link.")
    ] = False
    roots: Annotated[
        tuple[str, ...],
        Help("Folders that links in drops may lead into, or their paths below the data root."),
    ] = ()
    settle_seconds: Annotated[
        float,
        Ge(0),
        Le(_WEEK),
        Unit("seconds"),
        Help(
            "Seconds for which a drop without `.done` or `SHA256SUMS` must stay unchanged "
            "before its sensor takes it; 0: two looks, 15 seconds apart, are enough. What "
            "`gristmill materialize` takes does not wait."
        ),
    ] = 60.0
    require_done: Annotated[
        bool, Help("Take no drop without `.done` or `SHA256SUMS`, whatever its age.")
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.follow_links and not self.roots:
            raise ValueError("follow_links needs roots: name the folders that links may point into")
        if not all(root.strip() for root in self.roots):
            raise ValueError("roots has an empty text: name a folder, or `.` for the data root")


@dataclass(frozen=True)
class OneInboxSettings(Checked):
    """When the drops of one inbox have arrived, where that differs from `[inbox]`."""

    settle_seconds: Annotated[float | None, Ge(0), Le(_WEEK), Unit("seconds"), _AS_IN_INBOX] = None
    require_done: Annotated[bool | None, _AS_IN_INBOX] = None


INBOX: Final = Table("inbox", InboxSettings)
"""The one table that belongs to no family."""


def inbox_table(inbox: str) -> Table:
    """Returns the table of one inbox.

    inbox: its name, as `macroxue`.
    """
    return Table(f"{INBOX.name}/{inbox}", OneInboxSettings)
