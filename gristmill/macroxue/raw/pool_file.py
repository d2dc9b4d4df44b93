"""The pool file, which says which packs a pool is merged from: `drops/pools/<pool>.toml`.

members = ["d6_v1", "d7_v1"]
delete_members = false

[macroxue.pool]
shard_rows = 10_000_000

Source: docs/formats/macroxue.md#pool-file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

_KNOWN = {"members", "delete_members", "macroxue"}


@dataclass(frozen=True)
class PoolFile:
    """The contents of a pool file.

    members: names of published packs, in the order of the pool.
    delete_members: whether the packs are deleted after the pool was published and verified.
    settings: fields of MergeConfig without `names`.
    """

    members: tuple[str, ...]
    delete_members: bool
    settings: Mapping[str, Any]


def read_pool_file(path: Path, links: LinkRule = REFUSE_LINKS) -> PoolFile:
    """Read and check a pool file.

    path: the file, in its inbox.
    links: what happens if it is a link; default: it is refused.

    Raises BadInput, naming file and rule, for a file that is gone, is not TOML or breaks a rule,
    and OSError where it cannot be read. Source: docs/formats/macroxue.md#pool-file.
    """
    try:
        raw = read_toml(path, root=path.parent, links=links)
    except FileNotFoundError as error:
        raise BadInput(
            path,
            f"the pool file is gone: bring it back, or retire its partition with "
            f"`gristmill retire {path.stem}`",
        ) from error
    if unknown := sorted(set(raw) - _KNOWN):
        raise BadInput(path, f"unknown key {unknown[0]!r}; the known keys are {sorted(_KNOWN)}")
    members = raw.get("members")
    if not isinstance(members, list) or not all(isinstance(name, str) for name in members):
        raise BadInput(path, "`members` must be a list of names of packs")
    if len(members) < 2 or len(set(members)) != len(members):
        raise BadInput(path, "`members` must name two or more packs, each once")
    for name in members:
        if reason := keys.refusal(name):
            raise BadInput(path, f"`members`: {reason}")
    delete = raw.get("delete_members", False)
    settings = raw.get("macroxue", {})
    settings = settings.get("pool", {}) if isinstance(settings, dict) else None
    if not isinstance(delete, bool) or not isinstance(settings, dict):
        raise BadInput(path, "`delete_members` must be true or false, [macroxue.pool] a table")
    if "names" in settings:
        raise BadInput(
            path, "[macroxue.pool]: `names` is not allowed, the names are those in `members`"
        )
    return PoolFile(tuple(members), delete, settings)
