"""How much a reader compares with the record when it opens an artifact."""

from __future__ import annotations

from typing import Final, Literal, get_args

Verify = Literal["none", "sizes", "hash"]

LEVELS: Final[tuple[Verify, ...]] = get_args(Verify)


def verify_level(value: Verify | bool) -> Verify:
    """The level that an argument `verify` means.

    value: "none" opens the files, and refuses only those that were cut short. "sizes" also
        compares the size of each file that the reader uses with the record. "hash" also compares
        its sha256. True is "hash", False is "sizes".

    Raises ValueError for another value.
    """
    if isinstance(value, bool):
        return "hash" if value else "sizes"
    if value not in LEVELS:
        raise ValueError(f"verify must be one of {', '.join(map(repr, LEVELS))}, not {value!r}")
    return value
