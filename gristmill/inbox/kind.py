"""What a family says of the drops of one of its inboxes, without a Dagster instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gristmill.inbox.account import Account
from gristmill.inbox.shape import FOLDER, Shape
from gristmill.untrusted.files import LinkRule

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
