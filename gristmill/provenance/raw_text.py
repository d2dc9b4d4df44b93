"""The raw text of a sample, by what a trace says of it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gristmill.provenance.record import wrong_path
from gristmill.untrusted.files import opened
from gristmill.untrusted.walk import unpack

_FILES: Final = ("raw_file", "raw_steps")
_PACKED: Final = ("gz", "bz2", "xz", "zst")
_BINARY: Final = (*_PACKED, "zip", "parquet")
_MOST_WHOLE: Final = 1 << 16
"""Bytes of a file that is shown whole, where no smaller range is known to hold the sample."""
_READ: Final = 1 << 20


def raw_text(root: Path, facts: Mapping[str, object]) -> str | None:
    """The raw text of a sample; None where the facts name no bytes and no row of Parquet.

    None, too, where they note that the file is gone, or another one by now.

    root: the data root. facts: one step of an origin. Bytes that are no UTF-8 are escaped; a row of
    Parquet is an object of JSON.
    """
    named = next((str(facts[name]) for name in _FILES if name in facts), "")
    if not named or wrong_path(named) or "raw_note" in facts:
        return None
    file = root / named
    if "raw_row_group" in facts:
        import pyarrow.parquet as pq

        group, inside = (int(str(facts[name])) for name in ("raw_row_group", "raw_row_in_group"))
        with pq.ParquetFile(file) as held:
            (row,) = held.read_row_group(group).slice(inside - 1, 1).to_pylist()
        return json.dumps(row, ensure_ascii=False, default=str)
    place = facts.get("raw_unpacked_bytes", facts.get("raw_bytes"))
    if place is None:
        return None
    begin, end = map(int, str(place).split("-"))
    is_whole = "raw_unpacked_bytes" not in facts and (begin, end) == (0, file.stat().st_size)
    if is_whole and (end > _MOST_WHOLE or file.suffix.lstrip(".").lower() in _BINARY):
        return None
    return _bytes(file, facts.get("raw_member"), begin, end).decode("utf-8", "backslashreplace")


def _bytes(file: Path, member: object, begin: int, end: int) -> bytes:
    """Bytes of a file, of its text if it is packed, or of a member of an archive."""
    ending = file.suffix.lstrip(".").lower()
    with opened(file) as raw:
        if member is not None:
            with zipfile.ZipFile(raw) as archive, archive.open(str(member)) as inside:
                return _cut(iter(lambda: inside.read(_READ), b""), begin, end)
        if ending in _PACKED:
            return _cut(unpack(raw, file, ending), begin, end)
        raw.seek(begin)
        return raw.read(end - begin)


def _cut(parts: Iterator[bytes], begin: int, end: int) -> bytes:
    """The bytes from `begin` to `end`; what follows is not unpacked."""
    kept, at = bytearray(), 0
    for part in parts:
        kept += part[max(begin - at, 0) : max(end - at, 0)]
        at += len(part)
        if at >= end:
            break
    return bytes(kept)
