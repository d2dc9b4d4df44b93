"""Packed files that a source would pass over in silence, though they look like files of puzzles.

Source: `docs/formats/puzzles.md#recipes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

PACKED: Final = frozenset({"7z", "br", "bz2", "gz", "lz4", "rar", "tgz", "xz", "zip", "zst"})
"""Endings of packed files, in lower case."""


def check_names(folder: Path, names: Iterable[str], counts: Callable[[str], bool]) -> None:
    """Refuse packed files that would count if they were unpacked.

    folder: the source.
    names: paths of its files in it. Those that begin with a dot never count.
    counts: whether a file of a name is read.

    A packed file beside the unpacked one is let be. Raises BadInput with what to do.
    """
    listed = sorted(names)
    present = {name.lower() for name in listed}
    for name in listed:
        stem, _, ending = name.rpartition(".")
        if any(part.startswith(".") for part in name.split("/")) or ending.lower() not in PACKED:
            continue
        if counts(stem) and stem.lower() not in present:
            raise BadInput(
                folder / name, "is packed, and packed files are not read: unpack it, and remove it"
            )


def unpack_hint(names: Iterable[str]) -> str:
    """What to add to a message about a source without puzzles: nothing, or which file to unpack."""
    packed = sorted(name for name in names if name.rpartition(".")[2].lower() in PACKED)
    return f"; unpack {packed[0]}" if packed else ""
