"""Splits of made documents, for tests of the formats that they are written in."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import numpy as np
import pyarrow as pa

from gristmill.exports.table import Array, Split, Tokens, required

END = 50256


def split(
    batches: Sequence[Sequence[list[int]]], name: str = "validation", ids: int = END + 1
) -> Split:
    """A split of documents in batches. ids: of the tokenizer, whose separator is `END`."""

    def found() -> Iterator[tuple[Array, Array]]:
        for each in batches:
            tokens = np.array([*chain(*each)], np.int32)
            yield tokens, np.array([*accumulate(map(len, each), initial=0)])

    return Split(name, _no_columns, lambda: iter(()), tokens=Tokens(END, ids, found))


def texts(name: str, *batches: Sequence[str]) -> Split:
    """A split of texts in batches."""
    return Split(name, _no_columns, lambda: iter(()), texts=lambda: map(pa.array, batches))


def _no_columns() -> pa.Schema:
    return required({})
