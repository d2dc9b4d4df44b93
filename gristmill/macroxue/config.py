"""The settings of the 2048 family: one config for each builder.

Raise the CODE_VERSION of a config when its builder makes other bytes of the same input and config.
This module is apart from the builders, so that asking for a version or a field loads no NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from gristmill.settings.fields import (
    IN_EVENT,
    Checked,
    Count,
    Ge,
    Gt,
    Help,
    Le,
    Seed,
    Share,
    Unit,
    Workers,
)

Layout = Literal["aligned48", "packed46"]
TRAIN, VALIDATION = SIDES = ("train", "validation")
"""The folders of a view whose games are split."""

RowLayout = Annotated[
    Layout,
    IN_EVENT,
    Help(
        "Row layout of the steps files. aligned48: 48 bytes a row, as np.save writes the dtype of "
        "the original document. packed46: 46 bytes a row, byte for byte as the Rust packer writes "
        "it."
    ),
]
ShardRows = Annotated[
    Count,
    Unit("rows"),
    Help("Rows in each steps file; only the last file may have fewer. 0: one file, steps.npy."),
]
EnumForm = Annotated[
    Literal["list", "object"],
    Help(
        "Form of valuation_types.json. list: names in the order of their ids; the Python readers "
        "of the original take it. object: name to id; the merge of the Rust packer needs it."
    ),
]
GameLaws = Annotated[
    Literal["refuse", "warn"],
    Help(
        "What happens where a game breaks the rules of 2048. refuse: nothing is published. warn: "
        "the games are not judged, neither in the build nor by `gristmill verify`."
    ),
]


@dataclass(frozen=True)
class PackConfig(Checked):
    """Settings of `pack`: raw drops to a pack.

    `pack` does not judge games itself, whatever `game_laws` is; the publisher and `verify` do.
    """

    CODE_VERSION: ClassVar = "2"

    layout: RowLayout = "aligned48"
    shard_rows: ShardRows = 0
    on_error: Annotated[
        Literal["strict", "quarantine"],
        Help(
            "What happens at a bad line. strict: the drop is refused. quarantine: its run"
            " is set aside in quarantine.jsonl and the others are packed."
        ),
    ] = "strict"
    quarantine_share: Annotated[
        Share,
        Unit("fraction of the runs"),
        Help(
            "Largest fraction of the runs that may be set aside with on_error = quarantine; with "
            "more the build fails."
        ),
    ] = 0.05
    enum_form: EnumForm = "list"
    game_laws: GameLaws = "refuse"
    workers: Annotated[
        Workers,
        Help(
            "Number of processes; 0 decides by the size of the drop and the processors of the "
            "machine. The pack is the same for any number."
        ),
    ] = 0


@dataclass(frozen=True)
class MergeConfig(Checked):
    """Settings of `merge`: packs to a pool. Members may have any form, each its own.

    A member that was published with game_laws = "warn" needs it here too.

    Raises ValueError also for names that are equal, empty or hold a slash.
    """

    CODE_VERSION: ClassVar = "1"

    layout: RowLayout = "aligned48"
    shard_rows: ShardRows = 0
    enum_form: EnumForm = "list"
    game_laws: GameLaws = "refuse"
    names: Annotated[
        tuple[str, ...],
        Help(
            "Names of the members in the trace and in the session keys of the pool, in"
            " their order; empty for the names of their folders."
        ),
    ] = ()
    workers: Annotated[
        Workers,
        Unit("threads"),
        Help(
            "Threads that read and renumber rows; 0 and 1 use the caller's thread. The"
            " pool is the same for any number."
        ),
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.names)) != len(self.names) or not all(self.names):
            raise ValueError("names must be different from each other and not empty")
        if any("/" in name for name in self.names):
            raise ValueError("names must not hold '/', which joins them to session keys")


@dataclass(frozen=True)
class ValueConfig(Checked):
    """Settings of `value_sidecar`, a pack to values (docs/formats/macroxue.md#value-sidecar)."""

    CODE_VERSION: ClassVar = "1"

    gamma: Annotated[
        float, Ge(0), Unit("factor"), IN_EVENT, Help("Discount of each step in the returns.")
    ] = 0.997
    reward_scale: Annotated[
        float,
        Gt(0),
        Unit("factor"),
        Help("Factor of the column reward_scaled. No other column uses it."),
    ] = 1.0
    epsilon: Annotated[
        float, Ge(0), Unit("factor"), Help("Factor of the linear term of h in return_scaled.")
    ] = 0.001
    compat: Annotated[
        Literal["none", "reference"],
        Help(
            "Ranks that rewards are computed from. none: the true ranks. reference: 16 for"
            " every tile above 32768, which gives the numbers of the original bit for bit."
        ),
    ] = "none"


@dataclass(frozen=True)
class ViewConfig(Checked):
    """Settings of `training_view` (docs/formats/macroxue.md#training-view).

    Raises ValueError also for a share beside queries, and for one query without the other.
    """

    CODE_VERSION: ClassVar = "1"

    validation_share: Annotated[
        Share,
        Unit("fraction of the games"),
        IN_EVENT,
        Help(
            "Fraction of the games in the folder validation/, by the hash of StepDataset.split; the"
            " others are in train/. 0: no split."
        ),
    ] = 0.0
    split_seed: Annotated[Seed, Help("Seed of that hash.")] = 42
    train_query: Annotated[
        str,
        Help(
            "A SELECT that gives the ids of the training runs, as in SELECT id FROM runs WHERE"
            " max_score > 50000. Empty: the share decides."
        ),
    ] = ""
    validation_query: Annotated[
        str, Help("The same for validation runs. Runs of neither query are left out.")
    ] = ""
    gaps: Annotated[
        Literal["mark", "refuse"],
        Help(
            "What happens to a run with missing steps. mark: the table gaps of metadata.db names"
            " it, and its values are NaN. refuse: nothing is published."
        ),
    ] = "mark"
    symmetries: Annotated[
        Literal["none", "all"],
        Help(
            "all: each training game is followed by its seven images, turned and mirrored, with a"
            " board_eval of their own."
        ),
    ] = "none"
    shard_rows: Annotated[
        Count,
        Unit("rows"),
        Help(
            "Rows in each steps file, where the rows are copied; 0: one file. Without a split and"
            " symmetries the files are links, and their shards those of the source."
        ),
    ] = 0
    num_bins: Annotated[
        int,
        Ge(0),
        Le(4096),
        Unit("bins"),
        Help("Bins of each valuation type in tokenizer.json. 0: no tokenizer.json."),
    ] = 32
    search_failure_cutoff: Annotated[
        int,
        Unit("points"),
        Help("Search branches that are worth less than board_eval plus this are failures."),
    ] = -1500
    zero_tolerance: Annotated[
        float,
        Ge(0),
        Unit("probability"),
        Help("Tuple branches of at most this value are failures; differences up to it are none."),
    ] = 1e-9

    @property
    def images(self) -> int:
        """Runs that the view has for each training game."""
        return 8 if self.symmetries == "all" else 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.train_query) != bool(self.validation_query):
            raise ValueError("train_query and validation_query belong together: set both or none")
        if self.train_query and self.validation_share:
            raise ValueError(
                "validation_share and train_query both split the games: set one of them"
            )
