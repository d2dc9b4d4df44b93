"""Law of the texts of one split: the tokens of each example are those of its text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.reasoning.builders.shard_part import selectors
from gristmill.reasoning.format import id_files, names, records
from gristmill.reasoning.format.corpora import corpus_and_split
from gristmill.reasoning.format.index import below_tokenized, extras_of, parsed
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies import compare
from gristmill.vocabularies.encode import Encoder, encoder_of
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.tokenizer_file import TokenizerFile

_BLOCK: Final = 1 << 14


def text_laws(
    folder: Path,
    partition: str | None,
    normalized: Path,
    tokenizer: TokenizerFile,
    *,
    sampled: bool = False,
) -> Iterator[Violation]:
    """Yield the examples whose tokens, hash or extras are not those of their records."""
    corpus, split = corpus_and_split(str(partition))
    name = names.split_index(corpus.name, split)
    jsonl = normalized / names.normalized(corpus.name, split)
    prefix = f'{{"example_id": "{corpus.name}_{split}_'.encode()
    try:
        repeated = selectors(corpus.name, jsonl)
        texts = _Texts(folder, repeated, encoder_of(tokenizer, TIKTOKEN))
        if sampled and not any(_sample(folder / name, jsonl, str(partition), texts)):
            return
        yield from _all(folder / name, name, jsonl, prefix, texts)
    except (BadInput, OSError) as error:
        yield Violation("texts", name, str(error))


def _sample(path: Path, jsonl: Path, partition: str, texts: _Texts) -> Iterator[bool]:
    """Yield whether each example of the sample has a problem: the first one, and by a seed."""
    row = record = base = 0
    with path.open("rb") as index, jsonl.open("rb") as raw:
        while True:
            chosen = compare.sampled(f"laws {partition}", base, _BLOCK).tolist()
            for place in [0, *chosen] if base == 0 and 0 not in chosen else chosen:
                skipped, row = base + place - row, base + place + 1
                line = next(islice(index, skipped, None), None)
                if line is None:
                    return
                values = parsed(line, path, row)
                wanted = int(values["example_id"].rpartition("_")[2])
                text = next(islice(raw, wanted - record, None), None) if wanted >= record else None
                record = wanted + 1
                yield text is None or any(
                    texts.problems(values, records.parse(text, jsonl, record))
                )
            base += _BLOCK
            if row < base and next(islice(index, base - row - 1, None), None) is None:
                return
            row = base


def _all(path: Path, name: str, jsonl: Path, prefix: bytes, texts: _Texts) -> Iterator[Violation]:
    """Yield the problems of all examples, and records without one."""
    with path.open("rb") as index:
        row = 0
        line = index.readline()
        for record, raw in _records(jsonl):
            if line.startswith(prefix + b"%06d" % record + b'"'):
                row += 1
                values = parsed(line, path, row)
                for found in texts.problems(values, records.parse(raw, jsonl, record + 1)):
                    yield Violation("texts", f"{name}:{row}", found)
                line = index.readline()
            elif text_of(records.parse(raw, jsonl, record + 1)):
                yield Violation("texts", name, f"lacks record {record}, which has a text")
                return
        if line:
            yield Violation("texts", f"{name}:{row + 1}", "belongs to no record")


def _records(jsonl: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and line of each record."""
    with jsonl.open("rb") as file:
        yield from enumerate(line for line in file if not line.isspace())


class _Texts:
    """Compares examples with their records. The shard that was read last stays mapped."""

    def __init__(self, folder: Path, repeated: tuple[str, ...], encode: Encoder) -> None:
        self._folder, self._encoder, self._selectors = folder, encode, repeated
        self._path, self._ids = "", np.zeros((0, 0))

    def problems(self, row: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with an example."""
        text = text_of(record)
        if hashlib.sha256(text.encode()).hexdigest() != row["text_sha256"]:
            yield "text_sha256 is not that of its record's text"
            return
        eod = self._encoder.tokenizer.eod
        expected = np.frombuffer(self._encoder.encode([text]).ids[0], dtype="<i4")
        if not np.array_equal(self._tokens(row), [*expected.tolist(), eod]):
            yield f"its tokens are not those of its text and {eod}"
        if row.get("extras", {}) != extras_of(record, self._selectors):
            yield "its extras are not those of its record"

    def _tokens(self, row: Mapping[str, Any]) -> id_files.Ids:
        found = []
        for span in row["spans"]:
            if span["shard_path"] != self._path:
                path = self._folder / below_tokenized(span["shard_path"])
                self._path, self._ids = span["shard_path"], id_files.of_path(path)
            found.append(self._ids[span["sequence_index"], span["start"] : span["end"]])
        return np.concatenate(found)
