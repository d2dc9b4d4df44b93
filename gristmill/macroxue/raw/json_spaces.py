"""JSON without spaces; importing this loads numba. Source: docs/formats/macroxue.md#json-rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.run.kernels import kernel

_LF, _SPACE, _QUOTE, _BACKSLASH = 10, 32, 34, 92
_SPACES = (9, 13, 32)
_BEFORE, _BEHIND = (10, 44, 58, 91, 123), (10, 44, 58, 93, 125)
"""Marks behind which, and before which, a space means nothing: LF, comma, colon and brackets."""


@kernel(nogil=True)
def _squeeze(text: Any, at: int, end: int, out: Any, starts: Any) -> int:
    size, line, last, is_text = 0, 0, _LF, False
    while at < end:
        mark = text[at]
        at += 1
        if mark == _LF:
            line += 1
            starts[line] = at
            is_text = False
        elif is_text:
            if mark == _BACKSLASH and text[at] != _LF:
                out[size] = mark
                size += 1
                mark = text[at]
                at += 1
            elif mark == _QUOTE:
                is_text = False
        elif mark in _SPACES:
            while text[at] in _SPACES:
                at += 1
            if last in _BEFORE or text[at] in _BEHIND:
                continue
            # Between two tokens that need it, as `1 2`, which is not JSON.
            mark = _SPACE
        elif mark == _QUOTE:
            is_text = True
        out[size] = mark
        size += 1
        last = mark
    return size


def squeezed(
    buffer: bytearray, at: int, end: int, padding: int
) -> tuple[bytearray, int, npt.NDArray[np.int64]]:
    """Take the spaces, tabs and CR between tokens out of lines.

    padding: bytes to have behind the text that is returned.

    Returns a buffer, the end of the text in it, and where each line begins in the old buffer:
    int64 [lines + 1]. A line is JSON where the old one is, of the same value.
    """
    lines = buffer.count(b"\n", at, end)
    starts = np.empty(lines + 1, np.int64)
    starts[0] = at
    out = bytearray(end - at + padding)
    text = np.frombuffer(buffer, np.uint8)
    return out, int(_squeeze(text, at, end, np.frombuffer(out, np.uint8), starts)), starts
