"""What a file of games is by its ending: a month's drop, or one of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

MONTH_ENDINGS: Final = (".zip", ".pgn", ".pgn.zst")
"""What the name of a month's drop ends in."""
ENDINGS: Final = (*MONTH_ENDINGS, ".pgn.gz", ".pgn.bz2")
"""What the name of a collection's file ends in."""
# Archives of other kinds, and what unpacks them.
_OTHER: Final = {
    ".gz": "gunzip",
    ".bz2": "bunzip2",
    ".xz": "unxz",
    ".7z": "7z x",
    ".rar": "unrar x",
    ".tar": "tar -xf",
    ".tgz": "tar -xf",
    ".zst": "unzstd",
}


def ending_in(name: str, endings: Sequence[str] = ENDINGS) -> str:
    """The ending of a name, in small letters; empty for none of `endings`."""
    return next((each for each in endings if name.lower().endswith(each)), "")


def ending_of(file: Path, endings: Sequence[str] = MONTH_ENDINGS) -> str:
    """The ending of a file, in small letters; one of `endings`.

    Raises BadInput for another ending, with what to do.
    """
    if ending := ending_in(file.name, endings):
        return ending
    if rule := packed_otherwise(file.name):
        raise BadInput(file, rule)
    raise BadInput(file, f"is neither {' nor '.join(endings)}; pack or rename it")


def packed_otherwise(name: str) -> str:
    """What to do with an archive of another kind; empty for what is none."""
    known = (word for each, word in _OTHER.items() if name.lower().endswith(each))
    if command := next(known, None):
        command = _OTHER[".tar"] if ".tar." in name.lower() else command
        return (
            f"is packed in a form that is not read: unpack it with `{command}`, and bring the .pgn"
        )
    return ""
