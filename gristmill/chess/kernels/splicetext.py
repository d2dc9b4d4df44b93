"""Legacy rows written as bytes, where a context is a slice of the game's moves, and read again."""

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
# Zeros that `read_keys` needs behind the rows: it compares a word where the text may have ended.
PADDING = 256


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
# Bytes of a row at least.
LEAST_BYTES = sum(word.size for word in (_HEAD, _WINNER, _INDEX, _PLY, _LEFT))
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

    picked: bool, one a row. kept: samples of each row. indices: their splice indices, all rows.
    begins: where the phase codes of each row begin in `codes`. k: plies of the target. places:
    int64, to work in, one more than the longest game has plies.
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


@njit(forceinline=True)
def _is_at(buf, p, text):
    for i in range(text.size):
        if buf[p + i] != text[i]:
            return False
    return True


@njit(forceinline=True)
def _after_one_of(table, at, buf, p):
    """The place behind the text of a table that stands at p, -1 where none does."""
    for i in range(at.size - 1):
        n = at[i + 1] - at[i]
        if _is_at(buf, p, table[at[i] : at[i + 1]]):
            return p + n
    return -1


@njit(forceinline=True)
def _number_at(buf, p, word):
    """(number, place behind it) where `word` and at most nine digits stand at p, else (0, -1)."""
    if not _is_at(buf, p, word):
        return 0, -1
    begin = p = p + word.size
    number = 0
    while 48 <= buf[p] <= 57:
        number = 10 * number + buf[p] - 48
        p += 1
    if p == begin or p - begin > 9 or (buf[begin] == 48 and p > begin + 1):
        return 0, -1
    return number, p


@njit(forceinline=True)
def _copied_moves(buf, p, out, o, begin):
    """Copy a list of moves from its first quote on, with spaces before all but the first.

    Returns (place of the bracket that ends the list, end in out), or (-1, o) where a move
    has another character than letters and digits.
    """
    while buf[p] == 34:
        if o > begin:
            out[o] = 32
            o += 1
        p += 1
        first = p
        while 48 <= buf[p] <= 57 or 97 <= buf[p] <= 122:
            out[o] = buf[p]
            o, p = o + 1, p + 1
        if p == first or buf[p] != 34:
            return -1, o
        p += 1
        if buf[p] == 93:
            return p, o
        if buf[p] != 44 or buf[p + 1] != 32:
            return -1, o
        p += 2
    return -1, o


@njit(forceinline=True)
def _is_hidden(plies, ply, left, k):
    """Whether the key is not made of moves, or a row does not show all of them."""
    return plies < 0 or (left > k and (not plies or ply + k < plies))


@njit(forceinline=True)
def _moves_of_row(buf, p, out, o, plies):
    """Copy the first moves of a row, whose buckets begin at p, all where plies is 0.

    Returns (place of its line feed, or -1 for another form; end in out).
    """
    begin = o
    p = _after_one_of(_REMAINING, _REMAINING_AT, buf, p) if p >= 0 else p
    p = _after_one_of(_PROGRESS, _PROGRESS_AT, buf, p) if p >= 0 else p
    p = _after_one_of(_PHASE, _PHASE_AT, buf, p) if p >= 0 else p
    if p >= 0:
        p, o = _copied_moves(buf, p, out, o, begin)
    if p < 0 or not _is_at(buf, p, _TARGET):
        return -1, o
    p, o = _copied_moves(buf, p + _TARGET.size, out, o, begin)
    if p < 0 or not _is_at(buf, p, _NEXT):
        return -1, o
    p += _NEXT.size + 1
    while 48 <= buf[p] <= 57 or 97 <= buf[p] <= 122:
        p += 1
    if buf[p] != 34:
        return -1, o
    _, p = _number_at(buf, p + 1, _TOTAL)
    if p < 0 or buf[p] != 125:
        return -1, o
    return p + 1, _end_of_moves(out, begin, o, plies) if plies else o


@njit(forceinline=True)
def _end_of_moves(out, p, end, moves):
    """Where the first so many moves end in a text of moves."""
    while p < end:
        if out[p] == 32:
            moves -= 1
            if moves == 0:
                break
        p += 1
    return p


@kernel()
def read_keys(buf, p, size, plies, k, out, ends):
    """Read rows as `write_splices` writes them, and the texts by which their games are known.

    buf: whole lines, then zeros; uint8 [size + PADDING].
    plies: the text is so many first moves of the game, 0 for all; -1 for its id in quotes.
    out: gets the texts; uint8 [size at least].
    ends: gets where each of them ends in `out`; int64 [size // LEAST_BYTES + 1].
    Returns (place of the first row of another form, or `size`; rows before it; texts). A row gives
    no text where it does not show these moves, or where the row before is of the same game by id.
    """
    o = rows = texts = id0 = 0
    id1 = -1
    while p < size:
        row, begin = p, o
        if not _is_at(buf, p, _HEAD):
            break
        p += _HEAD.size
        first = p
        # An id with an escape, or beyond ASCII, is left to a reader of JSON.
        while 32 <= buf[p] < 127 and buf[p] != 34 and buf[p] != 92:
            p += 1
        last = p
        p += _WINNER.size
        if not _is_at(buf, last, _WINNER) or buf[p] < 63 or buf[p] > 87:
            p = row
            break
        _, p = _number_at(buf, p + 1, _INDEX)
        ply, p = _number_at(buf, p, _PLY) if p >= 0 else (0, p)
        left, p = _number_at(buf, p, _LEFT) if p >= 0 else (0, p)
        if p >= 0 and _is_hidden(plies, ply, left, k):
            if plies < 0 and (last - first != id1 - id0 or not _is_at(buf, first, buf[id0:id1])):
                o = copy(buf, first - 1, last + 1, out, begin)
                id0, id1 = first, last
            while buf[p] != 10 and p < size:
                p += 1
        else:
            p, o = _moves_of_row(buf, p, out, o, plies)
        if p < 0 or buf[p] != 10:
            p, o = row, begin
            break
        p += 1
        rows += 1
        if o > begin:
            ends[texts] = o
            texts += 1
    return p, rows, texts
