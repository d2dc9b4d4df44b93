"""The key of a source's draws, from the seed and the text that names the source."""

from __future__ import annotations

import hashlib


def source_key(seed: int, kind: str, source: str) -> int:
    """The key of a source's draws: a number below 2 to the 64.

    seed: of the build.
    kind: what is drawn, as `sudoku` or `sudoku:subsample`.
    source: the text that names the source, the same wherever it is found.
    """
    digest = hashlib.sha256(f"{seed}:{kind}:{source}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
