"""From a token or an id of the index back to the row of the raw file.

Source: `docs/formats/reasoning.md#trace`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.corpora import records
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.raw.rows import row_bytes
from gristmill.provenance.trace_inputs import NotTraced, Origin, Source, notes, source
from gristmill.reading.reader import lines_from
from gristmill.reasoning.format import align, id_files, names, reports
from gristmill.reasoning.format.index import below_tokenized, mapped, parsed
from gristmill.reasoning.format.published import (
    TOKENS,
    corpus_of_record,
)
from gristmill.reasoning.format.shards import Shard, read_meta
from gristmill.reasoning.render.annotations import rows_of
from gristmill.reasoning.render.regions import Projection
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.pinned import GPT2, PLACE, find
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


NORMALIZED: Final = "reasoning/normalized"
"""Asset of the normalised files."""


def token_origins(
    tokenized: Path, partition: str, shard: int, row: int, token: int
) -> Iterator[contract.Trace]:
    """Trace a token of a sequence: its example, its characters, its record, its raw row.

    Yields the trace of the token, then the record, then the raw row; where it leads no further the
    last step says why. Raises as `trace.trace`.
    """
    yield from _steps(tokenized, partition, trace(tokenized, partition, shard, row, token))


def example_origins(
    tokenized: Path, partition: str, example_id: str, token: int = 0
) -> Iterator[contract.Trace]:
    """Trace a token of an example, the first by default; as `token_origins`."""
    found = trace_example(tokenized, partition, example_id, token)
    yield from _steps(tokenized, partition, found)


def sequence_origins(tokenized: Path, shard: Shard, row: int) -> Iterator[contract.Trace]:
    """Trace each example of a sequence, by its first token there; as `token_origins`."""
    for found in traces_of_row(tokenized, shard.partition, shard.path, row):
        yield from _steps(tokenized, shard.partition, found)


def record_origins(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    """Trace a normalised record to its raw row.

    partition: key of the split. record: from 0, blank lines not counted.

    Raises NotTraced where there is no such record.
    """
    made = source(folder, partition)
    _, line = record_at(made.folder, partition, record)
    yield from notes(_record(made, partition, record, line))


def conversation_origins(folder: Path, number: int) -> Iterator[contract.Trace]:
    """Trace a conversation to its raw row."""
    import pyarrow.parquet as pq

    made = source(folder)
    (path,) = reports.shards(folder)
    left = number
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            if left < (rows := file.metadata.row_group(group).num_rows):
                (row,) = file.read_row_group(group).slice(left, 1).to_pylist()
                break
            left -= rows
        else:
            rule = f"has {file.metadata.num_rows:,} conversations, no number {number:,}"
            raise BadInput(path, f"{rule}: they count from 0")
    facts = {"file": path.name, "row": number + 1, "synth_id": row["synth_id"]}
    yield Origin({**facts, "split": row["split"]})
    drop = str(made.record.partition).rpartition("__")[0]
    items = [item for item in made.raw_inputs() if item.path == f"drops/chat/{drop}/{row['file']}"]
    if not items:
        raise NotTraced(f"{made.title} was made from no {row['file']}: build it again")
    yield Origin({**made.raw_facts(items[0]), "raw_row": row["row"]})


def span_origins(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    """Trace the annotations of a record to their lines, the normalised record and the raw row."""
    corpus, split = corpus_and_split(partition)
    name = names.spans(corpus.name, split)
    wanted = names.example_id(corpus.name, split, record)
    found = [
        (line, row["ann_text"])
        for line, row in enumerate(rows_of(folder / name), 1)
        if row["example_id"] == wanted
    ]
    if not found:
        raise BadInput(folder / name, f"has no row {wanted}: it has no annotation")
    for line, text in found:
        yield Origin({"example_id": wanted, "spans_file": name, "line": line, "annotation": text})
    yield from notes(_aligned(folder, partition, record))


def export_origins(
    folder: Path, partition: str, example_id: str, token: int
) -> Iterator[contract.Trace]:
    """Trace a token of an example of an exported dataset; as `example_origins`."""
    made = source(folder)
    yield Origin({"exported": made.title})
    dataset = made.made_from(TOKENS)
    yield from example_origins(dataset.folder, partition, example_id, token)


def text_origins(folder: Path, shard: int, number: int) -> Iterator[contract.Trace]:
    """Trace a text of nanochat to its record and its raw row.

    folder: of the exported dataset. shard: number of the file. number: of the text in it, from 0.
    """
    import pyarrow.parquet as pq

    files = sorted((folder / "nanochat").glob("shard_*.parquet"))
    path = folder / "nanochat" / f"shard_{shard:05d}.parquet"
    counts = [pq.read_metadata(each).num_rows for each in files]
    if path not in files or not number < counts[files.index(path)]:
        raise BadInput(path, f"has no text {number:,}: they count from 0, in each file")
    yield Origin({"file": path.relative_to(folder).as_posix(), "text": number})
    held = path == files[-1]
    left = number if held else number + sum(counts[: files.index(path)])
    made = source(folder)
    parts = [str(item.partition) for item in made.inputs if item.asset == NORMALIZED]
    names_of = {key.split("__")[1] for key in parts}
    split = ("validation" if "validation" in names_of else "test") if held else "train"
    for partition in (each for each in parts if each.split("__")[1] == split):
        normalized = made.made_from(NORMALIZED, partition=partition)
        jsonl = normalized.folder / names.normalized(*partition.split("__"))
        for record, row in records.records(jsonl):
            left -= bool(text_of(row))
            if left < 0:
                _, line = record_at(normalized.folder, partition, record)
                yield from notes(_record(normalized, partition, record, line))
                return


def alignment_origins(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    """Trace a row of an alignment to its line, the normalised record and the raw row.

    partition: key of the split. record: number of the example, from 0.

    Raises BadInput where there is no such row.
    """
    corpus, split = corpus_and_split(partition)
    name = names.alignment(corpus.name, split)
    wanted = names.example_id(corpus.name, split, record)
    found = next(
        (
            (line, row)
            for line, row in enumerate(align.rows(folder / name), 1)
            if row.example_id == wanted
        ),
        None,
    )
    if found is None:
        rule = f"has no row {wanted}: it is not in the split, or has no text"
        raise BadInput(folder / name, rule)
    facts = {"example_id": wanted, "alignment_file": name, "alignment_line": found[0]}
    yield Origin(facts)
    yield from notes(_aligned(folder, partition, record))


def _aligned(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    normalized = source(folder, partition).made_from(NORMALIZED)
    _, line = record_at(normalized.folder, partition, record)
    yield from _record(normalized, partition, record, line)


def _steps(tokenized: Path, partition: str, found: Trace) -> Iterator[contract.Trace]:
    yield found
    yield from notes(_further(tokenized, partition, found))


def _further(tokenized: Path, partition: str, found: Trace) -> Iterator[contract.Trace]:
    shards = source(tokenized, partition)
    normalized = shards.made_from(NORMALIZED, partition=partition)
    record, line = record_at(normalized.folder, partition, found.record)
    text = text_of(record)
    if hashlib.sha256(text.encode()).hexdigest() != found.text_sha256:
        raise NotTraced(f"record {found.record} has another text: build {shards.title} again")
    facts: dict[str, object] = {"text_characters": len(text)}
    tokenizer = tokenizer_of(tokenized, shards.root)
    if found.token >= found.num_tokens:
        facts |= {"characters": "none: it is the end of the example"}
    elif tokenizer.no_offsets:
        facts |= {"characters": f"not known: {tokenizer.no_offsets}"}
    else:
        values = line_of(tokenized, partition, found.example_id)
        ids = tokens_of(tokenized, values)[:-1].astype(np.int32)
        projection = Projection([text], ids, [len(ids)], tokenizer.token_lengths)
        start, end = projection.characters(0, found.token, found.token + 1)
        facts |= {"characters": f"{start}-{end}", "characters_text": repr(text[start:end])}
    yield Origin(facts)
    yield from _record(normalized, partition, found.record, line)


def _record(normalized: Source, partition: str, record: int, line: int) -> Iterator[contract.Trace]:
    corpus, split = corpus_and_split(partition)
    name = names.normalized(corpus.name, split)
    sha256 = next((each.sha256 for each in normalized.record.outputs if each.path == name), None)
    yield Origin({"normalized_file": name, "line": line, "normalized_sha256": sha256})
    places = mapped(normalized.folder / names.origins(partition))
    if record >= len(places):
        raise NotTraced(f"{names.origins(partition)} has no record {record}: build it again")
    number, row = places[record].tolist()
    items = normalized.raw_inputs()
    if not 0 <= number < len(items):
        raise NotTraced(f"{normalized.title} was made from {len(items)} raw files, not {number}")
    facts = {**normalized.raw_facts(items[number]), "raw_row": row}
    if "raw_note" not in facts:
        read_by = corpus_of_record(normalized.record)
        facts |= row_bytes(normalized.root / str(items[number].path), read_by, row)
    yield Origin(facts)


def record_at(folder: Path, partition: str, record: int) -> tuple[dict[str, Any], int]:
    """A record of a normalised file, and its line, from 1."""
    corpus, split = corpus_and_split(partition)
    path = folder / names.normalized(corpus.name, split)
    with path.open("rb") as file:
        lines = ((row, line) for row, line in enumerate(file, 1) if not line.isspace())
        for row, line in islice(lines, record, None):
            return records.parse(line, path, row), row
    raise NotTraced(f"{path} has no record {record}")
