"""From an example to the row of the raw file. Source: `docs/formats/reasoning.md#trace`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.corpora import records
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.raw.rows import row_bytes
from gristmill.provenance.trace_inputs import NotTraced, Origin, Source, notes, source
from gristmill.reasoning.format import align, conversations, names, origins
from gristmill.reasoning.format.published import TOKENS, corpus_of_record
from gristmill.reasoning.format.shard_list import Shard
from gristmill.reasoning.read import trace as tracing
from gristmill.reasoning.read.trace import Trace, tokenizer_of
from gristmill.reasoning.render.annotations import rows_of
from gristmill.reasoning.render.projection import Projection
from gristmill.reasoning.render.text import text_of

NORMALIZED: Final = "reasoning/normalized"
"""Asset of the normalised files."""


def token_origins(
    tokenized: Path, partition: str, shard: int, row: int, token: int
) -> Iterator[contract.Trace]:
    """Trace a token of a sequence: its example, its characters, its record, its raw row.

    Yields the trace of the token, then the record, then the raw row; where it leads no further the
    last step says why. Raises as `trace.trace`.
    """
    yield from _steps(tokenized, partition, tracing.trace(tokenized, partition, shard, row, token))


def example_origins(
    tokenized: Path, partition: str, example_id: str, token: int = 0
) -> Iterator[contract.Trace]:
    """Trace a token of an example, the first by default; as `token_origins`."""
    found = tracing.trace_example(tokenized, partition, example_id, token)
    yield from _steps(tokenized, partition, found)


def sequence_origins(tokenized: Path, shard: Shard, row: int) -> Iterator[contract.Trace]:
    """Trace each example of a sequence, by its first token there; as `token_origins`."""
    for found in tracing.traces_of_row(tokenized, shard.partition, shard.path, row):
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
    (path,) = conversations.shards(folder)
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
        values = tracing.line_of(tokenized, partition, found.example_id)
        ids = tracing.tokens_of(tokenized, values)[:-1].astype(np.int32)
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
    places = origins.mapped(normalized.folder / names.origins(partition))
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
