"""sha256 of files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

_CHUNK = 1 << 20


def sha256_file(path: Path, advance: Callable[[int], None] | None = None) -> str:
    """Hex sha256 of a file's bytes, read in pieces of 1 MiB.

    advance: told the size of each piece, for progress.
    """
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
            if advance is not None:
                advance(len(piece))
    return digest.hexdigest()
