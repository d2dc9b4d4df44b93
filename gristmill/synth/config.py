"""What can be chosen in the SYNTH family: one config for each builder.

CODE_VERSION of a config is raised when its builder makes other rows or files of
the same input and config. It stands here, apart from the builders, so that
whoever only asks for it loads neither NumPy nor Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from gristmill.synth.raw import files

METADATA_FIELDS: Final = (
    "synth_id",
    "language",
    "exercise",
    "model",
    "constraints",
    "seed_license",
    "query_seed_url",
)
EFFORTS: Final = ("low", "medium", "high")
_DEVELOPER: Final = (
    "Follow the user's request. When you provide an answer, produce both:\n"
    "- reasoning in the analysis channel\n"
    "- the user-facing answer in the final channel"
)


@dataclass(frozen=True)
class HarmonyConfig:
    """What surrounds the query, the reasoning and the answer of a raw row.

    developer: text of the developer message, None for no such message.
    max_rows: raw rows to read for this shard, the skipped ones included; -1: all.
    rows_per_group: rows in one row group of the output.
    """

    CODE_VERSION: ClassVar = "1"

    model_identity: str = "You are a helpful large language model."
    reasoning_effort: str = "high"
    conversation_start_date: str = "2026-01-01"
    knowledge_cutoff: str = "2024-06"
    developer: str | None = _DEVELOPER
    metadata_fields: tuple[str, ...] = METADATA_FIELDS
    num_shards: int = files.SHARDS
    max_rows: int = -1
    rows_per_group: int = 2000
    dataset: str = field(default=files.DATASET, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        if self.reasoning_effort not in EFFORTS:
            raise ValueError(f"reasoning_effort {self.reasoning_effort!r}: one of {EFFORTS}")
        if self.num_shards < 1 or self.rows_per_group < 1:
            raise ValueError("num_shards and rows_per_group must be positive")
        if unknown := set(self.metadata_fields) - set(files.COLUMNS):
            raise ValueError(f"metadata_fields: SYNTH has no column {sorted(unknown)}")
        if len(set(self.metadata_fields)) < len(self.metadata_fields):
            raise ValueError("metadata_fields: a column stands there twice")
        if "synth_id" not in self.metadata_fields:
            raise ValueError("metadata_fields: synth_id must be among them, the split needs it")


@dataclass(frozen=True)
class KDConfig:
    """How a Harmony shard becomes Megatron datasets.

    vocabulary: the o200k_base.tiktoken file; its sha256 is pinned, its place is free.
    valid_fraction: share of synth_ids held out, 0 to 1.
    max_rows, max_tokens: caps on this shard, over both splits, tested before each
        row; -1 for none. A capped build runs in one process.
    bad_rows: rows that may be set aside into `quarantine/`; 0: the first one fails.
    workers: processes; 0 or 1 for this one alone.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Path = field(metadata={"affects_output": False})
    valid_fraction: float = 0.001
    max_rows: int = -1
    max_tokens: int = -1
    bad_rows: int = 0
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        if not 0 <= self.valid_fraction <= 1:
            raise ValueError(f"valid_fraction {self.valid_fraction}: must be from 0 to 1")
        if self.bad_rows < 0 or self.workers < 0:
            raise ValueError("bad_rows and workers must not be negative")

    @property
    def capped(self) -> bool:
        return self.max_rows >= 0 or self.max_tokens >= 0
