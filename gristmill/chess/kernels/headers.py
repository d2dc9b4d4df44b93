"""The tags of one game in PGN text: their places, and their JSON.

Only the form `[Name "value"]` is taken; `docs/formats/chess.md#compiled-reader` says which games
python-chess reads. Tags of KNOWN have fixed slots in that order; the first seven are the roster.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.format.rows import KNOWN, RESULTS

NO_RESULT, WHITE_WINS, BLACK_WINS, DRAW, UNKNOWN, OTHER = range(6)


def _packed(words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    text = np.zeros((len(words), 16), dtype=np.uint8)
    for i, word in enumerate(words):
        text[i, : len(word)] = list(word.encode())
    return text, np.array([len(word) for word in words], dtype=np.int64)


_KNOWN, _KNOWN_LEN = _packed(KNOWN)
# Of a `Variant` with the rules of standard chess.
_VARIANT, _VARIANT_LEN = _packed(("Variant", "Standard", "From Position"))
_RESULT, _RESULT_LEN = _packed(RESULTS)
_RESULT_KEY = np.frombuffer(b'"Result": "', dtype=np.uint8).copy()

# By character: 3 may begin a tag name and be in it, 2 may only be in it, 0 neither.
_NAME = np.zeros(256, dtype=np.uint8)
for _c in b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
    _NAME[_c] = 3
for _c in b"_+#=:-":
    _NAME[_c] = 2

# By character: whether it may be anywhere in a value. A quote may end one.
_PLAIN = np.zeros(256, dtype=np.uint8)
_PLAIN[32:127] = 1
_PLAIN[34] = 0
OK, UNUSUAL = 0, 1
# The names of a game's tags are compared pair by pair.
MAX_TAGS = 1_000


@njit
def _same(buf, start, end, words, lengths, i):
    if end - start != lengths[i]:
        return False
    for k in range(lengths[i]):
        if buf[start + k] != words[i, k]:
            return False
    return True


@njit
def result_code(buf, start, end):
    """The place in RESULTS of the text buf[start:end], else OTHER."""
    for i in range(1, 5):
        if _same(buf, start, end, _RESULT, _RESULT_LEN, i):
            return i
    return OTHER


@njit
def read_tag(buf, p, end, current, tags, first, n, known):
    """Read the tag line buf[p:end] (line end cut off) into tags[n] and `known`.

    tags[n] becomes (name start, name end, value start, value end). Returns
    OK or UNUSUAL, and 1 if the value has characters beyond ASCII or belongs to the game id as
    no other value does, else 0.
    current: what may be two tags of one line is UNUSUAL.
    """
    start = p + 1
    q = start
    if not _NAME[buf[q]] & 1:
        return UNUSUAL, 0
    while _NAME[buf[q]] & 2:
        q += 1
    if buf[q] != 32 or buf[q + 1] != 34 or end - q < 4:
        return UNUSUAL, 0
    if buf[end - 1] != 93 or buf[end - 2] != 34:
        return UNUSUAL, 0
    wide = 0
    for k in range(q + 2, end - 2):
        if _PLAIN[buf[k]]:
            continue
        c = buf[k]
        # json.dumps escapes the control characters, DEL (127) among them.
        if c < 32 or c == 127:
            return UNUSUAL, 0
        if c > 127:
            wide = 1
        elif current and (buf[k + 1] == 93 or buf[k + 1] == 32 or buf[k + 1] == 9):
            return UNUSUAL, 0
    if _same(buf, start, q, _VARIANT, _VARIANT_LEN, 0):
        if _same(buf, q + 2, end - 2, _VARIANT, _VARIANT_LEN, 2):
            wide = 1
        elif not _same(buf, q + 2, end - 2, _VARIANT, _VARIANT_LEN, 1):
            return UNUSUAL, 0
    for i in range(first, n):
        if tags[i, 1] - tags[i, 0] == q - start and buf[tags[i, 0]] == buf[start]:
            repeated = True
            for k in range(q - start):
                if buf[tags[i, 0] + k] != buf[start + k]:
                    repeated = False
                    break
            if repeated:
                return UNUSUAL, 0
    tags[n, 0], tags[n, 1], tags[n, 2], tags[n, 3] = start, q, q + 2, end - 2
    for i in range(_KNOWN_LEN.size):
        if _same(buf, start, q, _KNOWN, _KNOWN_LEN, i):
            known[i, 0], known[i, 1] = q + 2, end - 2
            break
    return OK, wide


@njit
def _write_span(buf, start, end, out, o):
    for k in range(start, end):
        c = buf[k]
        if c == 34 or c == 92:
            out[o] = 92
            o += 1
        out[o] = c
        o += 1
    return o


@njit
def _write_pair(buf, tags, i, out, o):
    out[o] = 34
    o = _write_span(buf, tags[i, 0], tags[i, 1], out, o + 1)
    out[o], out[o + 1], out[o + 2], out[o + 3] = 34, 58, 32, 34
    o = _write_span(buf, tags[i, 2], tags[i, 3], out, o + 4)
    out[o], out[o + 1], out[o + 2] = 34, 44, 32
    return o + 3


@njit
def write_headers(buf, tags, first, n, known, filled, out, o):
    """Write the JSON object of ASCII tags at out[o:]; return the position after it."""
    out[o] = 123
    o += 1
    first_o = o
    for slot in range(7):
        if slot == 6 and filled:
            for c in _RESULT_KEY:
                out[o] = c
                o += 1
            for k in range(_RESULT_LEN[filled]):
                out[o] = _RESULT[filled, k]
                o += 1
            out[o], out[o + 1], out[o + 2] = 34, 44, 32
            o += 3
        elif known[slot, 0] >= 0:
            for i in range(first, n):
                if tags[i, 2] == known[slot, 0]:
                    o = _write_pair(buf, tags, i, out, o)
                    break
    for i in range(first, n):
        roster = False
        for slot in range(7):
            if tags[i, 2] == known[slot, 0]:
                roster = True
                break
        if not roster:
            o = _write_pair(buf, tags, i, out, o)
    if o > first_o:
        o -= 2
    out[o] = 125
    return o + 1
