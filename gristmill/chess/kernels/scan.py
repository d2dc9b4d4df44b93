"""PGN text to games: tags, moves, phases, verdicts, and the JSON of each, in one pass.

The scanner takes a game only if every byte of it is in the plain subset of PGN
(see `headers` and `san`; comments, variations, NAGs and move numbers are
skipped). It stops before any other game and says where.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.board import borrowed, full_key, make, phase, reset
from gristmill.chess.kernels.ending import verdict
from gristmill.chess.kernels.headers import (
    DRAW,
    NO_RESULT,
    ODD,
    OK,
    UNKNOWN,
    read_tag,
    result_code,
    write_headers,
)
from gristmill.chess.kernels.san import KIND, read_san
from gristmill.chess.kernels.stamp import KERNEL_STAMP

# Why the scan stopped: all done, an odd game, text cut off, or arrays full.
DONE, ODD_GAME, CUT, FULL = range(4)
MORE, NO_ROOM = 2, 3

# Columns of a game's record.
(START, END, PLIES, MOVE0, VERDICT, WIDE, RESULT, TERMINATOR) = range(8)
(HEAD0, HEAD1, LIST0, LIST1, UCI0, UCI1, TAG0, TAG1) = range(8, 16)
ID0 = 16
COLUMNS = 17
MAX_PLIES = 2000
PADDING = 16  # zero bytes that must follow the text

_PROMOTED = np.frombuffer(b"?nbrq", dtype=np.uint8).copy()


@njit(forceinline=True)
def _blank(buf, p, size):
    """If a blank line starts at p, the position after it, else -1."""
    while p < size and (buf[p] == 32 or buf[p] == 9 or buf[p] == 13):
        p += 1
    if p >= size:
        return size
    return p + 1 if buf[p] == 10 else -1


@njit
def skip_blank(buf, p, size):
    """The start of the first line at or after p that is not blank."""
    while p < size:
        after = _blank(buf, p, size)
        if after < 0:
            return p
        p = after
    return size


@njit(forceinline=True)
def _write_move(move, uci, u):
    for square in (move & 63, (move >> 6) & 63):
        uci[u] = 97 + (square & 7)
        uci[u + 1] = 49 + (square >> 3)
        u += 2
    if move >> 12:
        uci[u] = _PROMOTED[move >> 12]
        u += 1
    return u


@njit
def write_moves(moves, first, n, out, o, uci, u):
    """Write moves as a JSON list at out[o:] and joined by spaces at uci[u:]."""
    out[o] = 91
    o += 1
    for i in range(first, first + n):
        if i > first:
            out[o], out[o + 1] = 44, 32
            o += 2
            uci[u] = 32
            u += 1
        begun = u
        u = _write_move(moves[i], uci, u)
        out[o] = 34
        o += 1
        for k in range(begun, u):
            out[o] = uci[k]
            o += 1
        out[o] = 34
        o += 1
    out[o] = 93
    return o + 1, u


@njit
def _copy(buf, span, out, o):
    if span[0] >= 0:
        for k in range(span[0], span[1]):
            out[o] = buf[k]
            o += 1
    return o


@njit
def _write_identity(buf, known, out, o):
    """What `rows.content_id` hashes before the moves, from ASCII tags of a plain game."""
    out[o], out[o + 1] = 10, 10  # no Variant, no FEN
    o = _copy(buf, known[4], out, o + 2)
    out[o] = 10
    o = _copy(buf, known[5], out, o + 1)
    out[o] = 10
    o += 1
    if known[9, 1] > known[9, 0]:
        o = _copy(buf, known[9], out, o)
    else:
        day = 7 if known[7, 1] > known[7, 0] else 2
        o = _copy(buf, known[day], out, o)
        out[o] = 32
        o = _copy(buf, known[8 if day == 7 else 3], out, o + 1)
    out[o] = 10
    return o + 1


@njit
def _skip_comment(buf, p, size):
    """From an opening brace to behind the closing one; -1 at the end of text, -2 if odd."""
    while p < size:
        c = buf[p]
        if c == 125:
            return p + 1
        if c == 13 and buf[p + 1] != 10:
            return -2
        if c == 10 and buf[p + 1] == 37:
            return -2
        p += 1
    return -1


@njit(forceinline=True)
def _movetext(buf, p, size, at_eof, board, keys, moves, phases, m, limit):
    """Read movetext from p. Returns (code, position after, plies, terminator)."""
    bb, kinds, st, key = board
    reset(bb, kinds, st, key)
    keys[0] = key[0]
    n, terminator, depth = 0, NO_RESULT, 0
    line_start = True
    while True:
        if line_start:
            after = _blank(buf, p, size)
            if after >= 0:
                if (after == size and not at_eof) or depth:
                    return (MORE if not at_eof else ODD), p, n, terminator
                return OK, after, n, terminator
            line_start = False
            if buf[p] == 37:
                return ODD, p, n, terminator
        if p >= size:
            if not at_eof or depth:
                return (MORE if not at_eof else ODD), p, n, terminator
            return OK, p, n, terminator
        c = buf[p]
        if c == 32 or c == 9 or c == 46:  # space, tab, the dots of a move number
            p += 1
        elif c == 10:
            p += 1
            line_start = True
        elif c == 13:
            if buf[p + 1] != 10:
                return (MORE if p + 1 >= size and not at_eof else ODD), p, n, terminator
            p += 1
        elif c == 123:
            after = _skip_comment(buf, p, size)
            if after < 0:
                return (MORE if after == -1 and not at_eof else ODD), p, n, terminator
            p = after
        elif c == 59:  # a comment to the end of the line
            while p < size and buf[p] != 10:
                if buf[p] == 13 and buf[p + 1] != 10:
                    return (MORE if p + 1 >= size and not at_eof else ODD), p, n, terminator
                p += 1
        elif c == 40:
            depth += 1
            p += 1
        elif c == 41:
            if depth == 0:
                return ODD, p, n, terminator
            depth -= 1
            p += 1
        elif depth:
            p += 1
        elif c == 36:
            p += 1
            if buf[p] < 48 or buf[p] > 57:
                return (MORE if p >= size and not at_eof else ODD), p, n, terminator
            while buf[p] >= 48 and buf[p] <= 57:
                p += 1
        elif (c >= 48 and c <= 57) or c == 42:
            q = p
            while buf[q] > 32 and buf[q] != 123 and buf[q] != 46:
                q += 1
            if q >= size and not at_eof:
                return MORE, p, n, terminator
            code = result_code(buf, p, q)
            if code <= UNKNOWN:
                if terminator != NO_RESULT:
                    return ODD, p, n, terminator
                terminator = code
                p = q
            else:
                while buf[p] >= 48 and buf[p] <= 57:
                    p += 1
                if buf[p] != 46 and buf[p] != 32 and buf[p] != 10 and buf[p] != 13:
                    return ODD, p, n, terminator
        elif KIND[c] > 0 or c == 79 or (c >= 97 and c <= 104):
            if terminator != NO_RESULT or n >= MAX_PLIES:
                return ODD, p, n, terminator
            if size - p < 16 and not at_eof:
                return MORE, p, n, terminator
            if m + n >= limit:
                return NO_ROOM, p, n, terminator
            move, after = read_san(buf, p, bb, kinds, st)
            if move < 0:
                return ODD, p, n, terminator
            p = after
            if p >= size and not at_eof:
                return MORE, p, n, terminator
            make(bb, kinds, st, key, move)
            moves[m + n] = move
            phases[m + n] = phase(st)
            n += 1
            keys[n] = full_key(bb, kinds, st, key)
        else:
            return ODD, p, n, terminator


@njit
def _tags(buf, p, size, at_eof, tags, first, known):
    """Read tag lines from p to the blank line behind them: (code, position, tags, wide)."""
    n, wide = first, 0
    known[:, :] = -1
    while True:
        if p >= size:
            return (OK if at_eof else MORE), p, n, wide
        if buf[p] != 91:
            after = _blank(buf, p, size)
            if after == size and not at_eof:
                return MORE, p, n, wide
            # Movetext right behind the tags is rare enough for the oracle.
            return (OK if after >= 0 else ODD), after, n, wide
        if n >= tags.shape[0]:
            return NO_ROOM, p, n, wide
        end = p
        while end < size and buf[end] != 10 and buf[end] != 13:
            end += 1
        if end >= size - 1 and not at_eof:
            return MORE, p, n, wide
        if buf[end] == 13 and buf[end + 1] != 10:
            return ODD, p, n, wide
        code, beyond = read_tag(buf, p, end, tags, first, n, known)
        if code != OK:
            return code, p, n, wide
        wide |= beyond
        n += 1
        p = end + (2 if buf[end] == 13 else 1)


def new_board() -> tuple[np.ndarray, ...]:
    """The arrays of a position (see `board`), and the keys of a game's positions."""
    return (
        np.zeros(8, np.uint64),
        np.zeros(64, np.int8),
        np.zeros(8, np.int64),
        np.zeros(1, np.uint64),
        np.zeros(MAX_PLIES + 2, np.uint64),
    )


def _entry(stamp):
    """Close over the sources' stamp: see `stamp`."""

    @njit(cache=True)
    def scan_games(buf, size, at_eof, pos, stop, games, known, tags, moves, phases, text, board):
        """Read games that start in [pos, stop) of buf[:size].

        Arrays: buf uint8 with PADDING zeros after size; games int64 [G, COLUMNS];
        known int64 [G, 16, 2]; tags int64 [T, 4]; moves uint16 and phases uint8,
        one element a ply; text: two uint8 arrays of at least 4 * size, for JSON
        and for moves joined by spaces; board: see `new_board`.
        Returns (games read, position, why it stopped).
        """
        buf, games, known, tags = borrowed(buf), borrowed(games), borrowed(known), borrowed(tags)
        moves, phases = borrowed(moves), borrowed(phases)
        out, uci = borrowed(text[0]), borrowed(text[1])
        bb, kinds, st = borrowed(board[0]), borrowed(board[1]), borrowed(board[2])
        key, keys = borrowed(board[3]), borrowed(board[4])
        position = (bb, kinds, st, key)
        n, m, t, o, u = stamp & 0, 0, 0, 0, 0
        while True:
            pos = skip_blank(buf, pos, size)
            if pos >= size:
                return n, pos, (DONE if at_eof or pos >= stop else CUT)
            if pos >= stop:
                return n, pos, DONE
            if n >= games.shape[0]:
                return n, pos, FULL
            if buf[pos] != 91:
                return n, pos, ODD_GAME
            code, p, last, wide = _tags(buf, pos, size, at_eof, tags, t, known[n])
            plies, terminator = 0, NO_RESULT
            if code == OK and p < size and buf[p] == 91:
                code = ODD
            if code == OK:
                code, p, plies, terminator = _movetext(
                    buf, p, size, at_eof, position, keys, moves, phases, m, moves.shape[0]
                )
            if code == MORE:
                return n, pos, CUT
            if code == NO_ROOM:
                return n, pos, (FULL if n else ODD_GAME)
            if code != OK:
                return n, pos, ODD_GAME
            game = games[n]
            given = NO_RESULT
            if known[n, 6, 0] >= 0:
                given = result_code(buf, known[n, 6, 0], known[n, 6, 1])
            filled = terminator if given in (NO_RESULT, UNKNOWN) else 0
            result = filled if filled else given
            game[START], game[END], game[PLIES], game[MOVE0] = pos, p, plies, m
            game[WIDE], game[RESULT], game[TERMINATOR] = wide, result, terminator
            # A draw needs no claim to be a draw.
            game[VERDICT] = verdict(bb, kinds, st, key, keys, plies, result != DRAW)
            game[TAG0], game[TAG1] = t, last
            game[HEAD0] = o
            if not wide:
                o = write_headers(buf, tags, t, last, known[n], filled, out, o)
            game[HEAD1], game[LIST0], game[ID0] = o, o, u
            if not wide:
                u = _write_identity(buf, known[n], uci, u)
            game[UCI0] = u
            o, u = write_moves(moves, m, plies, out, o, uci, u)
            game[LIST1], game[UCI1] = o, u
            n, m, t, pos = n + 1, m + plies, last, p

    return scan_games


scan_games = _entry(KERNEL_STAMP)
