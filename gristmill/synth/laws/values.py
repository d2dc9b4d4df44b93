"""Laws of the values of a shard: vocabulary, order of control tokens, mask and span.

Source: `docs/formats/synth.md#value-laws`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import MOST, Few
from gristmill.synth.format import harmony_tokens
from gristmill.synth.format.megatron import Indexed

_BATCH_TOKENS: Final = 1 << 20
_BATCH_DOCUMENTS: Final = 1 << 16

# Which control token may come next after which, ordinary tokens aside. Bodies
# lie between <|message|> and a terminator, so a control id in a body breaks this.
_NEXT: Final = {
    harmony_tokens.START: {
        harmony_tokens.CHANNEL,
        harmony_tokens.CONSTRAIN,
        harmony_tokens.MESSAGE,
    },
    harmony_tokens.CHANNEL: {harmony_tokens.CONSTRAIN, harmony_tokens.MESSAGE},
    harmony_tokens.CONSTRAIN: {harmony_tokens.MESSAGE},
    harmony_tokens.MESSAGE: {harmony_tokens.END, harmony_tokens.CALL, harmony_tokens.RETURN},
    harmony_tokens.END: {harmony_tokens.START, harmony_tokens.ENDOFTEXT},
    harmony_tokens.CALL: {harmony_tokens.START, harmony_tokens.ENDOFTEXT},
    harmony_tokens.RETURN: {harmony_tokens.ENDOFTEXT},
    harmony_tokens.ENDOFTEXT: {harmony_tokens.START},
}
# After these the next token is a control token itself.
_CLOSING: Final = {
    harmony_tokens.END,
    harmony_tokens.CALL,
    harmony_tokens.RETURN,
    harmony_tokens.ENDOFTEXT,
}


def _tables() -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return `_NEXT` as bool [C, C] (before, after) and `_CLOSING` as bool [C]."""
    size = harmony_tokens.PADDED_VOCABULARY - harmony_tokens.BODY_LIMIT
    follows = np.zeros((size, size), dtype=np.bool_)
    closing = np.zeros(size, dtype=np.bool_)
    for before, allowed in _NEXT.items():
        for after in allowed:
            follows[before - harmony_tokens.BODY_LIMIT, after - harmony_tokens.BODY_LIMIT] = True
    closing[[token - harmony_tokens.BODY_LIMIT for token in _CLOSING]] = True
    return follows, closing


class Form(NamedTuple):
    """What the datasets of a shard are.

    is_harmony: whether documents have Harmony's control tokens, and messages as runs.
    eod, ids: of the tokenizer: the id that ends a document, and the number of ids.
    """

    is_harmony: bool = True
    is_by_hash: bool = True
    eod: int = harmony_tokens.ENDOFTEXT
    ids: int = harmony_tokens.PADDED_VOCABULARY


SYNTH: Final = Form()


class Values:
    """The documents of a split, whose values are checked as they are read.

    checked: False where they are not aligned: then the tokens are read alone.
    form: of the datasets; default: that of SYNTH.

    Another law that needs the tokens takes them from here, so that a shard is read
    once.
    """

    def __init__(
        self,
        where: str,
        three: Mapping[str, Indexed],
        checked: bool = True,
        form: Form = SYNTH,
    ) -> None:
        self.tokens = three["tokens"]
        self._where, self._three = where, three
        self._next = 0 if checked else len(self.tokens)
        self._tables = _tables() if form.is_harmony else None
        self._form = form
        self._few = Few(where, "{more:,} more documents")

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, first: int, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the tokens of whole documents; check them if all before them were checked.

        first: number of the first document.
        edges: int64 [D + 1], as `Indexed.bounds` returns them.
        """
        ids: npt.NDArray[np.int32] = self.tokens.load(int(edges[0]), int(edges[-1]))
        if first == self._next:
            self._check(first, edges, ids)
            self._next = first + len(edges) - 1
        return ids

    def violations(self) -> Iterator[Violation]:
        """Check the documents that nobody read, and yield the broken laws, each with documents.

        A violation names the first token of a document that breaks the law.
        """
        for first, edges in _batches(self.tokens, self._next):
            self.ids(first, edges)
        yield from self._few.added()

    def _check(self, first: int, edges: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
        begin, stop = int(edges[0]), int(edges[-1])
        mask, span = (self._three[name].load(begin, stop) for name in ("lossmask", "span"))
        broken = _broken(ids, mask, span, edges[1:] - 1 - begin, self._form, self._tables)
        for law, places in broken.items():
            if not len(places):
                continue
            documents = np.searchsorted(edges - begin, places, side="right") - 1
            numbers, at = np.unique(documents, return_index=True)
            named = (
                (
                    f"{self._where}: document {first + document}, "
                    f"token {begin + place - int(edges[document])}",
                    f"id {ids[place]}, mask {mask[place]}, span {span[place]}",
                )
                for document, place in zip(
                    numbers[:MOST].tolist(), places[at[:MOST]].tolist(), strict=True
                )
            )
            self._few.add_all(law, len(numbers), named)


def _batches(tokens: Indexed, first: int = 0) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield whole documents, about a million tokens together: the first one, and all edges."""
    while first < len(tokens):
        edges = tokens.bounds(first, min(first + _BATCH_DOCUMENTS, len(tokens)))
        inside = int(np.searchsorted(edges, edges[0] + _BATCH_TOKENS, side="right")) - 1
        edges = edges[: max(inside, 1) + 1]
        yield first, edges
        first += len(edges) - 1


def _broken(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    span: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    form: Form,
    tables: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None,
) -> dict[str, npt.NDArray[np.int64]]:
    """Return for each law the places where it is broken, in whole documents.

    ids, mask, span: of all tokens [T]. ends: places of the last tokens of the documents [D].
    """
    outside = np.flatnonzero((ids < 0) | (ids >= form.ids))
    broken = {
        "tokens in the vocabulary": outside,
        "EOD at the end": ends[ids[ends] != form.eod],
        "mask is span not 0": np.flatnonzero((span > harmony_tokens.FINAL) | (mask != (span != 0))),
        # A label is one place before its token: the last two are the EOD and none.
        "EOD masked": np.concatenate([ends[mask[ends] != 0], (ends - 1)[mask[ends - 1] != 0]]),
    }
    if tables is not None and not len(outside):
        follows, closing = tables
        places = np.flatnonzero(ids >= harmony_tokens.BODY_LIMIT)
        codes = ids[places] - harmony_tokens.BODY_LIMIT
        # The first document follows no other: it must begin as if it did.
        before = np.concatenate(
            [[harmony_tokens.ENDOFTEXT - harmony_tokens.BODY_LIMIT], codes[:-1]]
        )
        gaps = np.diff(places, prepend=-1)
        wrong = ~follows[before, codes] | (closing[before] & (gaps != 1))
        broken["no control ids in bodies"] = places[wrong]
    return broken
