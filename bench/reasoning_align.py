"""Alignment of reasoning corpora: records a minute and core, against the encoding of their texts.

Run from the checkout: python -m bench.reasoning_align [--records N] [--rounds N]. Normalises and
tokenises the shared corpora (GSM8K, FLAN CoT, MetaMath) and distinct text in the form of GSM8K,
FLAN CoT and OpenR1 up to N records (default 100,000). Prints for each split, and for all of them,
the records a minute of `align` in CPU seconds of one process, and the ratio of the CPU seconds to
those of encoding the rendered texts alone, in interleaved rounds. Exit status 1 below 50,000
records a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.distinct_text import Text
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import AlignConfig, NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format.records import records
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.encode import Encoded, encoder
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2

HERE = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", HERE.parent / "shared" / "data")) / "reasoning"
LEAST = 50_000
BATCH = 1024

Split = tuple[str, str]


def write_drops(folder: Path, wanted: int) -> list[Split]:
    """Write drops of the shared corpora and of distinct text; return their splits."""
    splits = []
    for corpus, split, sources in (
        ("gsm8k", "train", sorted((REAL / "gsm8k").glob("train.jsonl"))),
        ("gsm8k", "test", sorted((REAL / "gsm8k").glob("test.jsonl"))),
        ("cot_collection", "train", sorted((REAL / "flan_cot").glob("*.tsv"))),
        ("reasoning_traces", "train", sorted((REAL / "metamath").glob("*.jsonl"))),
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


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process that `work` takes, and what it returns."""
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    vocabulary = find(GPT2, HERE / ".test-data")
    encode = encoder(GPT2, vocabulary).encode
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        splits = write_drops(root / "drops", given.records)
        build_inputs(root, splits, vocabulary)
        best: dict[Split, float] = {}
        rows: dict[Split, int] = {}
        ratios = []
        for number in range(given.rounds):
            aligning = encoding = 0.0
            for split in splits:
                jsonl = root / "raw" / split[0] / f"{split[1]}.jsonl"
                kept = [batch for batch in texts(jsonl) if batch]
                encoding += cpu(partial(encode_all, encode, kept))[0]
                out = root / f"aligned-{number}-{'-'.join(split)}"
                config = AlignConfig(vocabulary)
                took, summary = cpu(partial(align, jsonl, root / "tokens", out, config))
                aligning += took
                best[split] = min(took, best.get(split, took))
                rows[split] = summary.examples
                shutil.rmtree(out)
            ratios.append(aligning / encoding)
        for split in splits:
            rate = rows[split] / best[split] * 60
            print(
                f"{'/'.join(split):28} {rows[split]:>8,} records {rate:>12,.0f} a minute and core"
            )
        rate = sum(rows.values()) / sum(best.values()) * 60
        print(f"{'all':28} {sum(rows.values()):>8,} records {rate:>12,.0f} a minute and core")
        print(f"CPU seconds over those of encoding alone: {statistics.median(ratios):.2f}")
    return 0 if rate >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
