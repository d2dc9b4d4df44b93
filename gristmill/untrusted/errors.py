"""What an error says about a drop, whatever raised it."""

from __future__ import annotations

import traceback

from gristmill.contract import GristmillError, os_reason

_SHOWN = 500
_FRAMES = 20


def explained(error: Exception) -> tuple[str, str]:
    """(why a drop is refused that raised this error, the traceback of an unexpected error)."""
    if isinstance(error, GristmillError):
        return str(error), ""
    if isinstance(error, OSError) and error.filename is not None:
        return unreadable(error), ""
    trace = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return f"cannot be read: {type(error).__name__}: {str(error)[:_SHOWN]}", trace


def unreadable(error: OSError) -> str:
    """Why a drop is refused that could not be read."""
    return f"{error.filename}: cannot be read: {os_reason(error)}"
