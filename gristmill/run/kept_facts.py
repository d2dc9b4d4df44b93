"""Facts about source files that a process found, kept for the processes after it.

They lie beside the machine code of kernels, in a folder that only the user can write (see
`kernels.py`), and are found again wherever the file does not hold what was written: the sha256 of
all lines is the first line.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from gristmill.run import kernels

MOST: Final = 4_000
"""Sources of a file; with more, those that this process did not use are left out."""

Facts = Mapping[str, tuple[str, ...]]
"""By the sha256 of a source, words without spaces."""


def read(name: str) -> dict[str, tuple[str, ...]]:
    """Returns what earlier processes kept; nothing where there is no file, or a damaged one.

    name: of the file. It changes with the rule by which the facts are found.
    """
    folder = kernels.cache_folder()
    return {} if folder is None else _read(folder / name)


def keep(name: str, facts: Facts) -> None:
    """Add facts to those that are kept; where they cannot be written, nothing happens.

    name: of the file.
    facts: all that this process used.
    """
    folder = kernels.cache_folder()
    if folder is None:
        return
    # Another process may have added others since: at worst they are found once more.
    kept = {**_read(folder / name), **facts}
    if len(kept) > MOST:
        kept = dict(facts)
    body = "".join(f"{' '.join((source, *words))}\n" for source, words in sorted(kept.items()))
    data = f"{_checked(body)}\n{body}".encode()
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).replace(folder / name)
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        check, _, body = path.read_text().partition("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    if check != _checked(body):
        return {}
    lines = (line.split(" ") for line in body.splitlines())
    return {source: tuple(words) for source, *words in lines}


def _checked(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
