"""The pool file `drops/pools/<pool>.toml`. Source: docs/formats/macroxue.md#pool-file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.macroxue.config import MergeConfig, ViewConfig
from gristmill.printable import command
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import Table
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

POOL_TABLE: Final = Table(
    "macroxue/pool", MergeConfig, not_set={"names": "the names are those in `members`"}
)
"""The table of a pool's settings, in its file and in `gristmill.toml` of the data root."""
VIEW_TABLE: Final = Table("macroxue/training_view", ViewConfig)
"""The same for a training view: this module, unlike `view_file.py`, loads nothing heavy."""
_KNOWN = ("members", "delete_members", "macroxue")


@dataclass(frozen=True)
class PoolFile:
    """The contents of a pool file.

    delete_members: whether the packs are deleted after the pool was published and verified.
    """

    members: tuple[str, ...]
    delete_members: bool
    settings: Mapping[str, Any]


def read_pool_file(path: Path, links: LinkRule = REFUSE_LINKS) -> PoolFile:
    """Read and check a pool file."""
    raw = opened(path, _KNOWN, "pool", links)
    members = raw.get("members")
    if not isinstance(members, list) or not all(isinstance(name, str) for name in members):
        raise BadInput(path, "`members` must be a list of names of packs")
    if len(members) < 2 or len(set(members)) != len(members):
        raise BadInput(path, "`members` must name two or more packs, each once")
    for name in members:
        if reason := keys.refusal(name):
            raise BadInput(path, f"`members`: {reason}")
    delete = raw.get("delete_members", False)
    if not isinstance(delete, bool):
        raise BadInput(path, f"delete_members = {shown(delete)}: must be true or false")
    return PoolFile(tuple(members), delete, settings_in(path, raw, POOL_TABLE))


def opened(path: Path, known: Sequence[str], noun: str, links: LinkRule) -> dict[str, Any]:
    """The keys of a file that says what a partition is made of."""
    try:
        raw = read_toml(path, root=path.parent, links=links)
    except FileNotFoundError as error:
        raise BadInput(
            path,
            f"the {noun} file is gone: bring it back, or retire its partition with "
            f"`{command('retire', path.name.removesuffix('.toml'))}`",
        ) from error
    if unknown := sorted(set(raw) - set(known)):
        name, keys_known = unknown[0], f"the known keys are {', '.join(known)}"
        raise BadInput(path, f"unknown key {shown(name)}{did_you_mean(name, known)}; {keys_known}")
    return raw


def settings_in(path: Path, raw: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """The table of a file below `[macroxue]`, checked; an empty one where the file has none."""
    tables, name = raw.get("macroxue", {}), table.name.removeprefix("macroxue/")
    if not isinstance(tables, dict):
        raise BadInput(path, f"[macroxue] must hold the table {table.header}, not {shown(tables)}")
    if others := sorted(set(tables) - {name}):
        rule = f"[macroxue] has the unknown key {shown(others[0])}; only {table.header} is read"
        raise BadInput(path, rule)
    return table.checked(path, tables.get(name, {}))
