"""Records of a normalised file. Source: `docs/formats/reasoning.md#normalised-files`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.split_file import lines

KEYS: Final = ("question", "answer", "cot", "source_dataset")
"""Keys that every record has, in this order; the extras of the corpus follow."""
STEPS: Final = "cot_steps"
"""Last key of a record whose `cot` was a list: its items, which `cot` has joined by newlines."""

Scalar = str | int | float | bool | None


class Record(NamedTuple):
    """One record before it is written.

    question, answer: may be empty.
    cot: None where there is none.
    extras: values in the order of the corpus' extra columns.
    steps: items of a `cot` that was a list; None for another.
    shape: form of the raw record, such as "seed" or "public"; it is not written.
    """

    question: str
    answer: str
    cot: str | None
    extras: tuple[Scalar, ...] = ()
    steps: list[str] | None = None
    shape: str = "seed"


def keys(corpus: Corpus) -> tuple[str, ...]:
    """Keys of every record of a corpus in order, without `cot_steps`."""
    return (*KEYS, *corpus.extra_columns)


class LineWriter:
    """Makes the lines of one corpus: the bytes of `json.dumps(record, ensure_ascii=False)`."""

    def __init__(self, corpus: Corpus) -> None:
        self._source = b', "source_dataset": ' + orjson.dumps(corpus.name)
        self._extras = [b", " + orjson.dumps(name) + b": " for name in corpus.extra_columns]

    def line(self, record: Record) -> bytes:
        """The line of a record, with its newline.

        record: its texts have no lone surrogates, and its numbers are finite.

        Raises orjson.JSONEncodeError for a text with a lone surrogate.
        """
        dumps = orjson.dumps
        parts = [
            b'{"question": ',
            dumps(record.question),
            b', "answer": ',
            dumps(record.answer),
            b', "cot": ',
            dumps(record.cot),
            self._source,
        ]
        for key, value in zip(self._extras, record.extras, strict=True):
            parts += (key, _scalar(value))
        if record.steps is not None:
            parts += (b', "cot_steps": [', b", ".join(map(dumps, record.steps)), b"]")
        parts.append(b"}\n")
        return b"".join(parts)


def _scalar(value: Scalar) -> bytes:
    """A value as json.dumps writes it: orjson has its own form of numbers."""
    if value is None or isinstance(value, str | bool):
        return orjson.dumps(value)
    return repr(value).encode("ascii")


def parse(line: bytes, path: Path, row: int) -> dict[str, Any]:
    """The record of a line. Raises BadInput for a line that is no JSON object."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(path, f"not JSON ({error}): build the partition again", row) from error
    if not isinstance(record, dict):
        raise BadInput(path, "is not a JSON object: build the partition again", row)
    return record


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a split by its path, with their numbers, from 0; blank lines are none.

    Raises BadInput for a line that is no JSON object, OSError where the file cannot be read.
    """
    number = 0
    for file, row, line in lines(path):
        if not line.isspace():
            yield number, parse(line, file, row)
            number += 1
