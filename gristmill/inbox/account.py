"""What a family says of the drops of an inbox: what one is, and what becomes of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gristmill.contract import NothingToBuild
from gristmill.inbox.listing import FOLDER, Shape
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule

_MOST_NAMED: Final = 5


class Waits(NothingToBuild):
    """A drop is whole, and nothing can be built from it before something else is there."""


class Unread(NothingToBuild):
    """A drop is whole, and nothing reads it; the text says what to write so that something does."""


@dataclass(frozen=True)
class Account:
    """What becomes of each file of a drop. Marks and files whose name begins with a dot have none.

    taken: the files that are read, by split; the key is empty where a drop has no splits. Names are
        POSIX paths relative to the drop, or the name of a drop that is a file.
    left_out: why each other file is not read, by its name; a folder of which nothing is read ends
        in `/`.
    """

    taken: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """One line a split, or one for a drop without splits: files taken, files left out.

        Then a line for each note.
        """
        left = _left_out(self.left_out)
        if set(self.taken) <= {""}:
            return [_joined(_counted(self.taken.get("", ())), left), *self.notes]
        lines = [f"{split}: {_counted(names)}" for split, names in self.taken.items()]
        return [*lines, *([left] if left else []), *self.notes]

    def of(self, split: str) -> Account:
        """The account of one split: its files, and what is left out of the drop."""
        return Account({"": self.taken.get(split, ())}, self.left_out, self.notes)


def _counted(names: Sequence[str]) -> str:
    return f"{len(names):,} file{'' if len(names) == 1 else 's'} taken"


def _left_out(left: Mapping[str, str]) -> str:
    if not left:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(left.items()):
        by_reason.setdefault(reason, []).append(printable(name))
    parts = []
    for reason, names in by_reason.items():
        more = len(names) - _MOST_NAMED
        named = ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        parts.append(f"{named} ({reason})")
    return f"{len(left):,} left out: {'; '.join(parts)}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


IsThere = Callable[[str, str], bool]
"""Takes an inbox and the name of a drop in it; returns whether that drop is whole."""


@dataclass(frozen=True)
class DropKind:
    """The drops of one inbox.

    account: takes a drop and what happens to links in it; returns what becomes of its files.
        Raises GristmillError for a drop that is refused.
    shape: a drop is a folder (default), or a file with one of certain endings.
    needs: takes a drop that is not refused, the data root, and what tells whether other drops are
        whole. Raises Waits or Unread where nothing can be built from it now. Default: never.
    """

    account: Callable[[Path, LinkRule], Account]
    shape: Shape = FOLDER
    needs: Callable[[Path, Path, IsThere], None] = lambda _drop, _root, _is_there: None
