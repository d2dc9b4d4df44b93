"""ShardReader against a bare memory-map copy of the same sequences, in turns in one run.

Run from the checkout: python -m bench.reasoning_reader [--shards N]. Exit status 1 where a required
ratio is missed: batches in the order of the manifest, and shuffled, each at least 0.8 of the bytes
per CPU second of a loop that maps each shard and copies the same sequences; through a data loader
of torch at least 0.8 of that loop through the same data loader. Batches with steps are printed
without a limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from gristmill.reasoning.format import align, index, names, pt_file
from gristmill.reasoning.format.shards import CONTRACT
from gristmill.reasoning.read.shard_reader import ShardReader

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
            rows.write(
                index.line(
                    index.Row(example, *spans[0][:3], EXAMPLE - 1, EXAMPLE, spans, 0, "0" * 64)
                )
            )
            labels = [f"Step {n}" for n in range(1, len(STEPS) + 1)]
            row = align.AlignRow(example, *spans[0][1::-1], STEPS, STEPS, labels, 1.0, "explicit")
            steps.write(align.line(row))


def _spans(place: int) -> tuple[index.Span, ...]:
    """Where the tokens of the example at a place of the stream are."""
    spans, end = [], place + EXAMPLE
    while place < end:
        row, column = divmod(place, SEQ_LEN)
        stop = min(SEQ_LEN, column + end - place)
        path = f"reasoning/tokenized/gpt2/{names.shard(CORPUS, SPLIT, row // SEQUENCES)}"
        spans.append(index.Span(path, row % SEQUENCES, column, stop))
        place += stop - column
    return tuple(spans)


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


def read(batches: Iterable[dict[str, Any]]) -> int:
    """Go through batches; return the bytes of their tokens."""
    return sum(batch["input_ids"].nbytes for batch in batches)


def epoch(reader: ShardReader) -> Iterable[dict[str, Any]]:
    """The batches of the first epoch."""
    reader.start_epoch(0)
    return reader.batches(BATCH)


def rate(work: Callable[[], int]) -> float:
    """Bytes per CPU second."""
    start = time.process_time()
    done = work()
    return done / (time.process_time() - start)


def compare(name: str, ours: Callable[[], int], bare: Callable[[], int], least: float) -> bool:
    """Measure both in turns; print the medians and the median ratio of the rounds."""
    ours(), bare()
    pairs = [(rate(ours), rate(bare)) for _ in range(ROUNDS)]
    ratio = statistics.median(a / b for a, b in pairs)
    good = ratio >= least
    asked = f" (required {least:g}) {'ok' if good else 'MISSED'}" if least else ""
    own, other = (statistics.median(column) / 1e9 for column in zip(*pairs, strict=True))
    print(f"{name}: {own:.2f} GB per CPU second, bare copy {other:.2f}, ratio {ratio:.2f}{asked}")
    return good


def main() -> None:
    """All of it; see the module's head."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=16, help="shards of 8 MiB")
    shards = parser.parse_args().shards
    warnings.simplefilter("ignore")  # torch warns about itself
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        write_shards(root, shards)
        plain, random = ShardReader(root), ShardReader(root, seed=1)
        stepped = ShardReader(root, steps=root / "alignment")
        loader = DataLoader(ShardReader(root).as_torch(BATCH), batch_size=None)
        bare_loader = DataLoader(BareCopies(root, plain), batch_size=None)
        bare = lambda: read(copied(root, in_order(plain)))  # noqa: E731
        good = [
            compare("in order", lambda: read(epoch(plain)), bare, LEAST),
            compare(
                *("shuffled", lambda: read(epoch(random))),
                *(lambda: read(copied(root, shuffled(random))), LEAST),
            ),
            compare("data loader", lambda: read(loader), lambda: read(bare_loader), LEAST),
            compare("with steps", lambda: read(epoch(stepped)), bare, 0),
        ]
    if not all(good):
        sys.exit("missed a required ratio")


if __name__ == "__main__":
    main()
