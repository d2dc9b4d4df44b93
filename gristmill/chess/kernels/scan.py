"""PGN text to games in one pass: tags, moves, phases, verdicts, and their JSON.

The scan stops before the first game that is not all in common form, and returns where.
Source: docs/formats/chess.md#compiled-reader
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.format.rows import KNOWN
from gristmill.chess.kernels.attacks import borrowed
from gristmill.chess.kernels.board import GAP, TURN, reset, set_up_fen
from gristmill.chess.kernels.ending import OPEN, shows, verdict
from gristmill.chess.kernels.headers import (
    DRAW,
    MAX_TAGS,
    NO_RESULT,
    OK,
    OTHER,
    UNKNOWN,
    UNUSUAL,
    read_tag,
    result_code,
    write_headers,
)
from gristmill.chess.kernels.movetext import (
    MORE,
    NO_ROOM,
    blank,
    read_movetext,
    skip_blank,
)
from gristmill.run.kernels import kernel

# Why the scan stopped: all is done, a game is unusual, the text ends in a game, arrays are full.
DONE, UNUSUAL_GAME, CUT, FULL = range(4)

# Columns of a game: byte places and numbers.
(START, END, PLIES, MOVE0, VERDICT, WIDE, RESULT, TERMINATOR) = range(8)
(HEAD0, HEAD1, LIST0, LIST1, UCI0, UCI1, TAG0, TAG1) = range(8, 16)
ID0, NUMBERS, SHOWN = range(16, 19)
COLUMNS = 19
PADDING = 16  # zero bytes that must follow the text
FEN, PLY_COUNT, LAST_POSITION = map(KNOWN.index, ("FEN", "PlyCount", "CurrentPosition"))

_PROMOTED = np.frombuffer(b"?nbrq", dtype=np.uint8).copy()


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
    """Write moves as a JSON list to out[o:] and joined by spaces to uci[u:]; return both ends."""
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
    """Write the fields of the game id before the moves (docs/formats/chess.md#game-ids)."""
    out[o], out[o + 1] = 10, 10  # Variant and FEN are empty
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
def _tags(buf, p, size, at_eof, current, tags, first, known):
    """Read tag lines from p to the blank line after them: (code, position, tags, wide)."""
    n, wide = first, 0
    known[:, :] = -1
    while True:
        if p >= size:
            return (OK if at_eof else MORE), p, n, wide
        if buf[p] != 91:
            after = blank(buf, p, size)
            if after == size and not at_eof:
                return MORE, p, n, wide
            # Movetext directly after the tags is rare: python-chess reads it.
            return (OK if after >= 0 else UNUSUAL), after, n, wide
        if n - first >= MAX_TAGS:
            return UNUSUAL, p, n, wide
        if n >= tags.shape[0]:
            return NO_ROOM, p, n, wide
        end = p
        while end < size and buf[end] != 10 and buf[end] != 13:
            end += 1
        if end >= size - 1 and not at_eof:
            return MORE, p, n, wide
        if buf[end] == 13 and buf[end + 1] != 10:
            return UNUSUAL, p, n, wide
        code, beyond = read_tag(buf, p, end, current, tags, first, n, known)
        if code != OK:
            return code, p, n, wide
        wide |= beyond
        n += 1
        p = end + (2 if buf[end] == 13 else 1)


@njit
def _begin(buf, current, fen, bb, kinds, st, key):
    """Set up the position that a game begins at; False where python-chess must read the game."""
    if fen[0] < 0:
        reset(bb, kinds, st, key)
        return True
    # The original code keeps such games.
    return current and set_up_fen(buf, fen[0], fen[1], bb, kinds, st)


@kernel()
def scan_games(
    buf, size, at_eof, current, pos, stop, games, known, tags, moves, phases, text, board
):
    """Read games that start in [pos, stop) of buf[:size].

    buf: uint8, with PADDING zeros after `size`. at_eof: the text ends the file. current: stop
    before a game with a comment that the next game begins in, or whose tags and moves may be apart.
    games: int64 [games, COLUMNS]. known: int64 [games, len(KNOWN), 2]. tags: int64 [tags, 4].
    moves, phases: uint16 and uint8, one a ply. text: two uint8 arrays, for JSON and for moves
    joined by spaces. board: see `board.new_board`.
    Returns (games read, position, why it stopped).
    """
    buf, games, known, tags = borrowed(buf), borrowed(games), borrowed(known), borrowed(tags)
    moves, phases = borrowed(moves), borrowed(phases)
    out, uci = borrowed(text[0]), borrowed(text[1])
    bb, kinds, st = borrowed(board[0]), borrowed(board[1]), borrowed(board[2])
    key, keys = borrowed(board[3]), borrowed(board[4])
    position = (bb, kinds, st, key)
    n, m, t, o, u = 0, 0, 0, 0, 0
    while True:
        pos = skip_blank(buf, pos, size)
        if pos >= size:
            return n, pos, (DONE if at_eof or pos >= stop else CUT)
        if pos >= stop:
            return n, pos, DONE
        if n >= games.shape[0]:
            return n, pos, FULL
        code, p, last, wide = _tags(buf, pos, size, at_eof, current, tags, t, known[n])
        plies, terminator = 0, NO_RESULT
        if code == OK and current:  # the movetext may follow any number of blank lines
            p = skip_blank(buf, p, size)
            if p >= size and not at_eof:
                code = MORE
        if code == OK and p < size and buf[p] == 91:
            code = UNUSUAL
        fen = known[n, FEN]
        given = NO_RESULT
        if known[n, 6, 0] >= 0:
            given = result_code(buf, known[n, 6, 0], known[n, 6, 1])
        # Any text but `?` may be another spelling of a result.
        if code == OK and current and given == OTHER and buf[known[n, 6, 0]] != 63:
            code = UNUSUAL
        game = games[n]
        if code == OK and not _begin(buf, current, fen, bb, kinds, st, key):
            code = UNUSUAL
        if code == OK:
            keys[0] = key[0]
            code, p, plies, terminator = read_movetext(
                buf,
                p,
                size,
                at_eof,
                current,
                position,
                keys,
                moves,
                phases,
                m,
                moves.shape[0],
            )
        if code == MORE:
            return n, pos, CUT
        if code == NO_ROOM:
            return n, pos, (FULL if n else UNUSUAL_GAME)
        if code != OK:
            return n, pos, UNUSUAL_GAME
        filled = terminator if given in (NO_RESULT, UNKNOWN) else 0
        result = filled if filled else given
        game[START], game[END], game[PLIES], game[MOVE0] = pos, p, plies, m
        game[RESULT], game[TERMINATOR] = result, terminator
        game[NUMBERS] = st[GAP]
        p0, p1 = known[n, LAST_POSITION]
        game[SHOWN] = p1 <= p0 or shows(buf, p0, bb, kinds, st[TURN])
        if fen[0] >= 0:  # it is rejected, and its id is not that of the other games
            game[VERDICT], wide = OPEN, 1
        else:  # claims matter only where the result is no draw
            game[VERDICT] = verdict(bb, kinds, st, key, keys, plies, result != DRAW)
        game[WIDE], game[TAG0], game[TAG1] = wide, t, last
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
