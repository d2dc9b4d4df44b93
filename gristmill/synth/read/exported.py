"""Shards as other programs read them: Harmony rows, and documents with labels and spans.

A document becomes a row of DistillKit: labels that are not shifted, no end of document, and an
assistant's part that begins behind `<|start|>assistant`. Source: `docs/consumers.md#distillkit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gristmill.contract import BadInput
from gristmill.exports.table import SPLITS, Array, Batches, Split, Tokens, list_of, required
from gristmill.synth.format import harmony_tokens, indexed, trace

_IGNORED: Final = -100
_DOCUMENTS: Final = 1 << 12
_DATASET: Final = "pleias_synth"
_SOURCE: Final = required(
    dict.fromkeys(("dataset", "language", "exercise", "meta_json"), pa.string())
)
_SPANS: Final = required(
    dict.fromkeys(
        ("assistant_token_start", "analysis_token_count", "final_token_count"), pa.int32()
    )
)
_SCHEMA: Final = required(
    {
        "id": pa.string(),
        "source": pa.struct(list(_SOURCE)),
        "input_ids": list_of(pa.int32()),
        "labels": list_of(pa.int32()),
        "attention_mask": list_of(pa.int8()),
        "spans": pa.struct(list(_SPANS)),
    }
)


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


def _harmony(folder: Path, file: str) -> Split:
    def batches() -> Batches:
        with pq.ParquetFile(folder / file) as opened:
            yield from opened.iter_batches(1 << 13)

    return Split("train", lambda: pq.read_schema(folder / file), batches, "", file, file[-10:-8])


def _documents(folder: Path, number: str, split: str) -> Split:
    def batches() -> Batches:
        tokens = indexed.read(folder / split / f"shard_{number}_tokens")
        path, seen = folder / trace.path(number), 0
        with trace.opened(path) as opened:
            for group in range(opened.num_row_groups):
                rows = opened.read_row_group(group)
                rows = rows.filter(pc.equal(rows["split"], split)).combine_chunks()
                for first in range(0, len(rows), _DOCUMENTS):
                    part = rows.slice(first, _DOCUMENTS)
                    if part["document"].to_pylist() != [*range(seen, seen + len(part))]:
                        raise BadInput(path, "has not the documents in order: build it again")
                    yield _batch(tokens, seen, part, path)
                    seen += len(part)
        if seen != len(tokens):
            rule = f"has {seen:,} documents of {split}, and {len(tokens):,} have tokens"
            raise BadInput(path, f"{rule}: build the shard again")

    def documents() -> Iterator[tuple[Array, Array]]:
        tokens = indexed.read(folder / split / f"shard_{number}_tokens")
        for first in range(0, len(tokens), _DOCUMENTS):
            bounds = tokens.bounds(first, min(first + _DOCUMENTS, len(tokens)))
            yield tokens.load(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]

    said = Tokens(harmony_tokens.ENDOFTEXT, harmony_tokens.PADDED_VOCABULARY, documents)
    return Split(SPLITS.get(split, split), lambda: _SCHEMA, batches, partition=number, tokens=said)


def _batch(tokens: indexed.Indexed, first: int, rows: pa.Table, path: Path) -> pa.RecordBatch:
    bounds = tokens.bounds(first, first + len(rows))
    begin, ends = bounds[0], bounds[1:] - bounds[0]
    values = tokens.load(int(begin), int(bounds[-1]))
    starts, reasoned, finals = _parts(values, bounds - begin, rows["offsets"], path)
    inside = np.ones(len(values), bool)
    inside[ends - 1] = False  # the end of a document
    ids = values[inside]
    offsets = (bounds - begin - np.arange(len(bounds))).astype(np.int32)
    last = offsets[1:] - 1
    ids[last] = np.where(ids[last] == harmony_tokens.END, harmony_tokens.RETURN, ids[last])
    labels = ids.copy()
    for place, length in zip(offsets[:-1].tolist(), starts.tolist(), strict=True):
        labels[place : place + length] = _IGNORED
    places = pa.array(offsets)

    def listed(column: str, of: npt.NDArray[Any]) -> pa.Array:
        return pa.ListArray.from_arrays(places, pa.array(of), type=_SCHEMA.field(column).type)

    counts = [pa.array(each.astype(np.int32)) for each in (starts, reasoned, finals)]
    ids_of_rows = _filled(rows["synth_id"])
    columns = [
        pc.binary_join_element_wise(f"{_DATASET}:", ids_of_rows, ""),
        pa.StructArray.from_arrays(_sources(rows, ids_of_rows), fields=list(_SOURCE)),
        listed("input_ids", ids),
        listed("labels", labels),
        listed("attention_mask", np.ones(len(ids), np.int8)),
        pa.StructArray.from_arrays(counts, fields=list(_SPANS)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _parts(
    values: npt.NDArray[Any], bounds: npt.NDArray[Any], offsets: pa.ChunkedArray, path: Path
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Where the assistant's part begins in each document, and tokens of reasoning and answer.

    bounds: of the documents in `values`. offsets: of their messages, and of the end.
    """
    listed = offsets.combine_chunks()
    flat, ends = np.asarray(listed.flatten()), np.cumsum(np.asarray(listed.value_lengths()))
    counts = np.diff(ends, prepend=0)
    if (counts < 3).any() or (flat[ends - 1] != np.diff(bounds) - 1).any():
        raise BadInput(path, "has messages that are not those of the tokens: build it again")

    def is_of_assistant(place: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (
            values[bounds[:-1] + place + 1] == harmony_tokens.ROLE_WORDS["assistant"]
        )
        return found

    final, before, stop = flat[ends - 2], flat[ends - 3], flat[ends - 1]
    has_reasoning = is_of_assistant(before)
    if not is_of_assistant(final).all():
        raise BadInput(path, "has a document whose last message is not the assistant's")
    starts = np.where(has_reasoning, before, final) + 2
    reasoned = np.where(has_reasoning, final - starts, 0)
    return starts, reasoned, stop - starts - reasoned


def _filled(column: pa.ChunkedArray) -> pa.Array:
    return pc.fill_null(column, "").combine_chunks()


def _sources(rows: pa.Table, ids: pa.Array) -> list[pa.Array]:
    """The dataset, language and exercise of rows, and these with the id as JSON."""
    language, exercise = (_filled(rows[name]) for name in ("language", "exercise"))
    kept = {"exercise": exercise, "language": language, "synth_id": ids}
    pieces: list[Any] = [f'{{"dataset":"{_DATASET}"']
    for name, column in kept.items():
        pieces += [f',"{name}":"', _quoted(column), '"']
    joined = pc.binary_join_element_wise(*pieces, "}", "")
    return [pa.array([_DATASET] * len(rows)), language, exercise, joined]


def _quoted(column: pa.Array) -> pa.Array:
    """Texts as JSON has them between its quotation marks."""
    if not pc.any(pc.match_substring_regex(column, r'[\x00-\x1f"\\]')).as_py():
        return column
    return pa.array([orjson.dumps(text).decode()[1:-1] for text in column.to_pylist()])
