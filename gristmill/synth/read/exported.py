"""Shards as other programs read them: Harmony rows, and documents with labels and spans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gristmill.contract import BadInput
from gristmill.exports.table import SPLITS, Array, Batches, Split, Tokens, list_of, required
from gristmill.synth.format import harmony_tokens, megatron, trace
from gristmill.synth.read import distill
from gristmill.synth.render.documents import Documents

_DOCUMENTS: Final = 1 << 12
_DATASET: Final = "pleias_synth"
_NAMES: Final = ("synth_id", "language", "exercise")


def _required(kind: pa.DataType) -> pa.DataType:
    """A type whose lists and structs hold no null."""
    if pa.types.is_struct(kind):
        return pa.struct(list(required({field.name: field.type for field in kind})))
    return list_of(kind.value_type) if pa.types.is_list(kind) else kind


_SCHEMA: Final = required({each.name: _required(each.type) for each in distill.SCHEMA})


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the shards of Harmony, or the splits of each shard of a dataset.

    asset: its key. folder: its path.
    """
    if asset == "synth/harmony":
        for path in sorted(folder.glob("synth_harmony_shard_*.parquet")):
            yield _harmony(folder, path.name)
    elif asset in ("synth/kd_shards", "synth_smoke/kd_shards"):
        for index in sorted(folder.glob("*/shard_*_tokens.idx")):
            if index.parent.name in ("train", "valid"):
                yield _documents(folder, index.name[6:-11], index.parent.name)
    elif asset.endswith("/distill"):
        for split, name in distill.SPLITS.items():
            yield Split(name, lambda: _SCHEMA, partial(distill.batches, folder, split))


def _harmony(folder: Path, file: str) -> Split:
    def batches() -> Batches:
        with pq.ParquetFile(folder / file) as opened:
            yield from opened.iter_batches(1 << 13)

    return Split("train", lambda: pq.read_schema(folder / file), batches, "", file, file[-10:-8])


def _documents(folder: Path, number: str, split: str) -> Split:
    def batches() -> Batches:
        tokens, spans = (
            megatron.read(folder / split / f"shard_{number}_{name}") for name in ("tokens", "span")
        )
        path, seen = folder / trace.path(number), 0
        with trace.opened(path) as opened:
            for group in range(opened.num_row_groups):
                rows = opened.read_row_group(group)
                rows = rows.filter(pc.equal(rows["split"], split)).combine_chunks()
                for first in range(0, len(rows), _DOCUMENTS):
                    part = rows.slice(first, _DOCUMENTS)
                    if part["document"].to_pylist() != [*range(seen, seen + len(part))]:
                        raise BadInput(path, "has not the documents in order: build it again")
                    yield _batch(tokens, spans, seen, part)
                    seen += len(part)
        if seen != len(tokens):
            rule = f"has {seen:,} documents of {split}, and {len(tokens):,} have tokens"
            raise BadInput(path, f"{rule}: build the shard again")

    def documents() -> Iterator[tuple[Array, Array]]:
        tokens = megatron.read(folder / split / f"shard_{number}_tokens")
        for first in range(0, len(tokens), _DOCUMENTS):
            bounds = tokens.bounds(first, min(first + _DOCUMENTS, len(tokens)))
            yield tokens.load(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]

    said = Tokens(harmony_tokens.ENDOFTEXT, harmony_tokens.PADDED_VOCABULARY, documents)
    return Split(SPLITS.get(split, split), lambda: _SCHEMA, batches, partition=number, tokens=said)


def _batch(tokens: megatron.Indexed, spans: megatron.Indexed, first: int, rows: pa.Table) -> Any:
    bounds = tokens.bounds(first, first + len(rows))
    begin, end, none = int(bounds[0]), int(bounds[-1]), np.zeros(0, np.int32)
    lengths = np.diff(bounds).astype(np.int32)
    documents = Documents(tokens.load(begin, end), spans.load(begin, end), lengths, none, none)
    found = distill.answers(documents, True)
    if not found.final.all():
        raise BadInput(tokens.path, "has a document that ends without an answer")
    names = [pc.fill_null(rows[name], "") for name in _NAMES]
    named = pa.RecordBatch.from_arrays([each.combine_chunks() for each in names], [*_NAMES])
    return distill.rows(documents.tokens, found, named, _DATASET)
