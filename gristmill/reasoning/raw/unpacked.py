"""The bytes of a data file of a drop, unpacked within limits.

See also `rows.py`: the rows in these bytes. Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.contract import BadInput
from gristmill.reasoning.raw.drops import kind
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS, Limits, bounded
from gristmill.untrusted.lines import reads
from gristmill.untrusted.pointer import HEAD_BYTES, refuse_pointer
from gristmill.untrusted.unpack import unpack


@contextmanager
def unpacked(
    path: Path, links: LinkRule = REFUSE_LINKS, limits: Limits = LIMITS
) -> Iterator[Iterator[bytes]]:
    """Open a data file that is no Parquet; gives its text in parts, 1 MiB at most for most formats.

    path: the file, in its drop.
    links: what happens if it is a link; default: it is refused.
    limits: `bytes`, `text_bytes`, `ratio` and `any_ratio_bytes` count.

    Raises BadInput for what is no regular file, is damaged, or breaks a limit; GristmillError
    where `.zst` is read without zstandard.
    """
    _, packing = kind(path.name) or ("", "")
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size > limits.bytes:
            raise BadInput(path, f"has more than {limits.bytes:,} bytes")
        refuse_pointer(file.read(HEAD_BYTES), path)
        file.seek(0)
        if not packing:
            yield reads(file)
            return
        yield bounded(unpack(file, path, packing), path, limits.unpacked(size))
