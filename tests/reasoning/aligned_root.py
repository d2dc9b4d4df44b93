"""A data root with one split of GSM8K's form: normalised, tokenised, aligned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gristmill.reasoning.builders.align import align
from gristmill.reasoning.config import AlignConfig, TokenizeConfig
from gristmill.reasoning.format import names
from tests.reasoning.published_root import PARTITION, published, write_drop

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
    root: Path, vocabulary: Path, records: Iterable[Mapping[str, Any]], **changes: Any
) -> Path:
    """Publish shards and manifest of the records, and write their alignment without a record."""
    write_drop(root, records)
    published(root, TokenizeConfig(vocabulary), **changes)
    jsonl = root / names.NORMALIZED / names.normalized(CORPUS, SPLIT)
    align(jsonl, root / names.TOKENIZED, root / names.ALIGNMENT, AlignConfig(vocabulary))
    return root
