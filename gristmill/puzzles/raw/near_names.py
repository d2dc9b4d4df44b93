"""Names of files that a source would pass over in silence, though they look like files of puzzles.

A packed file, such as `test.csv.gz`, and an ending in capitals, such as `.JSON`, are refused.
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
    """Refuse files that would count under another name.

    folder: the source.
    names: paths of its files in it. Those that begin with a dot never count.
    counts: whether a file of a name is read.

    A packed file beside the unpacked one is let be. Raises BadInput with what to do.
    """
    present = set(names)
    for name in sorted(present):
        if counts(name) or any(part.startswith(".") for part in name.split("/")):
            continue
        stem, _, ending = name.rpartition(".")
        is_packed = ending.lower() in PACKED
        meant = next(filter(counts, _spellings(stem if is_packed else name)), None)
        if meant is None or (is_packed and meant in present):
            continue
        if is_packed:
            raise BadInput(
                folder / name, "is packed, and packed files are not read: unpack it, and remove it"
            )
        raise BadInput(
            folder / name,
            f"would be passed over, since capitals count in names: rename it to {meant}",
        )


def _spellings(name: str) -> tuple[str, ...]:
    """A name as it is, with its ending in lower case, and with all of its last part so."""
    before, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    return name, f"{before}{slash}{stem}{dot}{ending.lower()}", f"{before}{slash}{last.lower()}"


def unpack_hint(names: Iterable[str]) -> str:
    """What to add to a message about a source without puzzles: nothing, or which file to unpack."""
    packed = sorted(name for name in names if name.rpartition(".")[2].lower() in PACKED)
    return f"; unpack {packed[0]}" if packed else ""
