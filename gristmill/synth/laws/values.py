"""What must hold of the values of a shard: vocabulary, Harmony's grammar, mask and span.

Source: `docs/formats/synth.md#value-laws`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.synth.format import harmony_tokens
from gristmill.synth.format.indexed import Indexed

_CHUNK: Final = 1 << 20
_DOCUMENTS: Final = 1 << 16

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
    size = harmony_tokens.PADDED_VOCABULARY - harmony_tokens.BODY_LIMIT
    follows = np.zeros((size, size), dtype=np.bool_)
    closing = np.zeros(size, dtype=np.bool_)
    for before, allowed in _NEXT.items():
        for after in allowed:
            follows[before - harmony_tokens.BODY_LIMIT, after - harmony_tokens.BODY_LIMIT] = True
    closing[[token - harmony_tokens.BODY_LIMIT for token in _CLOSING]] = True
    return follows, closing


def check(where: str, three: Mapping[str, Indexed]) -> Iterator[Violation]:
    """Yield each broken law once, with the first token that breaks it.

    three: tokens, lossmask and span, of equal boundaries and right dtypes.
    """
    tokens, mask, span = (three[name] for name in ("tokens", "lossmask", "span"))
    follows, closing = _tables()
    told: set[str] = set()
    first = 0
    while first < len(tokens):
        # Whole documents, about a million tokens at a time.
        edges = tokens.bounds(first, min(first + _DOCUMENTS, len(tokens)))
        inside = int(np.searchsorted(edges, edges[0] + _CHUNK, side="right")) - 1
        edges = edges[: max(inside, 1) + 1]
        begin, stop = int(edges[0]), int(edges[-1])
        ids, masks, spans = (each.load(begin, stop) for each in (tokens, mask, span))
        broken = _broken(ids, masks, spans, edges[1:] - 1 - begin, follows, closing)
        for law, places in broken.items():
            if law in told or not len(places):
                continue
            told.add(law)
            place = int(places[0])
            document = int(np.searchsorted(edges - begin, place, side="right")) - 1
            yield Violation(
                law,
                f"{where}: document {first + document}, "
                f"token {begin + place - int(edges[document])}",
                f"id {ids[place]}, mask {masks[place]}, span {spans[place]}",
            )
        first += len(edges) - 1


def _broken(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    span: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    follows: npt.NDArray[np.bool_],
    closing: npt.NDArray[np.bool_],
) -> dict[str, npt.NDArray[np.int64]]:
    """Law -> where it is broken, in whole documents whose last tokens stand at `ends`."""
    outside = np.flatnonzero((ids < 0) | (ids >= harmony_tokens.PADDED_VOCABULARY))
    broken = {
        "tokens in the vocabulary": outside,
        "EOD at the end": ends[ids[ends] != harmony_tokens.ENDOFTEXT],
        "mask is span not 0": np.flatnonzero((span > harmony_tokens.FINAL) | (mask != (span != 0))),
        # A label stands one place before its token: that of the EOD, and none at the end.
        "EOD masked": np.concatenate([ends[mask[ends] != 0], (ends - 1)[mask[ends - 1] != 0]]),
    }
    if not len(outside):
        places = np.flatnonzero(ids >= harmony_tokens.BODY_LIMIT)
        codes = ids[places] - harmony_tokens.BODY_LIMIT
        # What stands before the first document counts as the end of another.
        before = np.concatenate(
            [[harmony_tokens.ENDOFTEXT - harmony_tokens.BODY_LIMIT], codes[:-1]]
        )
        gaps = np.diff(places, prepend=-1)
        wrong = ~follows[before, codes] | (closing[before] & (gaps != 1))
        broken["no control ids in bodies"] = places[wrong]
    return broken
