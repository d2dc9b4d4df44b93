"""Legacy rows written as bytes: the context of a sample is a slice of the game's move list.

Source: `docs/formats/chess.md#legacy-rows`.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.format.rows import PHASE_REASONS, PHASE_RULE, PHASES, PROGRESS, REMAINING
from gristmill.chess.kernels.attacks import borrowed
from gristmill.chess.kernels.copying import copy
from gristmill.chess.kernels.rowshape import ID0, ID1, LIST0, LIST1, WINNER, N
from gristmill.chess.kernels.rowtext import write_number
from gristmill.run.kernels import kernel

# Bytes of a row without its id and its moves, at most.
FIXED_BYTES = 480


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8).copy()


def _table(words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Texts one after another, and the places where each begins and the last ends."""
    ends = np.cumsum([0, *(len(word) for word in words)])
    return _bytes("".join(words)), ends


_HEAD = _bytes('{"game_id": "')
_WINNER = _bytes('", "winner_side": "')
_INDEX = _bytes('", "splice_index": ')
_PLY = _bytes(', "ply": ')
_LEFT = _bytes(', "plies_remaining": ')
_TARGET = _bytes('], "target": [')
_NEXT = _bytes('], "next_move": ')
_TOTAL = _bytes(', "plies_total": ')
_REMAINING, _REMAINING_AT = _table(tuple(f', "plies_remaining_bucket": "{b}"' for b in REMAINING))
_PROGRESS, _PROGRESS_AT = _table(tuple(f', "relative_progress_bucket": "{b}"' for b in PROGRESS))
_PHASE, _PHASE_AT = _table(
    tuple(
        f', "phase": "{PHASES[code & 3]}", "phase_reason": "{reason}", '
        f'"phase_rule_version": "{PHASE_RULE}", "context": ['
        for code, reason in enumerate(PHASE_REASONS)
    )
)


@njit(forceinline=True)
def _put_of(table, at, i, out, o):
    return copy(table, at[i], at[i + 1], out, o)


@kernel()
def write_splices(buf, records, picked, kept, indices, begins, codes, k, out, places):
    """Write the samples of the picked rows; return the bytes written.

    each row. indices: their splice indices, row after row. begins: where the phase codes of each
    row begin in `codes`. k: plies of the target. places: int64, to work in, one more than the
    longest game has plies.
    """
    buf, records, out, places = (
        borrowed(buf),
        borrowed(records),
        borrowed(out),
        borrowed(places),
    )
    o, at = 0, 0
    for i in range(records.shape[0]):
        if not picked[i]:
            at += kept[i]
            continue
        row = borrowed(records[i])
        n, p = row[N], row[LIST0] + 1
        # places[j]: the opening quote of move j; a move ends 2 bytes before the next one.
        for j in range(n):
            places[j] = p
            p += 1
            while buf[p] != 34:
                p += 1
            p += 3
        places[n] = row[LIST1] + 1
        for s in range(at, at + kept[i]):
            index = indices[s]
            ply, left = index + 1, n - index - 1
            last = min(n, index + 1 + k)
            o = copy(_HEAD, 0, _HEAD.size, out, o)
            o = copy(buf, row[ID0], row[ID1], out, o)
            o = copy(_WINNER, 0, _WINNER.size, out, o)
            out[o] = row[WINNER]
            o = copy(_INDEX, 0, _INDEX.size, out, o + 1)
            o = write_number(index, out, o)
            o = copy(_PLY, 0, _PLY.size, out, o)
            o = write_number(ply, out, o)
            o = copy(_LEFT, 0, _LEFT.size, out, o)
            o = write_number(left, out, o)
            bucket = 0 if left <= 10 else 1 if left <= 20 else 2
            o = _put_of(_REMAINING, _REMAINING_AT, bucket, out, o)
            progress = ply / n
            bucket = 0 if progress < 0.33 else 1 if progress < 0.66 else 2
            o = _put_of(_PROGRESS, _PROGRESS_AT, bucket, out, o)
            o = _put_of(_PHASE, _PHASE_AT, np.int64(codes[begins[i] + index]), out, o)
            o = copy(buf, places[0], places[index + 1] - 2, out, o)
            o = copy(_TARGET, 0, _TARGET.size, out, o)
            o = copy(buf, places[index + 1], places[last] - 2, out, o)
            o = copy(_NEXT, 0, _NEXT.size, out, o)
            o = copy(buf, places[index + 1], places[index + 2] - 2, out, o)
            o = copy(_TOTAL, 0, _TOTAL.size, out, o)
            o = write_number(n, out, o)
            out[o], out[o + 1] = 125, 10
            o += 2
        at += kept[i]
    return o
