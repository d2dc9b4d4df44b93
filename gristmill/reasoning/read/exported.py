"""Records, token shards, alignments and conversations as other programs read them.

A table a corpus; records and conversations also as messages (`docs/consumers.md#messages`).
Documents of tokens come from the shards alone: those of a rank are one stream, padded at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from gristmill.contract import BadInput
from gristmill.corpora.records import records
from gristmill.corpora.split_file import files, opened
from gristmill.exports.messages import Row, Talks, of_shard, row
from gristmill.exports.table import Array, Batches, Split, Tokens, lines, list_of, required
from gristmill.families import columns_of
from gristmill.provenance import RECORD, SHARED_RECORDS, read_record
from gristmill.provenance.find_artifacts import artifacts_in
from gristmill.reasoning.format import id_files, names, published
from gristmill.reasoning.format.index import Numbers, below_tokenized
from gristmill.reasoning.format.published import (
    ALIGNMENT,
    NORMALIZED,
    SHARDS,
    SPANS,
    TOKENS,
    corpus_of_record,
    recorded,
)
from gristmill.reasoning.format.reports import shards
from gristmill.reasoning.format.shards import EOS, Meta, metas
from gristmill.reasoning.format.shards import TOKENS as IDS
from gristmill.reasoning.render.text import text_of

_LINES: Final[dict[str, Callable[[str, str], str]]] = {
    NORMALIZED: names.normalized,
    ALIGNMENT: names.alignment,
    SPANS: names.spans,
}
_TOKENS: Final = required({"example_id": pa.string(), "input_ids": list_of(pa.int32())})
_ROWS: Final = 1 << 13
_PIECE: Final = 1 << 22


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the splits of the corpora.

    asset: its key. folder: that its partitions share, or of a dataset of tokens.
    """
    if asset == TOKENS:
        record = read_record(folder / RECORD)
        partitions = [f"{corpus}__{split}" for corpus, split in published.shard_splits(folder)]
    elif asset in (*_LINES, SHARDS):
        partitions = published.recorded(artifacts_in(folder))
    else:
        return
    for partition in partitions:
        if asset != TOKENS:
            record = read_record(folder / SHARED_RECORDS / f"{partition}.json")
        root = folder.absolute().parents[len(Path(record.artifact).parts) - 1]
        yield from splits_of(asset, folder, partition, root)


def splits_of(asset: str, folder: Path, partition: str, root: Path) -> Iterator[Split]:
    """Yield a split of a corpus, or each part of it.

    asset, folder: as for `splits`. partition: its key. root: data root.
    """
    licence = published.corpus_of(root, partition).licence.id
    corpus, split = partition.split("__")
    said: dict[str, Any] = {
        "name": split,
        "table": corpus,
        "partition": "" if asset == TOKENS else partition,
        "licence": "" if licence == "unknown" else licence.lower(),
    }
    if asset in _LINES:
        for path in files(folder / _LINES[asset](corpus, split)):
            if asset == NORMALIZED:
                said["texts"] = partial(_texts, path)
            file = path.relative_to(folder).as_posix()
            yield lines(path, columns_of(asset), file=file, **said)
        return
    listed = metas(folder, corpus, split)
    end, ids = (listed[0].eod, listed[0].ids) if listed else (EOS, IDS)
    yield Split(
        schema=lambda: _TOKENS,
        batches=lambda: examples(folder, names.split_index(corpus, split)),
        tokens=Tokens(end, ids, lambda: _documents(folder, listed)),
        **said,
    )


def _texts(path: Path) -> Iterator[pa.Array]:
    """The rendered texts of a normalised file, without those that are empty."""
    rows = map(orjson.loads, path.open("rb"))
    for first in rows:
        taken = chain([first], islice(rows, _ROWS - 1))
        yield pa.array(filter(None, map(text_of, taken)), pa.string())


def _documents(folder: Path, listed: Sequence[Meta]) -> Iterator[tuple[Array, Array]]:
    """Tokens of whole examples, and where each begins; those of one rank after another."""
    for rank in sorted({each.rank for each in listed}):
        rest, meta = np.empty(0, np.int32), listed[0]
        for meta in (each for each in listed if each.rank == rank):
            ids = id_files.of_meta(folder, meta).reshape(-1)
            for first in range(0, used := meta.text_tokens + meta.eos_tokens, _PIECE):
                tokens = ids[first : min(first + _PIECE, used)]
                ends = np.flatnonzero(tokens == meta.eod) + 1
                last = int(ends[-1]) if len(ends) else 0
                if last:
                    yield np.concatenate([rest, tokens[:last]]), np.r_[0, ends + len(rest)]
                    rest = tokens[last:]
                else:
                    rest = np.concatenate([rest, tokens])
        if len(rest):
            rule = "has tokens behind its last document: build it again"
            raise BadInput(folder / meta.path, rule)


def examples(folder: Path, index: str) -> Batches:
    """Yield the examples of a split with their tokens, the last one included.

    folder: of all shards. index: path of the split's index in it.

    Raises BadInput where the index names tokens that its shards do not have.
    """
    mapped = lru_cache(8)(id_files.of_path)
    with opened(folder / index) as file:
        rows = enumerate(map(orjson.loads, file), start=1)
        while taken := list(islice(rows, _ROWS)):
            pieces, lengths = [], []
            for number, row in taken:
                length = 0
                for span in row["spans"]:
                    shard = mapped(folder / below_tokenized(span["shard_path"]))
                    at, start, end = span["sequence_index"], span["start"], span["end"]
                    if not (0 <= at < len(shard) and 0 <= start < end <= shard.shape[1]):
                        rule = "names tokens that the shard does not have: build it again"
                        raise BadInput(folder / index, rule, number)
                    pieces.append(shard[at, start:end].astype(np.int32, copy=False))
                    length += end - start
                lengths.append(length)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            ids = pa.ListArray.from_arrays(
                pa.array(offsets),
                pa.array(np.concatenate(pieces)),
                type=_TOKENS.field("input_ids").type,
            )
            texts = pa.array([row["example_id"] for _, row in taken])
            yield pa.RecordBatch.from_arrays([texts, ids], schema=_TOKENS)


def talks(asset: str, folder: Path) -> Iterator[Talks]:
    """Yield the splits of a shard of conversations, or those of the corpora of a folder."""
    if asset == "chat/conversations":
        yield from of_shard(shards(folder), read_record(folder / RECORD))
    elif asset == NORMALIZED:
        for partition in recorded(artifacts_in(folder)):
            record = read_record(folder / SHARED_RECORDS / f"{partition}.json")
            licence = corpus_of_record(record).licence.id
            corpus, split = partition.split("__")
            path = folder / names.normalized(corpus, split)
            yield Talks(split, partial(asked, path, corpus, split, licence), licence)


def asked(path: Path, corpus: str, split: str, licence: str) -> Iterator[Row | None]:
    """A question, and its answer with the thought before it; None without one of both."""
    numbers = Numbers(path)
    for place, record in records(path):
        question, thought, answer = (
            (record.get(name) or "").strip() for name in ("question", "cot", "answer")
        )
        if not question or not answer:
            yield None
            continue
        said = {"role": "assistant", "content": answer} | ({"thinking": thought} if thought else {})
        name = names.example_id(corpus, split, numbers.of(place))
        yield row(name, corpus, licence, [{"role": "user", "content": question}, said])
