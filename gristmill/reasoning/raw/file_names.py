"""What names of data files say of others: parts that are not there, and files that are copies.

See also `drops.py`: which split a file belongs to.
Source: docs/formats/reasoning.md#drops.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from gristmill.printable import printable

_PART: Final = re.compile(r"^(.*?)[-_.]?(\d{1,6})-of-(\d{1,6})(?!\d)(.*)$", re.IGNORECASE)
_COPY: Final = re.compile(
    r"^(.*?)(?: ?\(\d+\)|[ _-]+copy(?: ?\(?\d+\)?)?)(\.[^/]*)$", re.IGNORECASE
)


def name_notes(names: Sequence[str]) -> Iterator[str]:
    """Yield what is unusual in the names of one split's files; nothing of it stops a build.

    names: relative to the drop.

    A whole beside its parts, and a copy that a browser or a desktop made, hold records twice.
    Parts that are not there hold records that nothing reads; a person may mean it so.
    """
    parts: dict[tuple[str, int, str], set[int]] = defaultdict(set)
    for name in names:
        if match := _PART.match(name):
            parts[match[1], int(match[3]), match[4]].add(int(match[2]))
        elif (match := _COPY.match(name)) and match[1] + match[2] in names:
            first = printable(match[1] + match[2])
            yield f"{printable(name)} is named as a copy of {first}: records may count twice"
    for (begin, count, end), found in parts.items():
        shown = printable(f"{begin}-*-of-{count:05}{end}")
        if (whole := begin + end) in names:
            yield f"{printable(whole)} is beside its parts {shown}: records may count twice"
        # Some tools count from 0, others from 1.
        if len(found) < count:
            yield f"{len(found):,} of the {count:,} files {shown} are there: the rest is not read"
