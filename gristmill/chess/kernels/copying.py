"""Copying bytes between two arrays that do not overlap.

The compiler turns no loop over bytes into a memory copy: for all it knows the arrays overlap.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _copy(typingctx, text, start, end, out, o):
    """Copy text[start:end] to out[o:] (uint8 arrays, start <= end); return the end in out."""

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, value=args[0])
        target = context.make_array(signature.args[3])(context, builder, value=args[3])
        length = builder.sub(args[2], args[1])
        begin = builder.gep(source.data, [args[1]])
        place = builder.gep(target.data, [args[4]])
        cgutils.raw_memcpy(builder, place, begin, length, 1)
        return builder.add(args[4], length)

    return types.int64(text, types.int64, types.int64, out, types.int64), codegen


# Any: mypy sees an intrinsic as a function with one more argument.
copy: Any = intrinsic(_copy)
