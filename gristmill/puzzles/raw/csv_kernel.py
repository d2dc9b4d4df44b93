"""Rows of a CSV file of puzzles in their usual form, taken out of bytes by a compiled function.

The usual form has no quotes, the columns of the header, and a question and an answer of the file's
length. The scan stops before any other line, which `rated_csv.py` reads, and refuses in words.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from numba import njit

from gristmill.run.kernels import kernel

_COMMA, _QUOTE, _NEWLINE, _RETURN = 44, 34, 10, 13
_ZERO, _NINE, _MINUS, _PLUS = 48, 57, 45, 43
_MOST_DIGITS = 18


@njit
def _copied(text, at, out):
    """Copy one field; the place of its end, -1 for a field of another length or with quotes."""
    length = out.shape[0]
    for k in range(length):
        byte = text[at + k]
        if byte in (_COMMA, _QUOTE, _NEWLINE, _RETURN):
            return -1
        out[k] = byte
    return at + length if text[at + length] in (_COMMA, _NEWLINE, _RETURN) else -1


@njit
def _whole_number(text, begin, end):
    """(value, whether the bytes are a whole number of at most 18 digits)."""
    at, sign = begin, 1
    if at < end and (text[at] == _MINUS or text[at] == _PLUS):
        sign = -1 if text[at] == _MINUS else 1
        at += 1
    if at == end or end - at > _MOST_DIGITS:
        return 0, False
    value = 0
    for k in range(at, end):
        if text[k] < _ZERO or text[k] > _NINE:
            return 0, False
        value = value * 10 + (text[k] - _ZERO)
    return sign * value, True


@njit
def _field_end(text, at):
    """The place of the comma, quote or end of line that comes next."""
    byte = text[at]
    while byte != _COMMA and byte != _QUOTE and byte != _NEWLINE and byte != _RETURN:
        at += 1
        byte = text[at]
    return at


@kernel()
def scan(
    text, begin, end, line, columns, count, questions, answers, ratings, is_whole, spots, lines
):
    """Take rows until the text ends, the arrays are full, or a line is not in the usual form.

    text: uint8, whose whole lines are at begin to end; padded so that reading a field of a row
        may pass the end.
    columns: int64 [3], those of question, answer and rating; -1 for no rating. count: of columns.
    questions, answers: uint8 [rows, length], filled. ratings: int64 [rows], filled where
        is_whole (bool [rows]) says so. spots: int64 [rows, 2], where the text of the rating is.
        lines: int64 [rows].
    """
    rows = 0
    while begin < end and rows < questions.shape[0]:
        at = begin
        first = stop = begin
        for column in range(count):
            if column == columns[0]:
                at = _copied(text, at, questions[rows])
            elif column == columns[1]:
                at = _copied(text, at, answers[rows])
            else:
                start = at
                at = _field_end(text, at)
                if column == columns[2]:
                    first, stop = start, at
            if at < 0 or column == count - 1:
                break
            if text[at] != _COMMA:
                at = -1
                break
            at += 1
        if at < 0:
            break
        after = at + 1 if text[at] == _RETURN else at
        if text[after] != _NEWLINE:
            break
        ratings[rows], is_whole[rows] = _whole_number(text, first, stop)
        spots[rows, 0], spots[rows, 1] = first, stop
        lines[rows] = line
        rows += 1
        line += 1
        begin = after + 1
    return rows, begin, line
