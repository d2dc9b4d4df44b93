"""Records, examples and conversations as a history names them, and a loader's sequences of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import GristmillError
from gristmill.corpora.split_file import lines, opened
from gristmill.exports.messages import rows_of
from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading.past import Past
from gristmill.loading.source import Source
from gristmill.provenance import Record
from gristmill.provenance.trace_inputs import source
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.index import Numbers, below_tokenized, mapped
from gristmill.reasoning.format.published import MANIFEST, NORMALIZED, TOKENS, shard_splits
from gristmill.reasoning.format.shards import metas, shard_list

_BATCH: Final = 1 << 13
_COLUMNS: Final = ("messages_json", "synth_id", "split", "file", "row")


def records(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each record, by its contents: rows hold no id."""
    partition = str(record.partition)
    jsonl = folder / names.normalized(*partition.split("__"))
    places, numbers = mapped(folder / names.origins(partition)), Numbers(jsonl)
    raw = sorted(str(each.path) for each in source(folder, partition).raw_inputs())
    texts, at = (line for *_, line in lines(jsonl)), 0
    while batch := list(islice(texts, _BATCH)):
        stop = at + len(batch)
        for line, (file, row), number in zip(
            batch, places[at:stop].tolist(), numbers.between(at, stop).tolist(), strict=True
        ):
            yield Kept("", "", line, raw[file], row, -1, number)
        at = stop


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
        with opened(folder / names.split_index(corpus, split)) as file:
            for line in map(orjson.loads, file):
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
    below = f"{DROPS}/chat/{str(record.partition).rpartition('__')[0]}"
    found = rows_of(reports.shards(folder), _COLUMNS)
    for number, (text, name, split, raw, row) in enumerate(found):
        yield Kept(split, str(name), text.encode(), f"{below}/{raw}", row, -1, number)


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
        if file.is_file():
            listed = shard_list(file.read_bytes(), file, **chosen)
            if listed.sha256 == wanted:
                break
    else:
        raise GristmillError(f"{kept.identity.artifact}: no version with this manifest is kept")
    by_key = {each.partition: each.data_version for each in version.inputs}
    is_whole = version.record.asset == TOKENS
    own = kept.of(
        [
            (
                version if is_whole else kept.version(str(by_key.get(key))),
                key,
                sum(each.sequences for each in listed.shards if each.partition == key),
            )
            for key in listed.partitions()
        ]
    )
    own.shards, own.needs = len(listed.shards), [version, *own.needs]
    return own
