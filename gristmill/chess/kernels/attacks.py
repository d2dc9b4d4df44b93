"""Bits of a bitboard, the squares that pieces attack, and attacks on a square.

A bitboard is a uint64; `bb` is the array of eight bitboards of `board.py`.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from gristmill.chess.kernels.tables import (
    BISHOP_LINES,
    BIT,
    KING,
    KNIGHT,
    PAWN,
    RAY,
    ROOK_LINES,
)


def _bit_count(name):
    """An LLVM bit-counting instruction on uint64 -> int64."""

    def implementation(typingctx, value):
        def codegen(context, builder, signature, args):
            if name == "ctpop":
                return builder.ctpop(args[0])
            return getattr(builder, name)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), codegen

    return intrinsic(implementation)


lowest = _bit_count("cttz")  # number of the lowest set bit
_leading = _bit_count("ctlz")
count = _bit_count("ctpop")


def _borrowed(typingctx, array):
    """The same array without its reference count, for calls between compiled functions.

    Counting references at every inner call costs more than the rules of chess. The caller of an
    entry point holds the array.
    """

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.return_type)(context, builder, value=args[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen


# Any: mypy sees an intrinsic as a function of two arguments.
borrowed: Any = intrinsic(_borrowed)


@njit(forceinline=True)
def highest(board):
    """The number of the highest set bit of a bitboard that is not empty."""
    return 63 - _leading(board)


@njit(forceinline=True)
def rook_attacks(square, occupied):
    """The squares that a rook on `square` attacks, the first blocker of each ray included."""
    up, right = RAY[0, square], RAY[1, square]
    down, left = RAY[4, square], RAY[5, square]
    # a1 and h8 count as blockers of every ray; where one is the only blocker, it removes nothing.
    up ^= RAY[0, lowest((up & occupied) | BIT[63])]
    right ^= RAY[1, lowest((right & occupied) | BIT[63])]
    down ^= RAY[4, highest((down & occupied) | BIT[0])]
    left ^= RAY[5, highest((left & occupied) | BIT[0])]
    return up | right | down | left


@njit(forceinline=True)
def bishop_attacks(square, occupied):
    """The squares that a bishop on `square` attacks, the first blocker of each ray included."""
    a, b = RAY[2, square], RAY[3, square]
    c, d = RAY[6, square], RAY[7, square]
    a ^= RAY[2, lowest((a & occupied) | BIT[63])]
    b ^= RAY[3, lowest((b & occupied) | BIT[63])]
    c ^= RAY[6, highest((c & occupied) | BIT[0])]
    d ^= RAY[7, highest((d & occupied) | BIT[0])]
    return a | b | c | d


@njit(forceinline=True)
def attacked(bb, square, by, occupied, gone):
    """Whether colour `by`, without its pieces on `gone`, attacks `square`."""
    theirs = bb[by] & ~gone
    if KNIGHT[square] & bb[3] & theirs:
        return True
    if PAWN[1 - by, square] & bb[2] & theirs:
        return True
    if KING[square] & bb[7] & theirs:
        return True
    straight = (bb[5] | bb[6]) & theirs
    if straight & ROOK_LINES[square] and rook_attacks(square, occupied) & straight:
        return True
    slanted = (bb[4] | bb[6]) & theirs
    return bool(slanted & BISHOP_LINES[square] and bishop_attacks(square, occupied) & slanted)
