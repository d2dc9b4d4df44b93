"""The configs of the reasoning family: one for each builder.

CODE_VERSION of a config is raised when its builder makes other files from the same
input and config. The metadata of a field has `help`, a sentence for the user, and
`choices`, `least`, `most` and `unit` where they apply. Fields that cannot change a byte have
`affects_output: False`.

Source: `docs/formats/reasoning.md#normalised-files`, `docs/formats/reasoning.md#pinned-downloads`,
`docs/formats/reasoning.md#shards`, `docs/formats/reasoning.md#alignment`,
`docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from gristmill.reasoning.format.shards import MOST_TOKENS
from gristmill.settings.fields import MOST_WORKERS, check_fields
from gristmill.vocabularies.engine import AUTO, ENGINES

CLEANING = ("boxed", "annotations", "final_line", "choices")
"""Names of the cleaning hooks: `docs/formats/reasoning.md#cleaning`."""
_VOCABULARY_HELP = "File of GPT-2's ranks, under any name; its sha256 is checked."
_MIRROR_HELP = "Repository to fetch from: owner/name, with an address before it and @commit behind."
_WORKERS_HELP = "Processes that build one split; 0 or 1 for no further process."
_ENGINE_HELP = (
    "What encodes texts: auto for gigatoken where it is proven equal to tiktoken, or tiktoken "
    "for all texts. The tokens are the same."
)


@dataclass(frozen=True)
class NormalizeConfig:
    """How raw records become a normalised file. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "2"

    cleaning: tuple[str, ...] = field(
        default=(),
        metadata={
            "choices": CLEANING,
            "help": "Cleaning hooks to run over every record, in this order; none by default: "
            "boxed, annotations, final_line, choices.",
        },
    )
    bad_rows: int = field(
        default=0,
        metadata={
            "affects_output": False,
            "counted_before": True,
            "least": 0,
            "help": "Damaged records of one split to set aside, at most; one more fails the build.",
            "unit": "records",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class SourcesConfig:
    """Mirrors that raw files are fetched from, by corpus; None for the built-in paths.

    Raises ValueError for a value of another type.
    """

    gsm8k: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    cot_collection: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    openr1_math_220k: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    reasoning_traces: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    reveal: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    trip: str | None = field(default=None, metadata={"help": _MIRROR_HELP})
    wiqa: str | None = field(default=None, metadata={"help": _MIRROR_HELP})

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class TokenizeConfig:
    """How a normalised file becomes token shards. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Path = field(metadata={"affects_output": False, "help": _VOCABULARY_HELP})
    seq_len: int = field(
        default=2048,
        metadata={
            "help": "Tokens of one sequence.",
            "least": 1,
            "unit": "tokens",
            "in_event": True,
        },
    )
    tokens_per_shard: int = field(
        default=2_097_152,
        metadata={
            "help": "Tokens of one shard, a multiple of seq_len; so many are in memory.",
            "least": 1,
            "most": MOST_TOKENS,
            "unit": "tokens",
        },
    )
    world_size: int = field(
        default=1,
        metadata={
            "help": "Number of ranks that share the records: record k belongs to rank k modulo it.",
            "least": 1,
            "most": 256,
            "unit": "ranks",
        },
    )
    path_prefix: str = field(
        default="reasoning",
        metadata={"help": "First folder of `shard_path` in the index; the seed has datasets."},
    )
    safetensors: bool = field(
        default=False,
        metadata={"help": "Whether every shard gets a twin in the safetensors format."},
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "Corpora to tokenise though their terms forbid training on them, as reveal."
        },
    )
    workers: int = field(
        default=1,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "processes",
            "help": _WORKERS_HELP,
        },
    )
    engine: str = field(
        default=AUTO,
        metadata={"affects_output": False, "choices": ENGINES, "help": _ENGINE_HELP},
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.path_prefix.strip("/"):
            raise ValueError("path_prefix: must name a folder")
        if self.tokens_per_shard % self.seq_len:
            raise ValueError(
                f"tokens_per_shard: {self.tokens_per_shard} is no multiple of seq_len "
                f"{self.seq_len}"
            )


@dataclass(frozen=True)
class AlignConfig:
    """How steps are found and projected to tokens. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "2"

    vocabulary: Path = field(metadata={"affects_output": False, "help": _VOCABULARY_HELP})
    workers: int = field(
        default=1,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "processes",
            "help": _WORKERS_HELP,
        },
    )
    engine: str = field(
        default=AUTO,
        metadata={"affects_output": False, "choices": ENGINES, "help": _ENGINE_HELP},
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ReportConfig:
    """What a daily report measures, and how far it may drift from its baseline.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Path = field(metadata={"affects_output": False, "help": _VOCABULARY_HELP})
    baseline: str | None = field(
        default=None,
        metadata={"help": "Date of the report that drift is measured against, as 2026-11-22."},
    )
    total_tokens: float = field(
        default=0.02,
        metadata={
            "help": "Largest relative change of the text tokens of a split.",
            "least": 0,
            "unit": "fraction of the tokens",
        },
    )
    avg_seq_len: float = field(
        default=0.02,
        metadata={
            "help": "Largest relative change of the mean tokens of an example.",
            "least": 0,
            "unit": "fraction of the mean",
        },
    )
    pct_with_cot: float = field(
        default=1.0,
        metadata={
            "help": "Largest change of the share with CoT, in percentage points.",
            "least": 0,
            "unit": "percentage points",
        },
    )
    alignment_coverage: float = field(
        default=1.0,
        metadata={
            "help": "Largest change of the share of aligned examples, in percentage points.",
            "least": 0,
            "unit": "percentage points",
        },
    )
    invariance_sample: int = field(
        default=200,
        metadata={
            "help": "Examples of each split that are perturbed.",
            "least": 0,
            "unit": "examples",
        },
    )
    seed: int = field(
        default=0,
        metadata={
            "help": "Decides which examples are perturbed.",
            "least": 0,
            "unit": "none, any number",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
