"""ShardReader against a bare memory-map copy of the same sequences, in turns in one run.

Run from the checkout: python -m bench.reasoning_reader [--shards N]. Exit status 1 where a required
ratio is missed: batches in the order of the manifest, and shuffled, each at least 0.8 of the bytes
per CPU second of a loop that maps each shard and copies the same sequences; through a data loader
of torch at least 0.8 of that loop through the same data loader. Batches with steps are printed
without a limit.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from bench import kit
from gristmill.reasoning.format import align, names, pt_file
from gristmill.reasoning.format.shards import CONTRACT
from gristmill.reasoning.read.shard_reader import ShardReader
from tests.reasoning.supervised_folder import index_line, span

ROUNDS = 7
BATCH = 64
LEAST = 0.8
SEQ_LEN, SEQUENCES = 2048, 1024
EXAMPLE = 200
"""Tokens of an example, its end included."""
STEPS = [[50, 80], [80, 120], [120, 170], [170, 190]]
CORPUS, SPLIT = "cot_collection", "train"


def write_shards(root: Path, shards: int) -> None:
    """Write shards of the default size, with index and alignment."""
    entries, chance = [], np.random.default_rng(0)
    for number in range(shards):
        path = names.shard(CORPUS, SPLIT, number)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        ids = chance.integers(0, 50_256, (SEQUENCES, SEQ_LEN), np.int32)
        written = pt_file.write(root / path, ids.shape, [ids.tobytes()])
        values = (CORPUS, SPLIT, SEQ_LEN, SEQUENCES, ids.size, number, path, written.tensor_sha256)
        per_shard = SEQUENCES * SEQ_LEN
        ends = (number * per_shard // EXAMPLE, ((number + 1) * per_shard - 1) // EXAMPLE)
        entries.append(
            dict(zip(CONTRACT, values, strict=True))
            | {
                "first_example": names.example_id(CORPUS, SPLIT, ends[0]),
                "last_example": names.example_id(CORPUS, SPLIT, ends[1]),
            }
        )
    (root / names.MANIFEST).write_text(json.dumps(entries))
    aligned = root / "alignment" / names.alignment(CORPUS, SPLIT)
    aligned.parent.mkdir(parents=True)
    with (root / names.split_index(CORPUS, SPLIT)).open("wb") as rows, aligned.open("wb") as steps:
        for record in range(shards * SEQUENCES * SEQ_LEN // EXAMPLE):
            example = names.example_id(CORPUS, SPLIT, record)
            spans = _spans(record * EXAMPLE)
            first = tuple(spans[0].values())[:3]
            values = (example, *first, EXAMPLE - 1, EXAMPLE, spans, 0, "0" * 64)
            rows.write(index_line(values, {}))
            labels = [f"Step {n}" for n in range(1, len(STEPS) + 1)]
            row = align.AlignRow(example, *first[1::-1], STEPS, STEPS, labels, 1.0, "explicit")
            steps.write(align.line(row))


def _spans(place: int) -> list[dict[str, Any]]:
    """Where the tokens of the example at a place of the stream are."""
    spans, end = [], place + EXAMPLE
    while place < end:
        row, column = divmod(place, SEQ_LEN)
        stop = min(SEQ_LEN, column + end - place)
        path = f"reasoning/tokenized/gpt2/{names.shard(CORPUS, SPLIT, row // SEQUENCES)}"
        spans.append(span(path, row % SEQUENCES, column, stop))
        place += stop - column
    return spans


def copied(root: Path, rows: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Map each shard and yield copies of its rows, batch by batch."""
    current, tokens = "", np.empty((0, 0), np.int32)
    for path, chosen in rows:
        if path != current:
            offset, shape = pt_file.payload(root / path)
            tokens = np.memmap(root / path, "<i4", "r", offset, shape)
            current = path
        yield {"input_ids": np.array(tokens[chosen])}


class BareCopies(IterableDataset[dict[str, Any]]):
    """The sequences of `copied` as tensors.

    root: of the shards. reader: whose order it is.
    """

    def __init__(self, root: Path, reader: ShardReader) -> None:
        self.root, self.reader = root, reader

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in copied(self.root, in_order(self.reader)):
            yield {name: torch.from_numpy(column) for name, column in batch.items()}


def in_order(reader: ShardReader) -> Iterable[tuple[str, Any]]:
    """The batches of the manifest's order."""
    for shard in reader.shards:
        for first in range(0, shard.sequences, BATCH):
            yield shard.path, slice(first, first + BATCH)


def shuffled(reader: ShardReader) -> Iterable[tuple[str, Any]]:
    """The batches of a shuffled epoch; those that cross shards are of one here."""
    order = reader._order
    for shard in order.shards(0, 0):
        rows = order.sequences(shard, 0)
        assert rows is not None
        for first in range(0, len(rows), BATCH):
            yield reader.shards[shard].path, rows[first : first + BATCH]


def read(batches: Iterable[dict[str, Any]]) -> float:
    """Go through batches; return the GB of their tokens."""
    return float(sum(batch["input_ids"].nbytes for batch in batches) / 1e9)


def epoch(reader: ShardReader) -> Iterable[dict[str, Any]]:
    """The batches of the first epoch."""
    reader.start_epoch(0)
    return reader.batches(BATCH)


def compare(what: str, ours: kit.Work, bare: kit.Work, least: float | None = LEAST) -> None:
    """Compare a reader with a bare copy."""
    kit.compare(what, ours, bare, "GB per CPU second", least=least, rounds=ROUNDS)


def batches(given: kit.Given) -> None:
    root = given.scratch
    write_shards(root, given.shards)
    plain, random = ShardReader(root), ShardReader(root, seed=1)
    stepped = ShardReader(root, steps=root / "alignment")
    loader = DataLoader(ShardReader(root).as_torch(BATCH), batch_size=None)
    bare_loader = DataLoader(BareCopies(root, plain), batch_size=None)

    def bare() -> float:
        return read(copied(root, in_order(plain)))

    compare("in order", lambda: read(epoch(plain)), bare)
    compare("shuffled", lambda: read(epoch(random)), lambda: read(copied(root, shuffled(random))))
    compare("data loader", lambda: read(loader), lambda: read(bare_loader))
    compare("with steps", lambda: read(epoch(stepped)), bare, None)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch warns about itself
    kit.main(__doc__, batches, shards=16)
