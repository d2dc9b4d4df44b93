"""What the reasoning benchmarks share: raw corpora, and one published build of them all."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench import kit, publishing
from bench.distinct_text import Text
from gristmill.contract import Summary, Violation
from gristmill.provenance import Input, raw_inputs, read_record, record_path
from gristmill.publish.build import Attempt
from gristmill.reasoning.builders.manifest import write_manifest
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.laws.shards import manifest_laws, shard_laws
from gristmill.reasoning.laws.texts import normalized_laws

DISTINCT = "openr1_math_220k"
"""Corpus whose place the distinct text takes."""
_REAL_FILES = {
    "gsm8k": ("gsm8k/train.jsonl", "gsm8k/test.jsonl"),
    "cot_collection": tuple(
        f"flan_cot/{name}_train.tsv" for name in ("aqua", "ecqa", "qasc", "strategyqa")
    ),
    "reasoning_traces": ("metamath/GSM8K_Backward.jsonl",),
}
# Median and spread of the lengths of distinct bodies, in characters: question, reasoning, answer.
_LENGTHS = ((250, 0.6), (500, 0.8), (60, 0.8))


def write_drops(root: Path, records: int, seed: int = 1, real: bool = True) -> list[str]:
    """The real files once, and records of text that no other repeats; the partitions."""
    partitions, number = [], 0
    for corpus, files in _REAL_FILES.items() if real else ():
        drop = root / "drops" / "reasoning" / corpus
        drop.mkdir(parents=True)
        for name in files:
            file = kit.real("reasoning") / name
            number += sum(1 for _ in file.open("rb"))
            split = "test" if file.stem == "test" else "train"
            named = file.name if split in file.name else f"{split}-{file.name}"
            shutil.copyfile(file, drop / named)
            partitions.append(f"{corpus}__{split}")
    write_distinct(root / "drops" / "reasoning" / DISTINCT, max(0, records - number), seed)
    return [*dict.fromkeys(partitions), f"{DISTINCT}__train"]


def write_distinct(drop: Path, records: int, seed: int) -> None:
    drop.mkdir(parents=True)
    text, dice = Text(seed), random.Random(seed)
    keys = ("prompt", "chain_of_thought", "response")
    with (drop / "train.jsonl").open("w") as file:
        for _ in range(records):
            bodies = [
                text.body(max(10, int(dice.lognormvariate(math.log(median), spread))))
                for median, spread in _LENGTHS
            ]
            file.write(json.dumps(dict(zip(keys, bodies, strict=True))) + "\n")


def normalized(root: Path, partitions: list[str]) -> None:
    """Publish the normalised files."""
    config = NormalizeConfig()
    for partition in partitions:
        corpus, split = partition.split("__")
        drop = root / "drops" / "reasoning" / corpus

        def make(attempt: Attempt, drop: Path = drop, split: str = split) -> Summary:
            return normalize(drop, attempt.out, config, split=split)

        def laws(out: Path, partition: str = partition) -> Iterator[Violation]:
            return normalized_laws(out, partition)

        files = sorted(drop.iterdir())
        inputs = raw_inputs.raw_inputs(root, files, "reasoning/raw", corpus, known={})
        publishing.published(
            *(root, "reasoning/normalized", partition, config, make, inputs),
            artifact=names.NORMALIZED,
            laws=laws,
        )


def published(
    root: Path, partitions: list[str], vocabulary: Path, *, workers: int = 1, engine: str = "auto"
) -> int:
    """Publish shards, index and manifest from normalised files; the number of text tokens."""
    shutil.rmtree(root / "reasoning" / "tokenized", ignore_errors=True)
    config = TokenizeConfig(vocabulary, workers=workers, engine=engine)
    tokenized = root / names.TOKENIZED
    tokens = 0
    for partition in partitions:
        corpus, split = partition.split("__")
        jsonl = root / names.NORMALIZED / names.normalized(corpus, split)

        def make(attempt: Attempt, jsonl: Path = jsonl) -> Summary:
            return tokenize(jsonl, attempt.out, config, attempt.parts)

        def laws(out: Path, partition: str = partition) -> Iterator[Violation]:
            return shard_laws(out, partition, sampled=True)

        inputs = [_input(root, names.NORMALIZED, partition)]
        done = publishing.published(
            *(root, "reasoning/gpt2_shards", partition, config, make, inputs),
            artifact=names.TOKENIZED,
            laws=laws,
        )
        tokens += int(done.record.counts["text_tokens"])
    publishing.published(
        *(root, "reasoning/manifest", names.MANIFEST_RECORD, NormalizeConfig()),
        lambda attempt: write_manifest(tokenized, attempt.out, partitions),
        [_input(root, names.TOKENIZED, each) for each in partitions],
        artifact=names.TOKENIZED,
        laws=lambda out: manifest_laws(out, names.MANIFEST_RECORD, tokenized),
    )
    return tokens


def lines(root: Path, partitions: list[str]) -> Iterator[bytes]:
    """The lines of all normalised files."""
    for partition in partitions:
        corpus, split = partition.split("__")
        with (root / names.NORMALIZED / names.normalized(corpus, split)).open("rb") as file:
            yield from file


def _input(root: Path, folder: str, partition: str) -> Input:
    record = read_record(record_path(root / folder, partition, shared=True))
    return Input(
        asset=record.asset, partition=partition, path=folder, data_version=record.data_version
    )
