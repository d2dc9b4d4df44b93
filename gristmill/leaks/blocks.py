"""The texts of a part as arrays, block by block: of JSON lines a piece of the file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

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
    before = counts.lines
    with unpacked(part.file, part.links, piece=piece) as octets:
        raw = b"".join(octets)
    if (made := _flat(raw, counts, names)) is None:
        made = _block([*part.texts(counts, piece)], names)
        counts.lines = before + raw.removesuffix(b"\n").count(b"\n") + 1
    return made._replace(end=piece.end)


def _flat(raw: bytes, counts: Counts, names: dict[str, int]) -> Block | None:
    """The texts of lines that are flat objects; None where one is another."""
    from gristmill.leaks.kernels import MARK, flat

    data, others = np.empty((2, len(raw) + 1), np.uint8)
    rows, columns, end, size, lines = flat(np.frombuffer(raw, np.uint8), data, others)
    if lines == 0 or len(raw) > LIMITS.line_bytes:
        return None
    try:
        octets = orjson.loads(b'"%b"' % data[:end].tobytes()).encode()
        values = orjson.loads(b"[%b0]" % others[:size].tobytes())
    except ValueError:
        return None
    texts = np.frombuffer(octets, np.uint8)
    ends, own = np.flatnonzero(texts == MARK) + 1, [one for one in values if isinstance(one, str)]
    if len(ends) != len(rows) or len({*own}) != len(own):
        return None
    numbers = np.array([_number(name, names) for name in own], np.int64)
    counts.rows, counts.lines, rows = counts.rows + lines, counts.lines + lines, rows + counts.lines
    return Block(Texts(texts, ends), rows, numbers[columns])


def _number(name: str, names: dict[str, int]) -> int:
    return names.setdefault(name, len(names)) if len(names) < COLUMNS else names.get(name, 0)


def _block(some: list[Text], names: dict[str, int]) -> Block:
    of: Any = [(each.row, _number(each.column, names)) for each in some]
    rows, columns = np.array(of, np.int64).reshape(-1, 2).T
    return Block(Texts.of([each.text for each in some]), rows, columns)
