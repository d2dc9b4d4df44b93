"""The configs of the SYNTH family: one for each builder.

CODE_VERSION of a config is raised when its builder makes other rows or files from
the same input and config. The configs are not in the builders' modules, so that
importing them loads neither NumPy nor Arrow.

The metadata of a field has `help`, a sentence for the user, and `choices` where
the values are a fixed list, and of a number the bounds `least` and `most` and the `unit`. Fields
that cannot change a byte have `affects_output: False`.

Source: `docs/formats/synth.md#messages`, `docs/formats/synth.md#harmony-columns`,
`docs/formats/synth.md#hash-rule`, `docs/formats/synth.md#caps`, `docs/formats/synth.md#quarantine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from gristmill.settings.fields import MOST_WORKERS, check_fields
from gristmill.synth.raw import files
from gristmill.vocabularies.engine import AUTO, ENGINES

METADATA_FIELDS: Final = (
    "synth_id",
    "language",
    "exercise",
    "model",
    "constraints",
    "seed_license",
    "query_seed_url",
)
"""Default columns of a raw file that a Harmony shard keeps."""
EFFORTS: Final = ("low", "medium", "high")
"""Allowed values of `reasoning_effort`."""
COUNT: Final = "count"
REFUSE: Final = "refuse"
_DEVELOPER: Final = (
    "Follow the user's request. When you provide an answer, produce both:\n"
    "- reasoning in the analysis channel\n"
    "- the user-facing answer in the final channel"
)


@dataclass(frozen=True)
class HarmonyConfig:
    """How raw rows become a Harmony shard. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    model_identity: str = field(
        default="You are a helpful large language model.",
        metadata={"help": "First line of the system message: what the model is."},
    )
    reasoning_effort: str = field(
        default="high",
        metadata={
            "help": "Reasoning effort in the system message: low, medium or high.",
            "choices": EFFORTS,
        },
    )
    conversation_start_date: str = field(
        default="2026-01-01",
        metadata={"help": "Current date in the system message, as YYYY-MM-DD."},
    )
    knowledge_cutoff: str = field(
        default="2024-06",
        metadata={"help": "Knowledge cutoff in the system message, as YYYY-MM."},
    )
    developer: str | None = field(
        default=_DEVELOPER,
        metadata={
            "help": "Text of the developer message; an empty text in the launchpad or in "
            "gristmill.toml means no such message."
        },
    )
    metadata_fields: tuple[str, ...] = field(
        default=METADATA_FIELDS,
        metadata={
            "help": "Columns of the raw files to keep, in this order; synth_id must be among them.",
            "choices": files.COLUMNS,
        },
    )
    num_shards: int = field(
        default=files.SHARDS,
        metadata={
            "help": "Number of shards that the raw files are divided into.",
            "least": 1,
            "unit": "shards",
        },
    )
    max_rows: int = field(
        default=-1,
        metadata={
            "help": "Raw rows to read for one shard, the skipped ones included; -1 for all.",
            "unit": "rows",
        },
    )
    rows_per_group: int = field(
        default=2000,
        metadata={
            "help": "Rows in one row group of the Parquet file.",
            "least": 1,
            "unit": "rows",
        },
    )
    workers: int = field(
        default=1,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "processes",
            "help": "Processes that convert the raw files of one shard; 0 or 1 for no further "
            "process.",
        },
    )
    dataset: str = field(
        default=files.DATASET,
        metadata={
            "affects_output": False,
            "help": "Name of the raw dataset; only the manifest names it.",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if len(set(self.metadata_fields)) < len(self.metadata_fields):
            raise ValueError("metadata_fields: a column is named twice")
        if "synth_id" not in self.metadata_fields:
            raise ValueError("metadata_fields: synth_id is missing, the split needs it")


@dataclass(frozen=True)
class KDConfig:
    """How a Harmony shard becomes Megatron datasets. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Path = field(
        metadata={
            "affects_output": False,
            "help": "File of the o200k_base ranks, under any name; its sha256 is checked.",
        }
    )
    valid_fraction: float = field(
        default=0.001,
        metadata={
            "help": "Fraction of the conversations in the valid split.",
            "unit": "fraction of the conversations",
            "least": 0,
            "most": 1,
        },
    )
    max_rows: int = field(
        default=-1,
        metadata={
            "help": "Documents of one shard, over both splits, at most; a negative value for "
            "no cap. A capped shard is built in one process.",
            "unit": "rows",
        },
    )
    max_tokens: int = field(
        default=-1,
        metadata={
            "help": "Tokens of one shard, over both splits; a negative value for no cap. "
            "The last document may pass the cap.",
            "unit": "tokens",
        },
    )
    bad_rows: int = field(
        default=0,
        metadata={
            # It decides whether there is an output, not which one.
            "affects_output": False,
            "counted_before": True,
            "least": 0,
            "help": "Refused rows of one shard to set aside in quarantine/, at most; one more "
            "fails the build.",
            "unit": "rows",
        },
    )
    unknown_keys: str = field(
        default=COUNT,
        metadata={
            "added_later": True,
            "choices": (COUNT, REFUSE),
            "help": "Keys of messages that are not rendered, as thinking or tool_calls: count "
            "counts them by name, refuse refuses the rows that have one.",
        },
    )
    workers: int = field(
        default=1,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "processes",
            "help": "Processes that build one shard; 0 or 1 for no further process.",
        },
    )
    engine: str = field(
        default=AUTO,
        metadata={
            "affects_output": False,
            "choices": ENGINES,
            "help": "What encodes texts: auto for gigatoken where it is proven equal to "
            "tiktoken, or tiktoken for all texts. The tokens are the same.",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def capped(self) -> bool:
        """Whether there is a cap on rows or tokens: `docs/formats/synth.md#caps`."""
        return self.max_rows >= 0 or self.max_tokens >= 0


@dataclass(frozen=True)
class RawSettings:
    """The table `[synth.raw]`: when a drop of raw files is complete.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    files: int = field(
        default=files.FILES,
        metadata={
            "help": "Number of Parquet files that make a drop complete.",
            "least": 1,
            "unit": "files",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class SourceSettings:
    """The key of `[synth.harmony]` that only the data root's file has.

    Raises ValueError for a value of another type.
    """

    drop: str | None = field(
        default=None,
        metadata={
            "help": "The drop that the dataset is built from, where several are complete, as "
            "synth/first or synth_harmony/mine."
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
