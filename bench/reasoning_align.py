"""Alignment of reasoning corpora: records a minute and core, against the encoding of their texts.

Run from the checkout: python -m bench.reasoning_align [--records N] [--rounds N]. Normalises and
tokenises the shared corpora (GSM8K, FLAN CoT, MetaMath) and distinct text in the form of GSM8K,
FLAN CoT and OpenR1 up to N records (default 100,000). Prints for each split, and for all of them,
the records a minute of `align` in CPU seconds of one process, and the ratio of the CPU seconds to
those of encoding the rendered texts alone, in interleaved rounds; and for a corpus of --megabytes
of questions and answers without steps the CPU seconds of tokens and alignment over those of tokens
alone. Exit status 1 below 50,000 records a minute, above a ratio of 1.7, and of
1.15 for tokens with alignment.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import kit
from bench.distinct_text import Text
from gristmill.corpora.records import records
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import AlignConfig, NormalizeConfig, TokenizeConfig
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.encode import Encoded, encoder
from gristmill.vocabularies.pinned import GPT2, find

LEAST = 50_000
MOST = 1.7
MOST_TOGETHER = 1.15
BATCH = 1024

Split = tuple[str, str]


def write_drops(folder: Path, wanted: int) -> list[Split]:
    """Write drops of the shared corpora and of distinct text; return their splits."""
    splits, real = [], kit.real("reasoning")
    for corpus, split, sources in (
        ("gsm8k", "train", sorted((real / "gsm8k").glob("train.jsonl"))),
        ("gsm8k", "test", sorted((real / "gsm8k").glob("test.jsonl"))),
        ("cot_collection", "train", sorted((real / "flan_cot").glob("*.tsv"))),
        ("reasoning_traces", "train", sorted((real / "metamath").glob("*.jsonl"))),
    ):
        (folder / corpus).mkdir(parents=True, exist_ok=True)
        for number, source in enumerate(sources):
            name = f"{split}-{number:05d}-of-{len(sources):05d}{source.suffix}"
            shutil.copyfile(source, folder / corpus / name)
        splits.append((corpus, split))
    text = Text(1)
    for corpus, split, share, row in (
        ("openr1_math_220k", "train", 0.25, _marked_row),
        ("reasoning_traces", "validation", 0.75, _prose_row),
    ):
        (folder / corpus).mkdir(exist_ok=True)
        with (folder / corpus / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(int(max(0, wanted - 23_000) * share)):
                file.write(json.dumps(row(text, number)) + "\n")
        splits.append((corpus, split))
    return splits


def _marked_row(text: Text, number: int) -> dict[str, Any]:
    steps = [f"Step {place}: {_line(text, 160)}" for place in range(1, 6)]
    chain = "\n".join(steps)
    return {"prompt": _line(text, 200), "response": str(number), "chain_of_thought": chain}


def _prose_row(text: Text, number: int) -> dict[str, Any]:
    chain = " ".join(f"{_line(text, 80)}." for _ in range(5))
    return {"problem": _line(text, 200), "answer": str(number), "chain_of_thought": chain}


def _line(text: Text, length: int) -> str:
    return " ".join(text.body(length).split()) or "x"


def build_inputs(root: Path, splits: list[Split], vocabulary: Path) -> None:
    """Normalise and tokenise the splits below `root/raw` and `root/tokens`."""
    for corpus, split in splits:
        out = root / "one"
        normalize(root / "drops" / corpus, out, NormalizeConfig(bad_rows=10_000), split=split)
        jsonl = root / "raw" / corpus / f"{split}.jsonl"
        jsonl.parent.mkdir(parents=True, exist_ok=True)
        (out / corpus / jsonl.name).replace(jsonl)
        shutil.rmtree(out)
        tokenize(jsonl, out, TokenizeConfig(vocabulary))
        (root / "tokens" / corpus).mkdir(parents=True, exist_ok=True)
        (out / corpus / split).replace(root / "tokens" / corpus / split)
        shutil.rmtree(out)


def texts(path: Path) -> Iterator[list[str]]:
    """The rendered texts of a normalised file, some together."""
    batch = []
    for _, record in records(path):
        batch.append(text_of(record))
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def encode_all(encode: Callable[[list[str]], Encoded], batches: list[list[str]]) -> None:
    """Encode all texts, and keep nothing."""
    for batch in batches:
        encode(batch)


def alignment(given: kit.Given) -> None:
    """Measure `align` split by split, and the encoding of the same texts."""
    root, vocabulary = given.scratch, find(GPT2, kit.CHECKOUT / ".test-data")
    encode = encoder(GPT2, vocabulary).encode
    splits = write_drops(root / "drops", given.records)
    build_inputs(root, splits, vocabulary)
    best = dict.fromkeys(splits, float("inf"))
    rows: dict[Split, int] = {}
    ratios = []
    for number in range(given.rounds):
        aligning = encoding = 0.0
        for split in splits:
            jsonl = root / "raw" / split[0] / f"{split[1]}.jsonl"
            kept = [batch for batch in texts(jsonl) if batch]
            encoding += kit.spent(partial(encode_all, encode, kept))
            out = root / f"aligned-{number}-{'-'.join(split)}"

            def aligned(jsonl: Path = jsonl, out: Path = out, split: Split = split) -> None:
                summary = align(jsonl, root / "tokens", out, AlignConfig(vocabulary))
                rows[split] = summary.examples

            took = kit.spent(aligned)
            aligning += took
            best[split] = min(took, best[split])
            shutil.rmtree(out)
        ratios.append(aligning / encoding)
    for split in splits:
        kit.bounded(
            f"{'/'.join(split)}, {rows[split]:,} records: records a minute and core",
            rows[split] / best[split] * 60,
        )
    rate = sum(rows.values()) / sum(best.values()) * 60
    kit.bounded(f"all, {sum(rows.values()):,}: records a minute and core", rate, least=LEAST)
    kit.bounded("CPU seconds over those of encoding alone", median(ratios))


def without_steps(given: kit.Given) -> None:
    """Measure tokens with and without their alignment, of a corpus whose rows have no steps."""
    root, vocabulary = given.scratch, find(GPT2, kit.CHECKOUT / ".test-data")
    drop, text, size = root / "drops/own", Text(3), 0
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text('schema = 1\nquestion = "title"\nanswer = "text"\n')
    with (drop / "train.jsonl").open("w", encoding="utf-8") as file:
        while size < given.megabytes << 20:
            size += file.write(
                json.dumps({"title": _line(text, 60), "text": text.body(900)}) + "\n"
            )
    normalize(drop, root / "raw", NormalizeConfig(), split="train")
    jsonl, tokens, out = root / "raw/own/train.jsonl", root / "own-tokens", root / "own-aligned"

    def alone() -> None:
        shutil.rmtree(tokens, ignore_errors=True)
        tokenize(jsonl, tokens, TokenizeConfig(vocabulary))

    def both() -> None:
        alone()
        shutil.rmtree(out, ignore_errors=True)
        align(jsonl, tokens, out, AlignConfig(vocabulary))

    times = kit.in_turns(both, alone, rounds=given.rounds)
    what = "without steps: CPU seconds of tokens and alignment over those of tokens"
    kit.bounded(what, kit.ratio(*times), most=MOST_TOGETHER)


if __name__ == "__main__":
    kit.main(__doc__, alignment, without_steps, records=100_000, megabytes=17, rounds=3)
