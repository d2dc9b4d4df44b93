"""The rows of Parquet files, read in a child process.

See also `parquet_child.py`: what the child does, and its limits; `rows.py`: other formats.
Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput
from gristmill.reasoning.raw import parquet_child
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.untrusted import child
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.pointer import HEAD_BYTES, refuse_pointer

_SECONDS: Final = 120
_BYTES_PER_SECOND: Final = 1 << 20


def rows(
    path: Path, links: LinkRule = REFUSE_LINKS, columns: Collection[str] | None = None
) -> Iterator[tuple[int, dict[str, Any] | Unfit]]:
    """Yield the rows of a Parquet file, numbered from 1.

    path: the file, in its drop.
    links: what happens if it is a link; default: it is refused.
    columns: that are read; default None: all. The others are null in every row.

    Raises BadInput if it is no regular file, is damaged, or breaks a limit.
    """
    with open_file(path, root=path.parent, links=links) as file:
        size = os.fstat(file.fileno()).st_size
        _check_begin(os.pread(file.fileno(), HEAD_BYTES, 0), path)
        batches = child.stream(
            parquet_child.read,
            path,
            None if columns is None else frozenset(columns),
            file=path,
            descriptors=[file.fileno()],
            seconds=_SECONDS + size / _BYTES_PER_SECOND,
        )
        number = 0
        for batch in batches:
            for row in batch:
                number += 1
                if isinstance(row, str):
                    yield number, Unfit("utf8", row)
                else:
                    yield number, _row(row)


def _check_begin(head: bytes, path: Path) -> None:
    """Raise BadInput for what is no Parquet file by its first bytes."""
    refuse_pointer(head, path)
    if head.startswith(b"PARE"):
        raise BadInput(path, "is encrypted: write it again without encryption")
    if not b"PAR1".startswith(head[:4]):
        raise BadInput(path, "is no Parquet file: give it the ending of what it is")


def _row(octets: bytes) -> dict[str, Any]:
    """A row of the child; it names NaN and infinities, which orjson does not read."""
    value: dict[str, Any]
    try:
        value = orjson.loads(octets)
    except orjson.JSONDecodeError:
        value = json.loads(octets)
    return value
