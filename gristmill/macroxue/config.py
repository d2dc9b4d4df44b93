"""The settings of the 2048 family: one config for each builder.

Raise the CODE_VERSION of a config when its builder makes other bytes from the same
input and config. This module is apart from the builders, so that asking for a
version or a field loads no NumPy.

The metadata of each field has `help`, its text for the launchpad and the docs, and the bounds of a
number: `least`, `most`, `above`, and its `unit` (see `gristmill.settings.fields`).

Source: `docs/formats/macroxue.md#value-sidecar`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from gristmill.settings.fields import MOST_WORKERS, check_fields

Layout = Literal["aligned48", "packed46"]
EnumForm = Literal["list", "object"]
GameLaws = Literal["refuse", "warn"]
OnError = Literal["strict", "quarantine"]
Compat = Literal["none", "reference"]
LAYOUTS = get_args(Layout)

_LAYOUT_HELP = (
    "Row layout of the steps files. aligned48: 48 bytes a row, as np.save writes the dtype of the"
    " original document. packed46: 46 bytes a row, byte for byte as the Rust packer writes it."
)
_SHARD_ROWS_HELP = (
    "Rows in each steps file; only the last file may have fewer. 0: one file, steps.npy."
)
_ENUM_FORM_HELP = (
    "Form of valuation_types.json. list: names in the order of their ids; the Python readers of"
    " the original take it. object: name to id; the merge of the Rust packer needs it."
)
_GAME_LAWS_HELP = (
    "What happens where a game breaks the rules of 2048. refuse: nothing is published. warn: the"
    " games are not judged, neither in the build nor by `gristmill verify`."
)


_SHARD_ROWS: dict[str, Any] = {"help": _SHARD_ROWS_HELP, "least": 0, "unit": "rows"}


@dataclass(frozen=True)
class PackConfig:
    """Settings of `pack`: raw drops to a pack.

    layout: row layout (docs/formats/macroxue.md#row-layouts); default "aligned48".
    shard_rows: rows in each steps file (docs/formats/macroxue.md#shards); default 0, one file.
    on_error: "strict" (default) refuses the drop at its first bad line; "quarantine" sets
        the run aside and packs the others (docs/formats/macroxue.md#quarantine).
    quarantine_share: largest fraction of the runs that may be set aside, 0 to 1; default 0.05.
    enum_form: form of valuation_types.json (docs/formats/macroxue.md#valuation-types);
        default "list".
    game_laws: "refuse" (default) or "warn" (docs/formats/macroxue.md#game-laws). `pack` does
        not judge games itself; the publisher and `verify` do.
    workers: number of processes; default 0, which decides by the size of the drop and the
        processors of the machine. It never changes a byte of the pack.

    Raises ValueError for a value of another type, or one that is not allowed.
    """

    CODE_VERSION: ClassVar = "2"

    layout: Layout = field(default="aligned48", metadata={"help": _LAYOUT_HELP, "in_event": True})
    shard_rows: int = field(default=0, metadata=_SHARD_ROWS)
    on_error: OnError = field(
        default="strict",
        metadata={
            "help": "What happens at a bad line. strict: the drop is refused. quarantine: its run"
            " is set aside in quarantine.jsonl and the others are packed."
        },
    )
    quarantine_share: float = field(
        default=0.05,
        metadata={
            "least": 0,
            "most": 1,
            "unit": "fraction of the runs",
            "help": "Largest fraction of the runs that may be set aside with"
            " on_error = quarantine; with more the build fails.",
        },
    )
    enum_form: EnumForm = field(default="list", metadata={"help": _ENUM_FORM_HELP})
    game_laws: GameLaws = field(default="refuse", metadata={"help": _GAME_LAWS_HELP})
    workers: int = field(
        default=0,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "processes",
            "help": "Number of processes; 0 decides by the size of the drop and the processors"
            " of the machine. The pack is the same for any number.",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class MergeConfig:
    """Settings of `merge`: packs to a pool.

    layout, shard_rows, enum_form: form of the pool, as in PackConfig. Members may have any
        form, each its own.
    game_laws: as in PackConfig; a member that was published with "warn" needs it here too.
    names: names of the members in trace.jsonl and `session`, in their order; default empty,
        which takes the names of their folders.
    workers: threads that read and renumber rows; default 0. 0 and 1 use the caller's thread.

    Raises ValueError for a value of another type, or one that is not allowed.
    """

    CODE_VERSION: ClassVar = "1"

    layout: Layout = field(default="aligned48", metadata={"help": _LAYOUT_HELP, "in_event": True})
    shard_rows: int = field(default=0, metadata=_SHARD_ROWS)
    enum_form: EnumForm = field(default="list", metadata={"help": _ENUM_FORM_HELP})
    game_laws: GameLaws = field(default="refuse", metadata={"help": _GAME_LAWS_HELP})
    names: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "Names of the members in the trace and in the session keys of the pool, in"
            " their order; empty for the names of their folders."
        },
    )
    workers: int = field(
        default=0,
        metadata={
            "affects_output": False,
            "least": 0,
            "most": MOST_WORKERS,
            "unit": "threads",
            "help": "Threads that read and renumber rows; 0 and 1 use the caller's thread. The"
            " pool is the same for any number.",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if len(set(self.names)) != len(self.names) or not all(self.names):
            raise ValueError("names must be different from each other and not empty")
        if any("/" in name for name in self.names):
            raise ValueError("names must not hold '/', which joins them to session keys")


@dataclass(frozen=True)
class ValueConfig:
    """Settings of `value_sidecar`: a pack to its value sidecar.

    gamma: discount of each step, 0 or more; default 0.997.
    reward_scale: factor of `reward_scaled`, above 0; default 1.0. No other column depends on it.
    epsilon: factor of the linear term of h, 0 or more; default 0.001.
    compat: "none" (default) plays with the true ranks; "reference" gives the numbers of the
        original bit for bit: every tile above 32768 has rank 16, so a 65536 and a 131072 merge.

    Raises ValueError for a value of another type, or one that is not allowed.
    """

    CODE_VERSION: ClassVar = "1"

    gamma: float = field(
        default=0.997,
        metadata={
            "help": "Discount of each step in the returns.",
            "least": 0,
            "unit": "factor",
            "in_event": True,
        },
    )
    reward_scale: float = field(
        default=1.0,
        metadata={
            "help": "Factor of the column reward_scaled. No other column uses it.",
            "above": 0,
            "unit": "factor",
        },
    )
    epsilon: float = field(
        default=0.001,
        metadata={
            "help": "Factor of the linear term of h in return_scaled.",
            "least": 0,
            "unit": "factor",
        },
    )
    compat: Compat = field(
        default="none",
        metadata={
            "help": "Ranks that rewards are computed from. none: the true ranks. reference: 16 for"
            " every tile above 32768, which gives the numbers of the original bit for bit."
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)
