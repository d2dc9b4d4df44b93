"""The files that a process has loaded as code, and whether one of them has changed since."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

# The clock of a file system is behind the clock of the processor by up to one tick.
_TICK_NS: Final = 100_000_000
_State = tuple[int, int, int] | None


class LoadedFiles:
    """Code that this process has loaded since a time, as it was on the disk.

    since: nanoseconds since 1970, from before the first of it was read.
    others: more files, which may not exist, such as `.env`.

    Folders in which the modules of the working directory are count as files: a module that was
    added may take the place of another one.
    """

    def __init__(self, since: int, others: tuple[Path, ...] = ()) -> None:
        named = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        files = {Path(name) for name in named if name is not None}
        folders = {file.parent for file in files if file.is_relative_to(Path.cwd())}
        self._states = {path: _state(path) for path in (*files, *folders, *others)}
        # It may have been read before that change, or after it. A time to come says nothing: the
        # clock was wrong when the file was written, or is wrong now.
        unclear = range(since - _TICK_NS + 1, time.time_ns() + _TICK_NS)
        self._unclear = {
            path
            for path in (*files, *others)
            if (state := self._states[path]) is not None and state[0] in unclear
        }

    def changed(self) -> Path | None:
        """Returns a path that is not as it was, or of which that is not known; None if all are."""
        if self._unclear:
            return min(self._unclear)
        return next((path for path, was in self._states.items() if _state(path) != was), None)


def _state(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
