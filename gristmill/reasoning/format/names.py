"""Names of files and folders, and ids of examples. Source: `docs/formats/reasoning.md#layout`."""

from __future__ import annotations

from typing import Final

NORMALIZED: Final = "reasoning/raw"
"""Folder of the normalised files below the data root, shared by the partitions."""
TOKENIZED: Final = "reasoning/tokenized/gpt2"
"""Folder of the token shards below the data root, shared by the partitions."""
TOKENS: Final = "reasoning/tokens"
"""Folder of the datasets of other tokenizers below the data root, a folder a dataset."""
ALIGNMENT: Final = "reasoning/alignment"
"""Folder of the alignments below the data root, shared by the partitions."""
SPANS: Final = "reasoning/spans"
"""Folder of the spans of arithmetic below the data root, shared by the partitions."""
EXPORTS: Final = "reasoning/exports"
"""Folder of token datasets for other programs below the data root, a folder a dataset."""
RECIPES: Final = "reasoning/recipes"
"""The inbox of the recipes of token datasets."""
REPORTS: Final = "reasoning/reports"
"""Folder of the daily reports below the data root, shared by the days."""

MANIFEST: Final = "manifest.json"
INDEX: Final = "index.jsonl"
MANIFEST_RECORD: Final = "manifest"
"""Partition of the records of both manifests, in the folders that they describe."""


def normalized(corpus: str, split: str) -> str:
    """Path of a normalised file below `NORMALIZED`."""
    return f"{corpus}/{split}.jsonl"


def numbers(corpus: str, split: str) -> str:
    """Path below `NORMALIZED` of the numbers of a split, see `format.index.Numbers`."""
    return f"{corpus}/{split}.numbers.npy"


def origins(partition: str) -> str:
    """Path of the origins of a split below `NORMALIZED`."""
    return f"origins/{partition}.npy"


def rejected(partition: str) -> str:
    """Path of the refused records of a split below `NORMALIZED`."""
    return f"rejected/{partition}.jsonl"


def shard(corpus: str, split: str, index: int, suffix: str = ".pt") -> str:
    """Path of a shard below the folder of all shards; `index` from 0."""
    return f"{corpus}/{split}/shard_{index:05d}{suffix}"


def meta(shard_path: str) -> str:
    """Path of the meta file of a shard."""
    return shard_path.rpartition(".")[0] + ".meta.json"


def split_index(corpus: str, split: str) -> str:
    """Path of the index of one split below `TOKENIZED`."""
    return f"{corpus}/{split}/{INDEX}"


def alignment(corpus: str, split: str) -> str:
    """Path of an alignment below `ALIGNMENT`."""
    return f"{corpus}/{split}.align.jsonl"


def spans(corpus: str, split: str) -> str:
    """Path of the spans of a split below `SPANS`."""
    return f"{corpus}/{split}.spans.jsonl"


def controls(corpus: str, split: str) -> str:
    """Path of the control pairs of a split below `SPANS`."""
    return f"{corpus}/{split}.controls.json"


def audits(partition: str) -> str:
    """Path of the audits of a partition below the inbox `reasoning`."""
    return f"audits/{partition}.jsonl"


def example_id(corpus: str, split: str, record: int) -> str:
    """Id of a record of a normalised file; `record`: its number, see `format.index.Numbers`."""
    return f"{corpus}_{split}_{record:06d}"
