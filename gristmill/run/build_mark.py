"""The mark of a build in its folder of parts, for processes on other machines that make parts.

Such a process may see another folder under the same path, run another checkout, or work on when
the build has ended, as a worker whose node is taken for dead does. It compares the mark before it
makes a part, and once more before the part takes its place.
"""

from __future__ import annotations

import platform
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_sources

_LIBRARIES: Final = ("numpy", "numba", "pyarrow", "polars", "orjson", "tiktoken", "gigatoken")
_SOURCES: Final = Path(__file__).resolve().parent.parent
_LOOKS, _BETWEEN_SECONDS = 10, 0.3
"""A network file system may show a new file late."""


class NotTheBuild(GristmillError):
    """A process that should make a part does not see the folder of the build, or not its code."""


@dataclass(frozen=True)
class BuildMark:
    """A file in the folder of parts, which is there while the build takes parts.

    path: the file.
    host: the machine of the build.
    text: what the file holds: a random token.
    code: what the build runs, as `code` gives it.
    """

    path: Path
    host: str
    text: str
    code: tuple[tuple[str, str], ...]

    def attempt(self) -> str:
        """A name for one attempt at a part, which no other attempt has.

        Raises NotTheBuild, naming this machine, for other code and for another folder.
        """
        here = socket.gethostname()
        if differing := sorted({name for name, _ in set(code()) ^ set(self.code)}):
            mine, theirs = dict(code()), dict(self.code)
            listed = ", ".join(
                f"{name} {mine.get(name, 'missing')} (the build: {theirs.get(name, 'missing')})"
                for name in differing
            )
            raise NotTheBuild(
                f"{here}: makes no parts of a build on {self.host}, since it would run other code: "
                f"{listed}. All nodes need the same checkout and libraries"
            )
        if not self._seen(_LOOKS):
            raise NotTheBuild(
                f"{here}: does not see {self.path}, which the build on {self.host} wrote: the data "
                "root must be on a file system that all nodes have, at the same path"
            )
        return secrets.token_hex(4)

    def check(self) -> None:
        """Raise NotTheBuild where the build has ended, so that nothing is added to its parts."""
        if not self._seen(1):
            raise NotTheBuild(
                f"{socket.gethostname()}: the build on {self.host} has ended: no part is added"
            )

    def _seen(self, looks: int) -> bool:
        for look in range(looks):
            if look:
                time.sleep(_BETWEEN_SECONDS)
            with suppress(OSError, ValueError):
                if self.path.read_text() == self.text:
                    return True
        return False


@contextmanager
def marked(folder: Path) -> Iterator[BuildMark]:
    """Give the mark of a build that takes parts into `folder`; it is removed on leaving."""
    token = secrets.token_hex(16)
    mark = BuildMark(folder / f".{token}.build", socket.gethostname(), token, code())
    mark.path.write_text(mark.text)
    try:
        yield mark
    finally:
        mark.path.unlink(missing_ok=True)


@cache
def code() -> tuple[tuple[str, str], ...]:
    """What this process runs, by name: sources of the package, Python and libraries."""
    versions = {"gristmill": sha256_sources(_SOURCES)[:16], "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return tuple(sorted(versions.items()))
