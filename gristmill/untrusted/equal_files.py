"""Two files of a drop with equal bytes, found without reading files that cannot be equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, os_reason
from gristmill.hashing import sha256_of
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file

END: Final = 1 << 16
"""Bytes of the head and of the tail by which files are compared first."""
_LEAST: Final = 1 << 14
_MOST: Final = 1 << 30


def refuse_equal(
    drop: Path, sizes: Mapping[str, int], links: LinkRule = REFUSE_LINKS, most: int = _MOST
) -> None:
    """Raise BadInput where two files of a drop have the same bytes; arguments as `equal_pair`."""
    if pair := equal_pair(drop, sizes, links, most):
        raise BadInput(drop / pair[1], equal_rule(pair[0]))


def equal_pair(
    drop: Path, sizes: Mapping[str, int], links: LinkRule = REFUSE_LINKS, most: int = _MOST
) -> tuple[str, str] | None:
    """Two files of a drop that have the same bytes, as far as a look can tell; None without.

    sizes: bytes of the files to compare, by the path in the drop; empty files count nothing.
    links: what happens to files that are links; default: they are refused.
    most: bytes to read at most, default 1 GiB: a few seconds.

    Files of one size are compared by their first and last 64 KiB, and those that agree as a whole.
    What would take more than `most` is left to whoever knows the sums. Raises BadInput for a file
    that cannot be read.
    """
    by_size: dict[int, list[str]] = {}
    for name, size in sorted(sizes.items()):
        by_size.setdefault(size, []).append(name)
    left = most
    for size, names in sorted(by_size.items()):
        if not size or len(names) < 2:
            continue
        # A file that is opened costs something, however short it is.
        left -= len(names) * max(min(size, 2 * END), _LEAST)
        if left < 0:
            return None
        for same in alike(drop, names, links, partial(ends, size)):
            pair = same
            if size > 2 * END:
                left -= size * len(same)
                pair = next(alike(drop, same, links, _whole), []) if left >= 0 else []
            if pair:
                return pair[0], pair[1]
    return None


def equal_rule(other: str) -> str:
    """The rule that a file breaks that has the bytes of another one of its drop."""
    return f"has the bytes of {other}: its records would count twice: take one of them out"


def alike(
    drop: Path, names: Sequence[str], links: LinkRule, digest: Callable[[Path, LinkRule, Path], str]
) -> Iterator[list[str]]:
    """Yield the names of files whose digest is equal, two at least. Raises BadInput as above."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            found.setdefault(digest(drop / name, links, drop), []).append(name)
        except FileNotFoundError:
            continue  # removed after it was listed: the next look sees the drop without it
        except OSError as error:
            raise BadInput(drop / name, f"cannot be read: {os_reason(error)}") from error
    return (same for same in found.values() if len(same) > 1)


def ends(size: int, path: Path, links: LinkRule, root: Path) -> str:
    """The digest of the head and the tail of a file. size: its bytes. Raises as `open_file`."""
    with open_file(path, root=root, links=links, buffering=0) as file:
        octets = file.read(END)
        file.seek(max(size - END, len(octets)))
        return hashlib.sha256(octets + file.read(END)).hexdigest()


def _whole(path: Path, links: LinkRule, root: Path) -> str:
    with open_file(path, root=root, links=links, buffering=0) as file:
        return sha256_of(file)
