"""What can be chosen in the 2048 family: one config for each builder.

CODE_VERSION of a config is raised when its builder makes other bytes of the same
input and config. It stands here, apart from the builders, so that whoever only
asks for it loads no NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

Layout = Literal["aligned48", "packed46"]
EnumForm = Literal["list", "object"]
LAYOUTS = get_args(Layout)


@dataclass(frozen=True)
class PackConfig:
    """How to pack.

    layout: "aligned48" is the original document's dtype as `np.save` writes it,
        "packed46" the Rust packer's files byte for byte (docs/formats/macroxue.md#row-layouts).
    shard_rows: 0 for one steps.npy, else exact rows a shard.
    on_error: "strict" refuses the drop at the first bad line; "quarantine" sets
        the whole run aside with its reason and packs the others.
    quarantine_share: most runs that may be set aside, as a share of those found.
    enum_form: "list" (index -> name) or "object" (the Rust packer's name -> id).
    game_laws: whether a game that was not played by the rules of 2048 keeps the
        pack from being published, or is let through ("warn"), also by `verify`.
        `pack` itself does not judge games.
    workers: processes; 0 decides by the drop's size and the machine's processors.
    """

    CODE_VERSION: ClassVar = "2"

    layout: Layout = "aligned48"
    shard_rows: int = 0
    on_error: Literal["strict", "quarantine"] = "strict"
    quarantine_share: float = 0.05
    enum_form: EnumForm = "list"
    game_laws: Literal["refuse", "warn"] = "refuse"
    workers: int = field(default=0, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        for name, allowed in (
            ("layout", LAYOUTS),
            ("on_error", ("strict", "quarantine")),
            ("enum_form", ("list", "object")),
            ("game_laws", ("refuse", "warn")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")
        if self.shard_rows < 0 or self.workers < 0:
            raise ValueError("shard_rows and workers must be 0 or more")
        if not 0 <= self.quarantine_share <= 1:
            raise ValueError("quarantine_share must lie between 0 and 1")


@dataclass(frozen=True)
class MergeConfig:
    """How to merge.

    layout, shard_rows, enum_form: form of the output, as in PackConfig; the
        inputs may have any, each its own.
    game_laws: as in PackConfig, for pools of packs that were let through.
    names: what to call the packs in trace.jsonl and `session`, in order; empty
        for the names of their folders.
    workers: threads that read and renumber; 0 and 1 do it in the caller's.
    """

    CODE_VERSION: ClassVar = "1"

    layout: Layout = "aligned48"
    shard_rows: int = 0
    enum_form: EnumForm = "list"
    game_laws: Literal["refuse", "warn"] = "refuse"
    names: tuple[str, ...] = ()
    workers: int = field(default=0, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {LAYOUTS}, not {self.layout!r}")
        if self.game_laws not in ("refuse", "warn"):
            raise ValueError(f"game_laws must be 'refuse' or 'warn', not {self.game_laws!r}")
        if self.enum_form not in ("list", "object"):
            raise ValueError(f"enum_form must be 'list' or 'object', not {self.enum_form!r}")
        if self.shard_rows < 0 or self.workers < 0:
            raise ValueError("shard_rows and workers must be 0 or more")
        if len(set(self.names)) != len(self.names) or not all(self.names):
            raise ValueError("names must be different from each other and not empty")
        if any("/" in name for name in self.names):
            raise ValueError("names must not hold '/', which joins them to session keys")


@dataclass(frozen=True)
class ValueConfig:
    """How values are computed (docs/formats/macroxue.md#value-sidecar).

    gamma: discount a step, 0 or more. reward_scale: above 0, for `reward_scaled`
        alone. epsilon: the linear part of h, 0 or more.
    compat: "none" plays with true ranks; "reference" with decoded boards, where
        every tile above 32768 has rank 16, as the original does: the same numbers
        bit for bit, merges between a 65536 and a 131072 included.
    """

    CODE_VERSION: ClassVar = "1"

    gamma: float = 0.997
    reward_scale: float = 1.0
    epsilon: float = 0.001
    compat: Literal["none", "reference"] = "none"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be 0 or more, not {self.gamma}")
        if not (math.isfinite(self.reward_scale) and self.reward_scale > 0):
            raise ValueError(f"reward_scale must be above 0, not {self.reward_scale}")
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be 0 or more, not {self.epsilon}")
        if self.compat not in ("none", "reference"):
            raise ValueError(f"compat must be 'none' or 'reference', not {self.compat!r}")
