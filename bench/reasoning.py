"""Reasoning: our whole build against the limit that one cannot do without.

Normalises GSM8K, FLAN CoT, MetaMath and distinct text, publishes their shards, index and manifest,
laws and hashes included, beside a bare loop of tiktoken's encode_ordinary over the same rendered
texts, with its own pattern; with either engine. Two workers beside two independent processes; the
peak memory at two sizes. CPU seconds of this process and its children; medians of interleaved
rounds. Ends with status 1 where a floor is missed. Needs the real corpora beside the checkout
(GRISTMILL_REAL_DATA) and a vocabulary.

    python -m bench.reasoning [--records 100000] [--rounds 3] [--only build]
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import orjson

from bench import kit, plain_tiktoken
from bench.reasoning_build import lines, normalized, published, write_drops
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.engine import AUTO, TIKTOKEN
from gristmill.vocabularies.pinned import GPT2, find

_FLOORS = {TIKTOKEN: 0.9, AUTO: 1.5}
# What four times the text may cost in memory, the engine's bounded growth included.
_GROWTH = 1.2


def build(given: kit.Given) -> None:
    """Compare our published build with encode_ordinary, all in one process."""
    root, vocabulary = given.scratch / "build", find(GPT2, kit.DATA)
    partitions = write_drops(root, given.records)
    took = kit.spent(lambda: normalized(root, partitions), kit.cpu_seconds)
    texts = [text_of(orjson.loads(line)) for line in lines(root, partitions)]
    print(f"{len(texts):,} records")
    print(f"raw files to published normalised files: {took / len(texts) * 1e6:.1f} us a record")
    for engine, floor in _FLOORS.items():
        build = partial(published, root, partitions, vocabulary, engine=engine)
        what = f"build and encode_ordinary, engine {engine}"
        plain_tiktoken.compare(what, build, GPT2, texts, given, floor)


def two(given: kit.Given) -> None:
    """Compare two workers on one split with two processes, each on half of as many records.

    The splits are so large that the start of a process takes a few per cent.
    """
    roots = [given.scratch / f"two_{name}" for name in ("half_0", "half_1", "whole")]
    for root, size, seed in zip(roots, (2, 2, 4), (1, 2, 1), strict=True):
        normalized(root, write_drops(root, size * given.records, seed, real=False))
    kit.two_workers([(root, 1) for root in roots[:2]], (roots[2], 2), given.rounds)


def memory(given: kit.Given) -> None:
    """Compare the peak memory of one build at two sizes."""

    def peak(size: int) -> int:
        root = given.scratch / f"memory_{size}"
        normalized(root, write_drops(root, size, real=False))
        found = kit.finish(kit.start(root, 1))
        shutil.rmtree(root)
        return int(found)

    size = given.records // 2
    kit.grows(peak, size, 4 * size, "distinct records", most=_GROWTH)


def child(root: str, workers: str) -> int:
    """A build in a process of its own; its peak memory."""
    drops = sorted((Path(root) / "drops" / "reasoning").iterdir())
    partitions = [f"{drop.name}__train" for drop in drops]
    published(Path(root), partitions, find(GPT2, kit.DATA), workers=int(workers))
    return kit.peak_bytes()


if __name__ == "__main__":
    kit.main(__doc__, build, two, memory, child=child, records=100_000, rounds=3)
