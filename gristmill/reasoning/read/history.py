"""Records, examples and conversations as a history names them, and a loader's sequences of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import GristmillError
from gristmill.corpora.split_file import files
from gristmill.history.rows import Kept
from gristmill.history.versions import Version
from gristmill.inbox.marks import FORGOTTEN
from gristmill.layout import DROPS
from gristmill.loading.past import Past
from gristmill.loading.source import Source
from gristmill.provenance import Record, read_inputs, record_path
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.index import below_tokenized, mapped
from gristmill.reasoning.format.numbers import Numbers
from gristmill.reasoning.format.published import MANIFEST, NORMALIZED, TOKENS, shard_splits
from gristmill.reasoning.format.shards import metas, shard_list

_BATCH: Final = 1 << 13
_COLUMNS: Final = ("messages_json", "synth_id", "split", "file", "row")


def records(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each record, by its contents: rows hold no id."""
    partition = str(record.partition)
    jsonl = folder / names.normalized(*partition.split("__"))
    places, numbers = mapped(folder / names.origins(partition)), Numbers(jsonl)
    inputs = read_inputs(record, record_path(folder, partition, shared=True))
    raw = sorted(str(each.path) for each in inputs if each.data_version is None)
    raw = [path for path in raw if Path(path).name != FORGOTTEN]
    lines, at = _lines(files(jsonl)), 0
    while batch := list(islice(lines, _BATCH)):
        stop = at + len(batch)
        for line, (file, row), number in zip(
            batch, places[at:stop].tolist(), numbers.between(at, stop).tolist(), strict=True
        ):
            yield Kept("", "", line, raw[file], row, -1, number)
        at = stop


def _lines(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            yield from file


def examples(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each example with tokens, by its text. Its samples are sequences of its split."""
    keys = [str(record.partition)]
    if record.asset == TOKENS:
        keys = [f"{corpus}__{split}" for corpus, split in shard_splits(folder)]
    for key in keys:
        corpus, split = key.split("__")
        before, firsts = 0, dict[str, int]()
        for meta in metas(folder, corpus, split):
            firsts[meta.path] = before
            before += meta.num_sequences
        with (folder / names.split_index(corpus, split)).open("rb") as lines:
            for line in map(orjson.loads, lines):
                number = int(line["example_id"].rpartition("_")[2])
                first, last = (
                    firsts[below_tokenized(span["shard_path"])] + span["sequence_index"]
                    for span in (line["spans"][0], line["spans"][-1])
                )
                text, size = line["text_sha256"].encode(), line["num_tokens"]
                count = last - first + 1
                yield Kept(key, "", text, NORMALIZED, number, -1, first, count, size)


def conversations(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each conversation, by its id."""
    import pyarrow.parquet as pq

    drop, number = str(record.partition).rpartition("__")[0], 0
    for path in reports.shards(folder):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH >> 4, columns=_COLUMNS):
                for text, name, split, raw, row in zip(
                    *(batch[column].to_pylist() for column in _COLUMNS), strict=True
                ):
                    where = f"{DROPS}/chat/{drop}/{raw}"
                    yield Kept(split, str(name), text.encode(), where, row, -1, number)
                    number += 1


def past(kept: Past, **options: Any) -> Source:
    """The sequences of a manifest as `shard_reader.opened` gives them."""
    if kept.identity.numbering.get("select") is not None:
        raise GristmillError(
            f"{kept.identity.artifact}: which sequences a selection chose is not kept"
        )
    wanted = kept.identity.versions[0].removeprefix("manifest ")
    chosen = {name: options.get(name, ()) for name in ("corpora", "splits")}
    for version in kept.all_of(MANIFEST, TOKENS):
        file = version.folder / names.MANIFEST
        if not file.is_file():
            continue
        listed = shard_list(file.read_bytes(), file, **chosen)
        if listed.sha256 == wanted:
            break
    else:
        raise GristmillError(f"{kept.identity.artifact}: no version with this manifest is kept")
    by_key = {each.partition: each.data_version for each in version.inputs}
    parts = list[tuple[Version, str, int]]()
    for key in listed.partitions():
        sequences = sum(each.sequences for each in listed.shards if each.partition == key)
        held = version if version.record.asset == TOKENS else kept.version(str(by_key.get(key)))
        parts.append((held, key, sequences))
    own = kept.of(parts)
    own.shards, own.needs = len(listed.shards), [version, *own.needs]
    return own
