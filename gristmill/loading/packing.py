"""Rows of one length, packed from whole documents: which tokens are in which row."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Trace
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, Identity, Source

RULE: Final = 1
"""Number of the rule that packs; another rule gets another number."""
_WINDOW: Final = 1 << 16
"""Documents that are packed together."""


def packed_rows(lengths: Numbers, seq_len: int) -> tuple[Numbers, Numbers]:
    """Which pieces of documents are in which row.

    lengths: tokens of each document, [D]. seq_len: tokens of a row.
    """
    rows: list[list[tuple[int, int, int]]] = []
    for start in range(0, len(lengths), _WINDOW):
        _pack(lengths[start : start + _WINDOW].tolist(), start, seq_len, rows)
    firsts = np.array([0, *accumulate(map(len, rows))], np.int64)
    return firsts, np.array([piece for row in rows for piece in row], np.int64).reshape(-1, 3)


def _pack(
    lengths: list[int], start: int, seq_len: int, rows: list[list[tuple[int, int, int]]]
) -> None:
    """Add the rows of one window of documents."""
    pieces = []
    for document, length in enumerate(lengths, start):
        whole = length - length % seq_len
        rows.extend([(document, begin, seq_len)] for begin in range(0, whole, seq_len))
        if length > whole:
            pieces.append((document, whole, length - whole))
    pieces.sort(key=lambda piece: -piece[2])
    # Places that are left, ascending, and the rows that have as many, the last one first.
    left: list[int] = []
    rows_with: dict[int, list[int]] = {}
    for piece in pieces:
        at = bisect_left(left, piece[2])
        if at == len(left):
            row, space = len(rows), seq_len
            rows.append([])
        else:
            space = left[at]
            row = rows_with[space].pop()
            if not rows_with[space]:
                del left[at]
        rows[row].append(piece)
        if space := space - piece[2]:
            if not rows_with.setdefault(space, []):
                insort(left, space)
            rows_with[space].append(row)


def segmented(tokens: npt.NDArray[Any], documents: Numbers) -> Columns:
    """The columns of `Packed.read` beside rows that hold documents already.

    tokens: [N, S]. documents: int64 [N, S], the document of each token, -1 for tokens of none.

    `labels`, of the type of tokens, and `loss_mask` uint8: 0 at the last token of a document in its
    row. `position_ids` int32, from 0 in each document of a row. `cu_seqlens` int32 [N, S + 1]:
    where each segment begins, then S; a segment is a document or tokens of none. `segments` int32.
    """
    count, seq_len = tokens.shape
    begins = np.ones(documents.shape, np.bool_)
    np.not_equal(documents[:, 1:], documents[:, :-1], out=begins[:, 1:])
    inside = documents >= 0
    columns = np.arange(seq_len, dtype=np.int32)
    first = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
    loss_mask = np.zeros(documents.shape, np.uint8)
    loss_mask[:, :-1] = inside[:, 1:] & ~begins[:, 1:]
    labels = np.zeros_like(tokens)
    labels[:, :-1] = tokens[:, 1:] * loss_mask[:, :-1]
    segments = begins.sum(axis=1, dtype=np.int32)
    bounds = np.full((count, seq_len + 1), seq_len, np.int32)
    row, column = np.nonzero(begins)
    bounds[row, np.arange(len(row)) - np.repeat(np.cumsum(segments) - segments, segments)] = column
    return {
        "labels": labels,
        "loss_mask": loss_mask,
        "position_ids": np.where(inside, columns - first, 0).astype(np.int32),
        "cu_seqlens": bounds,
        "segments": segments,
    }


class Packed:
    """Rows of `seq_len` tokens, packed from the documents of a source; itself a source.

    source: one whose samples are documents: with `lengths`, a column `tokens` [N, longest], and
        perhaps others for each token.
    seq_len: tokens of a row.

    A document is never cut, unless it is longer than a row. Nothing is written: the rows follow
    from the lengths, some microseconds a document. 24 bytes a document stay in memory.

    Raises GristmillError for a source without lengths, or another seq_len than one above 0.
    """

    def __init__(self, source: Source, seq_len: int) -> None:
        lengths = getattr(source, "lengths", None)
        if lengths is None or seq_len < 1:
            raise GristmillError(
                f"{source.identity.artifact}: cannot be packed into rows of {seq_len} tokens: give"
                " documents whose lengths are known, as SynthKDDocuments, and 1 token or more"
            )
        self._source, self.seq_len = source, seq_len
        self._firsts, self._pieces = packed_rows(lengths(), seq_len)
        self._segments = int(np.diff(self._firsts).max(initial=0)) + 1
        numbering = {**source.identity.numbering, "packed": {"rule": RULE, "seq_len": seq_len}}
        self.identity: Identity = replace(source.identity, numbering=numbering)
        self.cuts: Numbers = np.array([0, len(self._firsts) - 1], np.int64)
        self.behind = {"cu_seqlens": seq_len}
        self.words = f"{getattr(source, 'words', 'tokens')}, rows of {seq_len} tokens"

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.cuts[-1])

    def pieces(self, number: int) -> Numbers:
        """The pieces of a row, int64 [P, 3]: document, its first token, tokens."""
        return self._pieces[self._firsts[number] : self._firsts[number + 1]]

    def lengths(self) -> Numbers:
        """Tokens of documents in each row, int64 [rows]."""
        ends = np.append(0, np.cumsum(self._pieces[:, 2]))[self._firsts]
        return np.diff(ends)

    def read(self, numbers: Numbers) -> Columns:
        """Rows [N, seq_len]: the columns of the documents, labels, position ids, and segments.

        `tokens`; `labels`, the next token of the same document; `loss_mask` uint8, that of the
        documents, else 1 where there is a label; `position_ids` int32, from 0 in each piece. All
        are 0 where there is nothing. `cu_seqlens` int32 [N, most + 1]: where each segment begins,
        a piece or what is left of the row, then seq_len; `segments` int32 [N]: how many there are.
        """
        rows = [self.pieces(number) for number in numbers.tolist()]
        kinds = self._source.read(np.zeros(1, np.int64))
        columns: Columns = {
            name: np.zeros((len(rows), self.seq_len), column.dtype)
            for name, column in kinds.items()
            if column.ndim == 2
        }
        shape = columns["tokens"].shape
        columns["labels"] = np.zeros_like(columns["tokens"])
        columns.setdefault("loss_mask", np.zeros(shape, np.uint8))
        columns["position_ids"] = np.zeros(shape, np.int32)
        bounds = np.full((len(rows), self._segments + 1), self.seq_len, np.int32)
        bounds[:, 0] = 0
        for row, pieces in enumerate(rows):
            ends = np.cumsum(pieces[:, 2])
            bounds[row, 1 : len(ends) + 1] = ends
            for piece, end in zip(pieces, ends.tolist(), strict=True):
                self._fill({n: c[row, end - piece[2] : end] for n, c in columns.items()}, piece)
        segments = (bounds[:, :-1] < self.seq_len).sum(axis=1, dtype=np.int32)
        return {**columns, "cu_seqlens": bounds, "segments": segments}

    def _fill(self, into: Columns, piece: Numbers) -> None:
        """Write a piece into its places."""
        document, begin, length = piece.tolist()
        found = self._source.read(np.array([document]))
        labels = found["tokens"][0, begin + 1 : begin + length + 1]
        for name, column in found.items():
            if column.ndim == 2:
                into[name][:] = column[0, begin : begin + length]
        if "loss_mask" not in found:
            into["loss_mask"][: len(labels)] = 1
        into["labels"][: len(labels)] = labels
        into["position_ids"][:] = np.arange(length)

    def shown(self, number: int) -> Iterator[Any]:
        """Each document of a row, as its source shows it; none where it shows none."""
        shown = getattr(self._source, "shown", lambda _: ())
        for document in self.pieces(number)[:, 0].tolist():
            yield from shown(document)

    def origin(self, number: int) -> Iterator[Trace]:
        """What each document of a row came from, one document after the other."""
        for document in self.pieces(number)[:, 0].tolist():
            yield from self._source.origin(document)
