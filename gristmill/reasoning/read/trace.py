"""From a token or an id to the line of the index. Source: `docs/formats/reasoning.md#trace`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.corpora.corpus import corpus_and_split
from gristmill.reading.sorted_lines import lines_from
from gristmill.reasoning.format import id_files, names
from gristmill.reasoning.format.index import below_tokenized, parsed
from gristmill.reasoning.format.shards import read_meta
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2, PLACE
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer

_SAID_BY_A_SCAN: Final = BadInput, OSError, ValueError, LookupError, TypeError, AttributeError
"""What is wrong with a line that was found by bisecting: a scan says it with its number."""


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a token or an example is.

    example_id: of the example.
    record: its number in the normalised file, from 0, blank lines not counted.
    shard, sequence, column: place of the token, or of the first one.
    token: its number in the example, from 0; the EOS is the last one.
    id: of the token.
    num_tokens: of the example, without EOS.
    text_sha256: hex, of the rendered text.
    """

    example_id: str
    record: int
    shard: str
    sequence: int
    column: int
    token: int
    id: int
    num_tokens: int
    text_sha256: str


def trace(tokenized: Path, partition: str, shard: int, row: int, token: int) -> Trace:
    """Trace one token of a sequence.

    tokenized: the folder of all shards.
    partition: key of the split.
    shard: number of the shard. row: of the sequence in it, from 0.
    token: column in the sequence, from 0.

    Raises BadInput where there is no such token, or it is padding.
    """
    corpus, split = corpus_and_split(partition)
    several = [names.shard(corpus.name, split, shard, each) for each in (".pt", *id_files.SUFFIXES)]
    path = next((each for each in several if (tokenized / each).is_file()), several[0])
    if not (tokenized / path).is_file():
        raise BadInput(tokenized / path, "there is no such shard")
    shape = id_files.of_path(tokenized / path).shape
    if not (0 <= row < shape[0] and 0 <= token < shape[1]):
        rule = f"has {shape[0]} sequences of {shape[1]} tokens, no token {token} of sequence {row}"
        raise BadInput(tokenized / path, rule)
    for values, before, span in _of_row(tokenized, partition, path, row):
        if span["start"] <= token < span["end"]:
            return _trace(tokenized, values, before + token - span["start"])
    raise BadInput(tokenized / path, f"token {token} of sequence {row} is padding: no example's")


def traces_of_row(tokenized: Path, partition: str, path: str, row: int) -> Iterator[Trace]:
    """Trace each example of a sequence, by its first token there, in the order of the index.

    path: of the shard below `tokenized`. row: of the sequence in it, from 0.
    """
    for values, before, _ in _of_row(tokenized, partition, path, row):
        yield _trace(tokenized, values, before)


def _of_row(
    tokenized: Path, partition: str, path: str, row: int
) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Each line of the index with a span in a sequence, the tokens before the span, the span."""
    corpus, split = corpus_and_split(partition)
    index = tokenized / names.split_index(corpus.name, split)
    for values in _lines_of_row(index, path, row, id_files.of_path(tokenized / path).shape[1]):
        before = 0
        for span in values["spans"]:
            if below_tokenized(span["shard_path"]) == path and span["sequence_index"] == row:
                yield values, before, span
            before += span["end"] - span["start"]


def _lines_of_row(index: Path, path: str, row: int, columns: int) -> list[dict[str, Any]]:
    """The lines with a span in a sequence; by a scan where bisecting may miss one."""
    wanted, found, filled = (path, row), list[dict[str, Any]](), 0

    def last(line: bytes) -> tuple[str, int]:
        return _place(orjson.loads(line)["spans"][-1])

    with suppress(*_SAID_BY_A_SCAN), index.open("rb") as file:
        for line in lines_from(file, last, wanted):
            values = parsed(line, index, 0)
            spans = [span for span in values["spans"] if _place(span) == wanted]
            if not spans or spans[0]["start"] != filled:
                break
            found.append(values)
            filled = spans[0]["end"]
    if filled == columns:
        return found
    return list(_lines(index, f'{path}", "sequence_index": {row}, "start": '.encode()))


def _place(span: Mapping[str, Any]) -> tuple[str, int]:
    return below_tokenized(span["shard_path"]), span["sequence_index"]


def trace_example(tokenized: Path, partition: str, example_id: str, token: int = 0) -> Trace:
    """Trace one token of an example."""
    values = line_of(tokenized, partition, example_id)
    count = values["num_tokens_with_eos"]
    if not 0 <= token < count:
        rule = f"{example_id} has {count} tokens with its end, no token {token}"
        raise BadInput(tokenized, rule)
    return _trace(tokenized, values, token)


def tokens_of(tokenized: Path, values: Mapping[str, Any]) -> id_files.Ids:
    """The tokens of an example with its EOS, from its spans."""
    found = [
        id_files.of_path(tokenized / below_tokenized(span["shard_path"]))[
            span["sequence_index"], span["start"] : span["end"]
        ]
        for span in values["spans"]
    ]
    return np.concatenate(found)


def line_of(tokenized: Path, partition: str, example_id: str) -> dict[str, Any]:
    """The line of an example in the index. Raises BadInput where there is none."""
    corpus, split = corpus_and_split(partition)
    path = tokenized / names.split_index(corpus.name, split)
    start = f'{{"example_id": "{example_id}"'.encode()
    with suppress(*_SAID_BY_A_SCAN), path.open("rb") as file:
        line = next(lines_from(file, _record_of, int(example_id.rpartition("_")[2])), b"")
        if line.startswith(start):
            return parsed(line, path, 0)
    for values in _lines(path, start):
        return values
    raise BadInput(path, f"has no example {example_id!r}: it is not in the split, or has no text")


def _record_of(line: bytes) -> int:
    return int(orjson.loads(line)["example_id"].rpartition("_")[2])


def _trace(tokenized: Path, values: Mapping[str, Any], token: int) -> Trace:
    left = token
    for span in values["spans"]:
        size = span["end"] - span["start"]
        if left < size:
            break
        left -= size
    path, row, column = span["shard_path"], span["sequence_index"], span["start"] + left
    ids = id_files.of_path(tokenized / below_tokenized(path))
    return Trace(
        example_id=values["example_id"],
        record=int(values["example_id"].rpartition("_")[2]),
        shard=path,
        sequence=row,
        column=column,
        token=token,
        id=int(ids[row, column]),
        num_tokens=values["num_tokens"],
        text_sha256=values["text_sha256"],
    )


def _lines(path: Path, wanted: bytes) -> Iterator[dict[str, Any]]:
    """The lines that hold some bytes, as objects. Raises BadInput where the file is gone."""
    if not path.is_file():
        raise BadInput(path, "is missing: build the shards of this split")
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if wanted in line:
                yield parsed(line, path, number)


def name_in(folder: Path) -> str:
    """The name of the tokenizer of a folder of shards; empty where it is GPT-2's."""
    first = next(folder.glob("*/*/shard_*.meta.json"), None)
    if first is None or b'"tokenizer":' not in first.read_bytes():
        return ""
    return read_meta(first).tokenizer


def tokenizer_of(folder: Path, root: Path) -> Tokenizer:
    """The tokenizer of a folder of shards. root: the data root.

    Raises MissingVocabulary where it is not published.
    """
    name = name_in(folder)
    if not name:
        return of_pinned(GPT2, find(GPT2, root))
    return open_tokenizer(root / PLACE / name)
