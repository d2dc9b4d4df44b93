"""The configs of the reasoning family: one for each builder.

CODE_VERSION of a config is raised when its builder makes other files from the same input and
config. The type of a field says what it means (`gristmill.settings.fields`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from gristmill.reasoning.format.shards import MOST_TOKENS
from gristmill.settings import fields
from gristmill.settings.fields import (
    ADDED_LATER,
    IN_EVENT,
    NO_EFFECT,
    BadRows,
    Checked,
    Count,
    Engine,
    Ge,
    Help,
    Le,
    Positive,
    Seed,
    Unit,
)
from gristmill.vocabularies.engine import AUTO

Cleaning = Literal["boxed", "annotations", "final_line", "choices"]
Output = Literal["bin", "safetensors", "alignment"]
ALIGNED: Literal["alignment"] = "alignment"
Format = Literal["llm.c", "litdata", "nanochat"]
REFUSE: Literal["refuse"] = "refuse"
CLEANING = get_args(Cleaning)
"""Names of the cleaning hooks: `docs/formats/reasoning.md#cleaning`."""

Vocabulary = Annotated[
    fields.Vocabulary, Help("File of GPT-2's ranks, under any name; its sha256 is checked.")
]
Mirror = Annotated[
    str | None,
    Help("Repository to fetch from: owner/name, with an address before it and @commit behind."),
]
Workers = Annotated[
    fields.Workers, Help("Processes that build one split; 0 or 1 for no further process.")
]
Leaks = Annotated[
    str, ADDED_LATER, Help("Evaluation sets whose questions are left out, and how they are read.")
]
Points = Annotated[float, Ge(0), Unit("percentage points")]


@dataclass(frozen=True)
class NormalizeConfig(Checked):
    """How raw records become a normalised file (docs/formats/reasoning.md#normalised-files)."""

    CODE_VERSION: ClassVar = "2"

    cleaning: Annotated[
        tuple[Cleaning, ...],
        Help(
            "Cleaning hooks to run over every record, in this order; none by default: "
            "boxed, annotations, final_line, choices."
        ),
    ] = ()
    bad_rows: Annotated[
        BadRows,
        Unit("records"),
        Help("Damaged records of one split to set aside, at most; one more fails the build."),
    ] = 0
    unknown_keys: Annotated[
        Literal["count", "refuse"],
        ADDED_LATER,
        Help(
            "Keys of rows that nothing reads: count counts them by name, of a corpus of a drop; "
            "refuse refuses the rows that have one."
        ),
    ] = "count"
    workers: Workers = 1
    leaks: Leaks = ""


@dataclass(frozen=True)
class CorpusConfig(NormalizeConfig):
    """The config of a corpus that has a file of its own, or of a built-in one that changed.

    corpus: the file as JSON, whole, so that the record says how rows were read.
    version: of a built-in corpus, and of the installed transforms that read its rows.
    """

    CODE_VERSION: ClassVar = "4"

    corpus: str = ""
    version: str = "1"


@dataclass(frozen=True)
class ConversationsConfig(Checked):
    """How rows become normalised conversations (docs/formats/chat.md#conversations)."""

    CODE_VERSION: ClassVar = "2"

    bad_rows: Annotated[
        BadRows,
        Unit("rows"),
        Help("Damaged rows of one shard to set aside, at most; one more fails the build."),
    ] = 0
    allow_terms: Annotated[
        bool, NO_EFFECT, Help("Whether drops are built whose terms forbid training on them.")
    ] = False
    workers: Annotated[
        fields.Workers, Help("Processes that build one shard; 0 or 1 for no further process.")
    ] = 1
    leaks: Leaks = ""


@dataclass(frozen=True)
class ChatConfig(ConversationsConfig):
    """The config of a drop of conversations. recipe: its `corpus.toml` as JSON."""

    CODE_VERSION: ClassVar = ConversationsConfig.CODE_VERSION

    recipe: str = ""


@dataclass(frozen=True)
class SourcesConfig(Checked):
    """Mirrors that raw files are fetched from, by corpus; None for the built-in paths."""

    gsm8k: Mirror = None
    cot_collection: Mirror = None
    openr1_math_220k: Mirror = None
    reasoning_traces: Mirror = None
    reveal: Mirror = None
    trip: Mirror = None
    wiqa: Mirror = None


@dataclass(frozen=True)
class LeaksConfig:
    """What an audit is of: digests of the evaluation set, and of all texts."""

    asked: str
    texts: str


@dataclass(frozen=True)
class TokenizeConfig(Checked):
    """How a normalised file becomes token shards (docs/formats/reasoning.md#shards).

    Raises ValueError also where tokens_per_shard is no multiple of seq_len.
    """

    CODE_VERSION: ClassVar = "1"

    vocabulary: Vocabulary
    seq_len: Annotated[Positive, Unit("tokens"), IN_EVENT, Help("Tokens of one sequence.")] = 2048
    tokens_per_shard: Annotated[
        Positive,
        Le(MOST_TOKENS),
        Unit("tokens"),
        Help("Tokens of one shard, a multiple of seq_len; so many are in memory."),
    ] = 2_097_152
    world_size: Annotated[
        Positive,
        Le(256),
        Unit("ranks"),
        Help("Number of ranks that share the records: record k belongs to rank k modulo it."),
    ] = 1
    path_prefix: Annotated[
        str, Help("First folder of `shard_path` in the index; the seed has datasets.")
    ] = "reasoning"
    safetensors: Annotated[
        bool, Help("Whether every shard gets a twin in the safetensors format.")
    ] = False
    allow: Annotated[
        tuple[str, ...],
        Help("Corpora to tokenise though their terms forbid training on them, as reveal."),
    ] = ()
    workers: Workers = 1
    engine: Engine = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path_prefix.strip("/"):
            raise ValueError("path_prefix: must name a folder")
        if self.tokens_per_shard % self.seq_len:
            raise ValueError(
                f"tokens_per_shard: {self.tokens_per_shard} is no multiple of seq_len "
                f"{self.seq_len}"
            )


@dataclass(frozen=True)
class TokensConfig(TokenizeConfig):
    """How splits become a dataset of any tokenizer (docs/formats/reasoning.md#token-datasets).

    steps: with an alignment the marks of steps by split, as JSON, of those that have some.
    """

    CODE_VERSION: ClassVar = "1"

    corpora: Annotated[
        tuple[str, ...],
        Help("Corpora, or splits of them as gsm8k__train."),
    ] = ()
    tokenizer: Annotated[str, IN_EVENT, Help("Name of a tokenizer that is published.")] = ""
    outputs: Annotated[
        tuple[Output, ...],
        Help(
            "Files of each shard: bin, ids alone; safetensors. The index names the first. "
            "alignment: the steps of each split in characters and tokens."
        ),
    ] = ("bin",)
    steps: Annotated[str, Help("Marks of steps by split, as JSON.")] = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of the files of a shard, in order."""
        return tuple(f".{each}" for each in self.outputs if each != ALIGNED)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("corpora", "outputs"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: must name each once")
        if not self.suffixes:
            raise ValueError("outputs: must name bin or safetensors")


@dataclass(frozen=True)
class AlignConfig(Checked):
    """How steps are found and projected to tokens (docs/formats/reasoning.md#alignment)."""

    CODE_VERSION: ClassVar = "2"

    vocabulary: Vocabulary
    workers: Workers = 1
    engine: Engine = AUTO


@dataclass(frozen=True)
class CorpusAlignConfig(AlignConfig):
    """The config of a corpus whose file marks steps. steps: label by mark, as JSON."""

    CODE_VERSION: ClassVar = AlignConfig.CODE_VERSION

    steps: str = ""


@dataclass(frozen=True)
class ReportConfig(Checked):
    """What a daily report measures, and how far it may drift from its baseline."""

    CODE_VERSION: ClassVar = "1"

    vocabulary: Vocabulary
    baseline: Annotated[
        str | None, Help("Date of the report that drift is measured against, as 2026-11-22.")
    ] = None
    total_tokens: Annotated[
        float,
        Ge(0),
        Unit("fraction of the tokens"),
        Help("Largest relative change of the text tokens of a split."),
    ] = 0.02
    avg_seq_len: Annotated[
        float,
        Ge(0),
        Unit("fraction of the mean"),
        Help("Largest relative change of the mean tokens of an example."),
    ] = 0.02
    pct_with_cot: Annotated[
        Points, Help("Largest change of the share with CoT, in percentage points.")
    ] = 1.0
    alignment_coverage: Annotated[
        Points, Help("Largest change of the share of aligned examples, in percentage points.")
    ] = 1.0
    invariance_sample: Annotated[
        Count, Unit("examples"), Help("Examples of each split that are perturbed.")
    ] = 200
    seed: Annotated[Seed, Help("Decides which examples are perturbed.")] = 0


@dataclass(frozen=True)
class SpansConfig(Checked):
    """How annotations of arithmetic become spans (docs/formats/reasoning.md#spans)."""

    CODE_VERSION: ClassVar = "1"

    tokenizer: Annotated[
        str, IN_EVENT, Help("Name of a tokenizer that is published, whose tokens are named.")
    ] = "gpt2"
    most_tokens: Annotated[
        Positive, Unit("tokens"), Help("Tokens of a text that the program reads.")
    ] = 1024
    calibration: Annotated[
        float,
        Ge(0),
        Le(1),
        Unit("fraction of the traces"),
        Help("Share of the traces that calibrate; at least one, and one is left."),
    ] = 0.3
    split_seed: Annotated[Seed, Help("Decides which traces calibrate.")] = 20260303
    control_traces: Annotated[
        Count,
        ADDED_LATER,
        Unit("traces"),
        Help("Most traces that get control pairs; 0 writes none."),
    ] = 0
    control_seed: Annotated[Seed, ADDED_LATER, Help("Decides what is wrong in control pairs.")] = 17
    workers: Workers = 1


@dataclass(frozen=True)
class ExportsConfig(Checked):
    """Which formats of other programs a token dataset gets (docs/formats/reasoning.md#exports).

    Nothing is built while there is no format.
    """

    CODE_VERSION: ClassVar = "1"

    formats: Annotated[
        tuple[Format, ...],
        IN_EVENT,
        Help("llm.c: token files; litdata: chunks for litgpt; nanochat: texts as Parquet."),
    ] = ()
    file_tokens: Annotated[
        int,
        Ge(0),
        Le(500_000_000),
        Unit("tokens"),
        Help("Tokens after which a file ends, with a whole document; 0 for those of the format."),
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats: must name each once")
