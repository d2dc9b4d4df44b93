"""The tables `[inbox]` and `[inbox.<name>]`: how drops are opened, and when one has arrived.

Source: docs/drops.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gristmill.settings.fields import check_fields
from gristmill.settings.tables import Table


@dataclass(frozen=True)
class InboxSettings:
    """How files of drops are opened, and when a drop has arrived.

    follow_links: whether a link in a drop counts as the file that it leads to; default False.
    roots: folders that such links may lead into, absolute or relative to the data root;
        default none.
    settle_seconds: for how long a drop without marks must stay unchanged; default 60.
    require_done: whether a drop without `.done` or `SHA256SUMS` waits; default False.
    """

    follow_links: bool = field(
        default=False,
        metadata={"help": "Follow links in drops to files in `roots`; false refuses every link."},
    )
    roots: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "Folders that links in drops may lead into, or their paths below the data root."
        },
    )

    settle_seconds: float = field(
        default=60.0,
        metadata={
            "help": "Seconds for which a drop without `.done` or `SHA256SUMS` must stay unchanged "
            "before its sensor takes it; 0: two looks, 15 seconds apart, are enough. What "
            "`gristmill materialize` takes does not wait.",
            "least": 0,
            "unit": "seconds",
            "most": 604_800,
        },
    )
    require_done: bool = field(
        default=False,
        metadata={
            "help": "Take no drop without `.done` or `SHA256SUMS`, whatever its age.",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.follow_links and not self.roots:
            raise ValueError("follow_links needs roots: name the folders that links may point into")
        if not all(root.strip() for root in self.roots):
            raise ValueError("roots has an empty text: name a folder, or `.` for the data root")


@dataclass(frozen=True)
class OneInboxSettings:
    """When the drops of one inbox have arrived, where that differs from `[inbox]`.

    settle_seconds, require_done: as in `[inbox]`, whose values are the defaults.
    """

    settle_seconds: float | None = field(
        default=None,
        metadata={
            "help": "As in [inbox], for this inbox alone; default: what [inbox] has.",
            "least": 0,
            "unit": "seconds",
            "most": 604_800,
        },
    )
    require_done: bool | None = field(
        default=None,
        metadata={"help": "As in [inbox], for this inbox alone; default: what [inbox] has."},
    )

    def __post_init__(self) -> None:
        check_fields(self)


INBOX: Final = Table("inbox", InboxSettings)
"""The one table that belongs to no family."""


def inbox_table(inbox: str) -> Table:
    """Returns the table of one inbox.

    inbox: its name, as `macroxue`.
    """
    return Table(f"{INBOX.name}/{inbox}", OneInboxSettings)
