"""What is in a folder of this family, for `gristmill verify` of a folder without a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.reading.reader import Ranges, counted, file_facts
from gristmill.synth.builders import harmony_shard
from gristmill.synth.format import aligned, indexed
from gristmill.synth.laws.shards import SPLITS
from gristmill.synth.read import distill

_VALUES = 1 << 22


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the shards with their documents, types and ranges, a line each.

    asset: key of an asset of this family, as `synth/kd_shards`.
    folder: of it.

    Raises BadInput where a file cannot be read.
    """
    if asset.startswith("synth/harmony"):
        yield from _parquet(folder)
    elif asset.endswith("/distill"):
        for split, name in distill.SPLITS.items():
            rows, lengths = 0, Ranges()
            for batch in distill.batches(folder, split):
                rows += len(batch)
                lengths.add(np.asarray(batch.column("input_ids").value_lengths()), "lengths")
            yield "; ".join([f"{name}: {counted(rows, 'row')}", *lengths.lines()])
    else:
        for split in SPLITS:
            for index in sorted((folder / split).glob("shard_*_tokens.idx")):
                yield from _datasets(index.with_suffix(""), split)
    yield from file_facts(folder, ("manifest.json", "metadata.json"))


def _parquet(folder: Path) -> Iterator[str]:
    for shard in harmony_shard.shards(folder).values():
        with harmony_shard.open_shard(shard) as file:
            columns = ", ".join(f"{field.name} {field.type}" for field in file.schema)
            yield f"{shard.name}: {counted(file.rows, 'row')}; {columns}"


def _datasets(tokens: Path, split: str) -> Iterator[str]:
    for name in aligned.DTYPES:
        prefix = aligned.sibling(tokens, name)
        found, ranges = indexed.read(prefix), Ranges()
        lengths = Ranges()
        for batch in found.length_batches():
            lengths.add(batch, "lengths")
        for begin in range(0, found.size, _VALUES):
            ranges.add(found.load(begin, min(begin + _VALUES, found.size)), "values")
        parts = [counted(len(found), "document"), *lengths.lines(), *ranges.lines()]
        yield f"{split}/{prefix.name}: {'; '.join(parts)}"
