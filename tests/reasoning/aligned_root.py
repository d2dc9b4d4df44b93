"""A data root with one split of GSM8K's form: normalised, tokenised, aligned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.reasoning.published_root import PARTITION, built, publish_root

CORPUS, SPLIT = PARTITION.split("__")


def worked(count: int) -> list[dict[str, Any]]:
    """Records of a few steps each, all different."""
    return [
        {
            "question": f"Ann has {n} pens and buys {n + 2}. “How many” now?",
            "answer": f"She had {n}.\nShe has {n}+{n + 2}=<<{n}+{n + 2}={2 * n + 2}>>{2 * n + 2}."
            f"\n#### {2 * n + 2}",
        }
        for n in range(count)
    ]


def aligned_root(
    root: Path, vocabulary: Path, records: Iterable[Mapping[str, Any]], **chosen: object
) -> Path:
    """Publish shards, manifest and alignment of the records."""
    publish_root(root, vocabulary, records, **chosen)
    built(root, "reasoning/alignment", PARTITION)
    return root
