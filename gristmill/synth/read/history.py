"""Documents and conversations as a history names them, what a loader had of them, and as messages.

Source: `docs/consumers.md#messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow.parquet as pq

from gristmill.corpora.split_file import files
from gristmill.exports.messages import Row, Talks, messages_of, of_shard, row, shard_rows
from gristmill.history.rows import Kept
from gristmill.loading.past import Past
from gristmill.loading.source import Packed, Source
from gristmill.provenance import Record
from gristmill.provenance.trace_inputs import source
from gristmill.synth.format import megatron, trace
from gristmill.synth.read import distill

_DATASET: Final = "pleias_synth"
_LICENCE: Final = "seed_license"
_COLUMNS: Final = ("split", "document", "row", "synth_id")


def harmony(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each conversation, by its id."""
    raw = [str(each.path) for each in source(folder, record.partition).raw_inputs()]
    (name,) = (each.path for each in record.outputs if each.path.endswith(".parquet"))
    where = raw[0] if len(raw) == 1 else ""
    for number, (text, own) in enumerate(shard_rows(folder / name, ("messages_json", "synth_id"))):
        yield Kept("", str(own or ""), text.encode(), where, -1, -1, number)


def documents(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each document, by the id of its conversation; its contents are its tokens."""
    (name,) = (each.path for each in record.outputs if each.path.startswith("trace/"))
    inputs = source(folder, record.partition).inputs
    assets = (each.asset for each in inputs if each.asset and each.data_version is not None)
    made_from = next(each for each in assets if not each.startswith("tokenizers/"))
    tokens = _tokens_of_rows if record.asset.endswith("/distill") else _tokens_of_shard
    given = {
        split: tokens(folder, split, name[len("trace/trace_") : -len(".parquet")])
        for split in ("train", "valid")
    }
    with trace.opened(folder / name) as file:
        for batch in file.iter_batches(columns=_COLUMNS):
            columns = (batch[column].to_pylist() for column in _COLUMNS)
            for split, document, number, own in zip(*columns, strict=True):
                content, size = next(given[split])
                yield Kept(split, own or "", content, made_from, number - 1, -1, document, 1, size)


def _tokens_of_shard(folder: Path, split: str, shard: str) -> Iterator[tuple[bytes, int]]:
    """The tokens and masks of each document of a shard, and how many they are."""
    if not (folder / split / f"shard_{shard}_tokens.idx").exists():
        return
    of = [
        megatron.opened(folder / split / f"shard_{shard}_{name}") for name in ("tokens", "lossmask")
    ]
    begin = 0
    for length in chain.from_iterable(each.tolist() for each in of[0].length_batches()):
        yield b"".join(each.values[begin : begin + length].tobytes() for each in of), length
        begin += length


def _tokens_of_rows(folder: Path, split: str, _: str) -> Iterator[tuple[bytes, int]]:
    for batch in distill.batches(folder, split):
        ids, labels = (batch[name] for name in ("input_ids", "labels"))
        for own, label in zip(ids, labels, strict=True):
            found = [each.values.to_numpy() for each in (own, label)]
            yield b"".join(each.tobytes() for each in found), len(found[0])


def past(kept: Past, **options: Any) -> Source:
    """The documents of a folder as `documents.opened` gives them, perhaps packed."""
    own, seq_len = kept.of(), options.get("seq_len")
    return own if seq_len is None else Packed(own, seq_len)


def talks(asset: str, folder: Path) -> Iterator[Talks]:
    """Yield the shards of Harmony, or the splits of a shard of documents."""
    if asset == "synth/harmony":
        for path in sorted(folder.glob("synth_harmony_shard_*.parquet")):
            yield Talks("train", partial(_rows, path))
    elif asset == "chat/kd_shards":
        made = source(folder).made_from("chat/conversations")
        (path,) = folder.glob("trace/trace_*.parquet")
        number = str(made.record.partition).rpartition("__")[2]
        paths = files(made.folder / f"shard_{number}.parquet")
        yield from of_shard(paths, made.record, partial(_numbers, path))


def _rows(path: Path) -> Iterator[Row]:
    columns = ["messages_json", "synth_id"]
    has_licence = _LICENCE in pq.read_schema(path).names
    for text, name, *own in shard_rows(path, columns + [_LICENCE] * has_licence):
        messages = orjson.loads(text)["messages"]
        spans = [int(each["role"] == "assistant") for each in messages]
        licence = own[0] if own else None
        yield row(str(name), _DATASET, licence, messages_of(messages, spans))


def _numbers(path: Path, name: str) -> Iterator[int]:
    """The rows of a split's documents, each once."""
    of_split = (
        number for own, number in shard_rows(path, ("split", "row")) if distill.SPLITS[own] == name
    )
    yield from (number for number, _ in groupby(of_split))
