"""Shards of Harmony, and the conversations of documents, as messages.

Source: `docs/consumers.md#messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

import orjson
import pyarrow.parquet as pq

from gristmill.corpora.split_file import files
from gristmill.exports.messages import Row, Talks, messages_of, of_shard, row, shard_rows
from gristmill.provenance import trace_inputs
from gristmill.synth.read.distill import SPLITS

_DATASET = "pleias_synth"
_LICENCE = "seed_license"


def talks(asset: str, folder: Path) -> Iterator[Talks]:
    """Yield the shards of Harmony, or the splits of a shard of documents."""
    if asset == "synth/harmony":
        for path in sorted(folder.glob("synth_harmony_shard_*.parquet")):
            yield Talks("train", partial(_rows, path))
    elif asset == "chat/kd_shards":
        shard = trace_inputs.source(folder)
        made = shard.made_from("chat/conversations")
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
    of_split = (number for own, number in shard_rows(path, ("split", "row")) if SPLITS[own] == name)
    yield from (number for number, _ in groupby(of_split))
