"""Lines of a large file whose keys ascend, found by bisecting, for traces of single samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO


def lines_from(file: BinaryIO, key: Callable[[bytes], Any], wanted: Any) -> Iterator[bytes]:
    """Yield the lines of a file from the first on whose key is `wanted` or more.

    file: opened for reading bytes. key: gives the key of a line; what it raises is raised.
    Where the keys do not ascend, the first line that is given is any: look whether it is the one.
    """
    # No line that begins before `low` is wanted; one that begins first behind `high` is.
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        file.seek(max(middle - 1, 0))
        if middle:
            file.readline()
        begin = file.tell()
        if begin < high and key(line := file.readline()) < wanted:
            low = begin + len(line)
        else:
            high = middle
    file.seek(low)
    yield from file
