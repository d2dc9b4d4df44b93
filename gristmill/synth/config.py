"""The configs of the SYNTH family: one for each builder.

CODE_VERSION is raised when a builder makes other rows or files from the same input and config.
Importing this module loads neither NumPy nor Arrow.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from gristmill.settings.fields import (
    ADDED_LATER,
    NO_EFFECT,
    BadRows,
    Checked,
    Engine,
    Help,
    Positive,
    Seed,
    Share,
    Unit,
    Vocabulary,
    Workers,
)
from gristmill.synth import raw
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K, MissingVocabulary, find

METADATA_FIELDS: Final[tuple[raw.Column, ...]] = (
    "synth_id",
    "language",
    "exercise",
    "model",
    "constraints",
    "seed_license",
    "query_seed_url",
)
"""Default columns of a raw file that a Harmony shard keeps."""
COUNT: Final = "count"
REFUSE: Final = "refuse"
_DEVELOPER: Final = (
    "Follow the user's request. When you provide an answer, produce both:\n"
    "- reasoning in the analysis channel\n"
    "- the user-facing answer in the final channel"
)


@dataclass(frozen=True)
class HarmonyConfig(Checked):
    """How raw rows become a Harmony shard.

    Raises ValueError also for metadata_fields that name a column twice or lack synth_id.
    """

    CODE_VERSION: ClassVar = "1"

    model_identity: Annotated[str, Help("First line of the system message: what the model is.")] = (
        "You are a helpful large language model."
    )
    reasoning_effort: Annotated[
        Literal["low", "medium", "high"],
        Help("Reasoning effort in the system message: low, medium or high."),
    ] = "high"
    conversation_start_date: Annotated[
        str, Help("Current date in the system message, as YYYY-MM-DD.")
    ] = "2026-01-01"
    knowledge_cutoff: Annotated[
        str, Help("Knowledge cutoff in the system message, as YYYY-MM.")
    ] = "2024-06"
    developer: Annotated[
        str | None,
        Help(
            "Text of the developer message; an empty text in the launchpad or in "
            "gristmill.toml means no such message."
        ),
    ] = _DEVELOPER
    metadata_fields: Annotated[
        tuple[raw.Column, ...],
        Help("Columns of the raw files to keep, in this order; synth_id must be among them."),
    ] = METADATA_FIELDS
    num_shards: Annotated[
        Positive, Unit("shards"), Help("Number of shards that the raw files are divided into.")
    ] = raw.SHARDS
    max_rows: Annotated[
        int,
        Unit("rows"),
        Help("Raw rows to read for one shard, the skipped ones included; -1 for all."),
    ] = -1
    rows_per_group: Annotated[
        Positive, Unit("rows"), Help("Rows in one row group of the Parquet file.")
    ] = 2000
    workers: Annotated[
        Workers,
        Help("Processes that convert the raw files of one shard; 0 or 1 for no further process."),
    ] = 1
    dataset: Annotated[
        str, NO_EFFECT, Help("Name of the raw dataset; only the manifest names it.")
    ] = raw.DATASET

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.metadata_fields)) < len(self.metadata_fields):
            raise ValueError("metadata_fields: a column is named twice")
        if "synth_id" not in self.metadata_fields:
            raise ValueError("metadata_fields: synth_id is missing, the split needs it")


@dataclass(frozen=True)
class KDConfig(Checked):
    """How a Harmony shard becomes Megatron datasets.

    A vocabulary that is a folder is a data root, where its file is found as the command finds it.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Annotated[
        Vocabulary, Help("File of the o200k_base ranks, under any name; its sha256 is checked.")
    ] = Path("data")
    valid_fraction: Annotated[
        Share,
        Unit("fraction of the conversations"),
        Help("Fraction of the conversations in the valid split."),
    ] = 0.001
    max_rows: Annotated[
        int,
        Unit("rows"),
        Help(
            "Documents of one shard, over both splits, at most; a negative value for "
            "no cap. A capped shard is built in one process."
        ),
    ] = -1
    max_tokens: Annotated[
        int,
        Unit("tokens"),
        Help(
            "Tokens of one shard, over both splits; a negative value for no cap. "
            "The last document may pass the cap."
        ),
    ] = -1
    bad_rows: Annotated[
        BadRows,
        Unit("rows"),
        Help(
            "Refused rows of one shard to set aside in quarantine/, at most; one more "
            "fails the build."
        ),
    ] = 0
    unknown_keys: Annotated[
        Literal["count", "refuse"],
        ADDED_LATER,
        Help(
            "Keys of messages that are not rendered, as thinking or tool_calls: count "
            "counts them by name, refuse refuses the rows that have one."
        ),
    ] = COUNT
    workers: Annotated[
        Workers, Help("Processes that build one shard; 0 or 1 for no further process.")
    ] = 1
    engine: Engine = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocabulary.is_dir():
            with suppress(MissingVocabulary):  # whoever reads it says so
                object.__setattr__(self, "vocabulary", find(O200K, self.vocabulary))

    @property
    def capped(self) -> bool:
        """Whether there is a cap on rows or tokens: `docs/formats/synth.md#caps`."""
        return self.max_rows >= 0 or self.max_tokens >= 0


@dataclass(frozen=True)
class ChatKDConfig(KDConfig):
    """How conversations become Megatron datasets. eod, ids: the id of an end, and how many ids."""

    CODE_VERSION: ClassVar = "1"

    render: str = ""
    eod: int = O200K.size - 1089
    ids: int = O200K.size


@dataclass(frozen=True)
class DistillConfig(KDConfig):
    """How conversations become rows of token ids, labels and spans."""

    CODE_VERSION: ClassVar = "1"

    valid_fraction: Annotated[
        Share,
        Unit("fraction of the rows"),
        Help("Fraction of the rows in the validation split, by a draw from seed and id."),
    ] = 0.01
    template: Annotated[
        Literal["harmony", "chatgpt_plain"],
        Help(
            "How a row is rendered: harmony as it stands, or chatgpt_plain with a system message "
            "that is plain text, and the question with the text that it refers to."
        ),
    ] = "harmony"
    reasoning: Annotated[
        Literal["low", "medium", "high"], Help("Level of reasoning that chatgpt_plain states.")
    ] = "high"
    reference: Annotated[
        bool,
        Help(
            "Whether chatgpt_plain adds query_seed_text to the question; it must be among the "
            "metadata_fields of [synth.harmony]."
        ),
    ] = True
    turns: Annotated[
        Literal["last", "all"],
        ADDED_LATER,
        Help(
            "Which answers of a conversation have labels: the last one, or all that are trained on."
        ),
    ] = "last"
    max_length: Annotated[
        Positive, Unit("tokens"), Help("Tokens of a row, at most; longer ones are left out.")
    ] = 8192
    drop_failed: Annotated[
        bool, Help("Leave out rows whose constraints say that their generation failed.")
    ] = True
    drop_wrong: Annotated[
        bool, Help("Leave out answers that are not the `result:` of their constraints.")
    ] = True
    memorization_cap: Annotated[
        Share,
        Unit("fraction of the rows"),
        Help("Rows of the exercise memorization in a shard, at most; 1 for no cap."),
    ] = 0.7
    english_share: Annotated[
        Share,
        Unit("fraction of the rows"),
        Help("Rows in English in a shard, at least; those in other languages become fewer."),
    ] = 0.75
    keep: Annotated[
        Share, Unit("fraction of the rows"), Help("Rows that stay, by a draw from seed and id.")
    ] = 1.0
    seed: Annotated[Seed, Help("Seed of all draws.")] = 1337

    @property
    def samples(self) -> bool:
        """Whether rows stay in proportion to others: they are counted first."""
        return self.memorization_cap < 1 or self.english_share > 0


@dataclass(frozen=True)
class ChatDistillConfig(DistillConfig):
    """How conversations of one's own become such rows. render: as of `ChatKDConfig`."""

    CODE_VERSION: ClassVar = "1"

    render: str = ""


@dataclass(frozen=True)
class RawSettings(Checked):
    """The table `[synth.raw]`: when a drop of raw files is complete."""

    files: Annotated[
        Positive, Unit("files"), Help("Number of Parquet files that make a drop complete.")
    ] = raw.FILES


@dataclass(frozen=True)
class SourceSettings(Checked):
    """The key of `[synth.harmony]` that only the data root's file has."""

    drop: Annotated[
        str | None,
        Help(
            "The drop that the dataset is built from, where several are complete, as "
            "synth/first or synth_harmony/mine."
        ),
    ] = None
