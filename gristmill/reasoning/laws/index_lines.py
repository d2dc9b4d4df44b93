"""Lines of an index as arrays, where they have the bytes that the builder writes.

`shard_index.py` reads other lines one by one, and needs these arrays for all.
Source: `docs/formats/reasoning.md#shard-laws`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.reasoning.format import index

Ints = npt.NDArray[np.int64]

_NUMBER: Final = rb"(\d{1,15})"
_SPAN: Final = re.compile(
    rb', \{"shard_path": "([^"\\\n]+)", "sequence_index": '
    + _NUMBER
    + rb', "start": '
    + _NUMBER
    + rb', "end": '
    + _NUMBER
    + rb"\}"
)


class Lines(NamedTuple):
    """Some lines. All arrays are int64.

    records, rank, num_tokens, with_eos: [lines], as written.
    line, shard, row, start, end: [spans], of all spans in order; `line` is the place of the line.
    """

    records: Ints
    rank: Ints
    num_tokens: Ints
    with_eos: Ints
    line: Ints
    shard: Ints
    row: Ints
    start: Ints
    end: Ints


def pattern(prefix: str) -> re.Pattern[bytes]:
    """The form of a line whose first token is that of its first span.

    prefix: of the ids, before the record.
    """
    return re.compile(
        rb'^\{"example_id": "'
        + re.escape(prefix.encode())
        + rb'(\d{6}|[1-9]\d{6,14})", "shard_path": "([^"\\\n]+)", "sequence_index": '
        + _NUMBER
        + rb', "token_start": '
        + _NUMBER
        + rb', "num_tokens": '
        + _NUMBER
        + rb', "num_tokens_with_eos": '
        + _NUMBER
        + rb', "spans": \[\{"shard_path": "\2", "sequence_index": \3, "start": \4, "end": '
        + _NUMBER
        + rb'\}((?:, \{[^\[\]{}\n]*\})*)\], "rank": '
        + _NUMBER
        + rb', "text_sha256": "[0-9a-f]{64}"(?:, "extras": (\{.+\}))?\}$',
        re.MULTILINE,
    )


def parsed(
    form: re.Pattern[bytes], lines: Sequence[bytes], number: Callable[[str], int]
) -> Lines | None:
    """Return lines as arrays, or None where one of them is not of the form.

    form: as `pattern` returns it.
    lines: each with its newline.
    number: returns the number of a shard by its path; it raises ValueError for another path.
    """
    found = form.findall(b"".join(lines))
    if len(found) != len(lines):
        return None
    columns = list(zip(*found, strict=True))
    try:
        # Many lines have the same extras.
        for extras in set(columns[9]) - {b""}:
            orjson.loads(extras)
    except ValueError:
        return None
    at: list[int] = []
    more_spans: list[tuple[bytes, bytes, bytes, bytes]] = []
    for place, more in enumerate(columns[7]):
        if more:
            spans = _SPAN.findall(more)
            if b"".join(map(_written, spans)) != more:
                return None
            at += [place] * len(spans)
            more_spans += spans
    paths, rows, starts, ends = (
        (*columns[place], *(span[field] for span in more_spans))
        for field, place in enumerate((1, 2, 3, 6))
    )
    try:
        numbers = {path: number(path.decode()) for path in set(paths)}
    except ValueError:
        return None
    line = np.concatenate([np.arange(len(lines)), np.array(at, dtype=np.int64)])
    # Stable, so that the first span of a line stays before its others.
    order = np.argsort(line, kind="stable")
    records, rank, num_tokens, with_eos = (_ints(columns[place]) for place in (0, 8, 4, 5))
    shards = np.array([numbers[path] for path in paths], dtype=np.int64)[order]
    row, start, end = (_ints(values)[order] for values in (rows, starts, ends))
    return Lines(records, rank, num_tokens, with_eos, line[order], shards, row, start, end)


def _written(span: tuple[bytes, bytes, bytes, bytes]) -> bytes:
    return b', {"shard_path": "%b", "sequence_index": %b, "start": %b, "end": %b}' % span


def _ints(values: Sequence[bytes]) -> Ints:
    return np.array(values, dtype="S15").astype(np.int64)


def one_by_one(lines: Sequence[bytes], path: Path, before: int) -> list[dict[str, Any]]:
    """The lines as objects of the form of the index. Raises BadInput with the first other one."""
    try:
        values = [orjson.loads(line) for line in lines]
        if _are_rows(values):
            return values
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    # One by one, for the error.
    return [index.parsed(line, path, before + place + 1) for place, line in enumerate(lines)]


COUNTS: Final = ("num_tokens", "num_tokens_with_eos")
_INTS: Final = (*COUNTS, "sequence_index", "token_start", "rank")
_TEXTS: Final = ("example_id", "shard_path", "text_sha256")
_KEYS: Final = (
    *("example_id", "shard_path", "sequence_index", "token_start", "num_tokens"),
    *("num_tokens_with_eos", "spans", "rank", "text_sha256"),
)
SPAN_KEYS: Final = ("shard_path", "sequence_index", "start", "end")


def _are_rows(values: list[dict[str, Any]]) -> bool:
    """Whether all are of the form of a line, faster than line by line."""
    if not {tuple(each) for each in values} <= {_KEYS, (*_KEYS, "extras")}:
        return False
    spans = list(chain.from_iterable([each["spans"] for each in values]))
    return (
        all(set(map(type, [each[name] for each in values])) == {int} for name in _INTS)
        and all(set(map(type, [each[name] for each in values])) == {str} for name in _TEXTS)
        and {tuple(each) for each in spans} == {SPAN_KEYS}
        and all(set(map(type, [each[name] for each in spans])) == {int} for name in SPAN_KEYS[1:])
        and all(each["spans"] for each in values)
        and {type(each.get("extras", {})) for each in values} == {dict}
    )
