"""Records, token shards and alignments as other programs read them, one table a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from gristmill.contract import BadInput
from gristmill.exports.table import Batches, Split, lines, list_of, required
from gristmill.families import columns_of
from gristmill.provenance import SHARED_RECORDS, read_record
from gristmill.reasoning.format import foreign_pt, names
from gristmill.reasoning.format.index import below_tokenized
from gristmill.reasoning.format.published import ALIGNMENT, NORMALIZED, SHARDS, corpus_of, recorded

_FILES: Final[dict[str, Callable[[str, str], str]]] = {
    NORMALIZED: names.normalized,
    SHARDS: names.split_index,
    ALIGNMENT: names.alignment,
}
_TOKENS: Final = required({"example_id": pa.string(), "input_ids": list_of(pa.int32())})
_ROWS: Final = 1 << 13


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the splits of the corpora. asset: its key. folder: that its partitions share."""
    if asset not in _FILES:
        return
    for partition in recorded(folder):
        record = read_record(folder / SHARED_RECORDS / f"{partition}.json")
        root = folder.absolute().parents[len(Path(record.artifact).parts) - 1]
        licence = corpus_of(root, partition).licence.id
        corpus, split = partition.split("__")
        file = _FILES[asset](corpus, split)
        said: dict[str, Any] = {
            "name": split,
            "table": corpus,
            "partition": partition,
            "licence": "" if licence == "unknown" else licence.lower(),
        }
        if asset == SHARDS:
            yield Split(
                schema=lambda: _TOKENS,
                batches=lambda file=file: examples(folder, file),  # type: ignore[misc]
                **said,
            )
        else:
            yield lines(folder / file, columns_of(asset), file=file, **said)


def examples(folder: Path, index: str) -> Batches:
    """Yield the examples of a split with their tokens, the last one included.

    folder: of all shards. index: path of the split's index in it.

    Raises BadInput where the index names tokens that its shards do not have.
    """
    mapped = lru_cache(8)(foreign_pt.mapped)
    with (folder / index).open("rb") as file:
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
                    pieces.append(shard[at, start:end])
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
