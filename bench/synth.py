"""SYNTH: our whole build against the limits that one cannot do without.

Builds Harmony shards, Parquet to published datasets, laws and hashes included, beside
tiktoken's encode_ordinary over the same bodies: the 1,000 real conversations once, with
an engine that knows no word yet, and a longer text that no row repeats. Beside
openai-harmony with Megatron's IndexedDatasetBuilder, and the original's way with it; two
workers beside two independent processes; and the peak memory at two sizes. CPU seconds of
this process and its children; medians of interleaved rounds. Ends with status 1 where a
floor is missed. Needs the real conversations beside the checkout (GRISTMILL_REAL_DATA)
and a vocabulary.

    python -m bench.synth [--rows 8000] [--rounds 5] [--only cold]
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench import kit, plain_tiktoken
from bench.synth_build import NAME, forget, published, write_distinct, write_real
from gristmill.synth.render.harmony import encoding, render
from gristmill.vocabularies.pinned import O200K, find

_THEIR_ROWS = 500
# What four times the text may cost in memory, the engine's bounded growth included.
_GROWTH = 1.2


def bodies_of(shard: Path) -> list[str]:
    """The texts of the users and the assistants."""
    return [
        message["content"][0]["text"]
        for text in pq.read_table(shard).column("messages_json").to_pylist()
        for message in json.loads(text)["messages"][2:]
    ]


def against_encoding(what: str, shard: Path, given: kit.Given, floor: float) -> None:
    """Compare our published build with encode_ordinary, both in one process.

    Both vocabularies are loaded before, as they are once for many shards.
    """
    vocabulary, root = find(O200K, kit.DATA), given.scratch / "root"
    plain_tiktoken.compare(
        f"build and encode_ordinary, {what}",
        partial(published, shard, root, vocabulary),
        O200K,
        bodies_of(shard),
        given,
        floor,
        before=partial(forget, vocabulary, root),
    )


def cold(given: kit.Given) -> None:
    """The real conversations, by an engine that knows no word yet."""
    write_real(given.scratch / NAME)
    against_encoding("1,000 real conversations, cold", given.scratch / NAME, given, 1.5)


def distinct(given: kit.Given) -> Path:
    """A shard of text that no row repeats."""
    shard = given.scratch / "long" / NAME
    if not shard.exists():
        shard.parent.mkdir()
        write_distinct(shard, given.rows)
    return shard


def long(given: kit.Given) -> None:
    """A longer text."""
    against_encoding("distinct text", distinct(given), given, 2.75)


def of_openai(small: Path, size: float, vocabulary: Path) -> tuple[kit.Work, kit.Work]:
    """openai-harmony with IndexedDatasetBuilder on a small shard, and the original's way.

    Theirs renders each conversation once and writes the tokens alone. The original's way
    renders it whole and again message by message, and writes three datasets.

    size: what both return.
    """
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    from openai_harmony import Conversation, RenderConversationConfig

    renderer, scratch = encoding(vocabulary), small.parent
    config = RenderConversationConfig(auto_drop_analysis=False)

    def theirs() -> float:
        builder = IndexedDatasetBuilder(str(scratch / "theirs.bin"), dtype=np.int32)
        for text in pq.read_table(small).column("messages_json").to_pylist():
            tokens = renderer.render_conversation_for_training(Conversation.from_json(text), config)
            tokens.append(199999)
            # An array: the builder takes it four times as fast as a list or a tensor of one.
            builder.add_document(np.array(tokens, dtype=np.int32), [len(tokens)])
        builder.finalize(str(scratch / "theirs.idx"))
        return size

    def original() -> float:
        builders = {
            name: IndexedDatasetBuilder(str(scratch / f"{name}.bin"), dtype=dtype)
            for name, dtype in (("t", np.int32), ("m", np.uint8), ("s", np.uint8))
        }
        for text in pq.read_table(small).column("messages_json").to_pylist():
            rendered = render(json.loads(text)["messages"], renderer)
            lengths, spans = [*rendered.lengths, 1], [*rendered.spans, 0]
            span = [code for code, n in zip(spans, lengths, strict=True) for _ in range(n)]
            span = [*span[1:], 0]
            lists = {"t": list(rendered.tokens), "m": [int(c != 0) for c in span], "s": span}
            for name, values in lists.items():
                builders[name].add_item(torch.tensor(values))
                builders[name].end_document()
        for name, builder in builders.items():
            builder.finalize(str(scratch / f"{name}.idx"))
        return size

    return theirs, original


def harmony(given: kit.Given) -> None:
    """Compare our published build with openai-harmony and IndexedDatasetBuilder.

    They take the first rows; the rates are in characters.
    """
    shard, vocabulary, root = distinct(given), find(O200K, kit.DATA), given.scratch / "root"
    table, small = pq.read_table(shard), given.scratch / "small.parquet"
    texts = table.column("messages_json").to_pylist()
    whole, part = (sum(map(len, rows)) / 1e6 for rows in (texts, texts[:_THEIR_ROWS]))
    pq.write_table(table.slice(0, _THEIR_ROWS), small, compression="zstd")
    theirs, original = of_openai(small, part, vocabulary)

    def ours() -> float:
        published(shard, root, vocabulary)
        return whole

    for what, plain, floor in (
        ("openai-harmony + IndexedDatasetBuilder", theirs, 8),
        ("the original's way, a document at a time", original, None),
    ):
        kit.compare(
            *(f"build and {what}", ours, plain, "M characters per CPU second"),
            least=floor,
            rounds=given.rounds,
            clock=kit.cpu_seconds,
            around=floor is not None,
            before=lambda: forget(vocabulary, root),
        )


def two(given: kit.Given) -> None:
    """Compare two workers on one shard with two processes, each on half of as many rows.

    So every process meets as many words as another one, and the shards are so large that the start
    of a process takes a few per cent.
    """
    half, whole = (given.scratch / f"two_{part}" / NAME for part in ("half", "whole"))
    for shard, size in ((half, 15 * given.rows), (whole, 30 * given.rows)):
        shard.parent.mkdir()
        write_distinct(shard, size)
    roots = [given.scratch / f"process_{number}" for number in range(2)]
    halves = [(half, root, 1) for root in roots]
    kit.two_workers(halves, (whole, roots[0], 2), given.rounds, made=roots)


def memory(given: kit.Given) -> None:
    """Compare the peak memory of one build at two sizes."""

    def peak(size: int) -> int:
        shard = given.scratch / f"{size}" / NAME
        shard.parent.mkdir()
        write_distinct(shard, size)
        return int(kit.finish(kit.start(shard, given.scratch / f"peak_{size}", 1)))

    kit.grows(peak, given.rows, 4 * given.rows, "distinct rows", most=_GROWTH)


def child(shard: str, root: str, workers: str) -> int:
    """A build in a process of its own; its peak memory."""
    Path(root).mkdir()
    published(Path(shard), Path(root), find(O200K, kit.DATA), int(workers))
    return kit.peak_bytes()


if __name__ == "__main__":
    kit.main(__doc__, cold, long, harmony, two, memory, child=child, rows=8_000, rounds=5)
