"""The texts of a part as arrays, block by block: of JSON lines a piece of the file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.corpora.raw.rows import Piece, has_pieces, pieces, unpacked
from gristmill.leaks.method import Texts
from gristmill.leaks.texts import Counts, Part, Text
from gristmill.untrusted.limits import LIMITS

COLUMNS: Final = 1 << 12
"""Columns that have a number; the others have that of the empty name, 0."""
_BATCH: Final = 4 << 20
_MOST_TEXTS: Final = 1 << 16


class Block(NamedTuple):
    """Texts, the row of each from 1 and its column, int64 [T].

    end: of the bytes of the file that were read so far; 0 where it is read as a whole.
    """

    texts: Texts
    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    end: int = 0


def blocks(part: Part, counts: Counts, names: dict[str, int], begin: int = 0) -> Iterator[Block]:
    """Yield the texts of a part, and count its rows.

    names: numbers of columns by their names, to which those are added that are met. begin: the end
    of a block, behind which it continues with the counts of that block; default 0: all.

    Raises as `Part.texts`. Memory: a piece of 16 MiB at most, or 4 MiB of texts, four times.
    """
    if not has_pieces(part.file, part.links):
        batch, size = list[Text](), 0
        for each in part.texts(counts):
            batch.append(each)
            size += len(each.text)
            if size > _BATCH or len(batch) == _MOST_TEXTS:
                yield _block(batch, names)
                batch, size = [], 0
        if batch:
            yield _block(batch, names)
        return
    with part.unchanged():
        for piece in pieces(part.file, part.links):
            if piece.end > begin:
                yield _of_piece(part, piece, counts, names)


def _of_piece(part: Part, piece: Piece, counts: Counts, names: dict[str, int]) -> Block:
    from gristmill.leaks.kernels import flat

    is_utf8 = False
    with unpacked(part.file, part.links, piece=piece) as octets:
        raw = b"".join(octets)
    given, before = np.frombuffer(raw, np.uint8), counts.lines
    data = np.empty_like(given)
    with suppress(UnicodeDecodeError):
        is_utf8 = raw.isascii() or bool(raw.decode())
    ends, rows, columns, keys, lines = flat(given if is_utf8 else given[:0], data)
    if lines == 0 or len(raw) > LIMITS.line_bytes:
        made = _block([*part.texts(counts, piece)], names)
        counts.lines = before + raw.removesuffix(b"\n").count(b"\n") + 1
        return made._replace(end=piece.end)
    counts.rows, counts.lines = counts.rows + lines, before + lines
    numbers = np.zeros(len(keys), np.int64)
    for key in np.unique(columns).tolist():
        numbers[key] = _number(raw[slice(*keys[key])].decode(), names)
    data.flags.writeable = False  # as `Texts.of` has them, else each kernel is compiled twice
    return Block(Texts(data, ends), before + rows, numbers[columns], piece.end)


def _number(name: str, names: dict[str, int]) -> int:
    return names.setdefault(name, len(names)) if len(names) < COLUMNS else names.get(name, 0)


def _block(some: list[Text], names: dict[str, int]) -> Block:
    of: Any = [(each.row, _number(each.column, names)) for each in some]
    rows, columns = np.array(of, np.int64).reshape(-1, 2).T
    return Block(Texts.of([each.text for each in some]), rows, columns)
