"""Looks at one drop so that nothing in it can stop the look at the others.

Used by `gristmill.inbox`. See also `inbox_listing`: what is in an inbox.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.inbox_listing import Survey, survey, unreadable
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.timed import within

DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""

_SHOWN = 500
_FRAMES = 20


def surveyed(path: Path, links: LinkRule) -> Survey:
    """`survey` within DROP_SECONDS. Raises BadInput where it takes longer, and as `survey`."""
    return within(DROP_SECONDS, path, lambda: survey(path, links))


def asked(path: Path, refuse: Callable[[Path], str | None]) -> str | None:
    """Why a family refuses a drop, or None, within DROP_SECONDS.

    path: the drop.
    refuse: asks the family.

    Raises BadInput where it takes longer, and whatever `refuse` raises.
    """
    return within(DROP_SECONDS, path, lambda: refuse(path))


def explained(error: Exception) -> tuple[str, str]:
    """(why a drop is refused that raised this error, the traceback of an unexpected error).

    error: of the library, of the file system, or any other.
    """
    if isinstance(error, GristmillError):
        return str(error), ""
    if isinstance(error, OSError) and error.filename is not None:
        return unreadable(error), ""
    trace = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return f"cannot be read: {type(error).__name__}: {str(error)[:_SHOWN]}", trace
