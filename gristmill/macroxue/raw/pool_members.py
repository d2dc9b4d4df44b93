"""The member packs of a pool: those that are there, that it deleted, and that changed since."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.data_root import DataRoot, NotBuilt
from gristmill.inbox.account import Account, IsThere, Waits
from gristmill.macroxue.raw.pool_file import POOL_TABLE, read_pool_file
from gristmill.provenance import Input
from gristmill.settings.fields import equal
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

PACK = "macroxue/pack"
_MOST_NAMED = 5


def member(lake: DataRoot, pool_artifact: str, name: str) -> Input:
    """A member of a pool as an input; if the pool deleted it, as the pool's record has it."""
    artifact = lake.artifact("macroxue", "packs", name)
    path = lake.root / pool_artifact / provenance.RECORD
    if not (lake.root / artifact).exists() and path.exists():
        record = provenance.read_record(path)
        for item in provenance.read_inputs(record, path):
            if item.path == artifact and artifact in record.deleted_inputs:
                return item
    return lake.published(artifact, PACK, name)


def account(file: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a pool's file: it is taken. Raises BadInput where it breaks a rule."""
    read_pool_file(file, links)
    return Account({"": [file.name]})


def change(file: Path, root: Path, config: Mapping[str, Any], _raw: Sequence[str]) -> str:
    """What the next build of a pool takes instead of what its record has; empty for nothing."""
    lake = DataRoot(root)
    described = read_pool_file(file, lake.rules("pools")[0])
    given = {**lake.settings(POOL_TABLE.name), **described.settings}
    found = list(POOL_TABLE.changes(given, config))
    if not equal(described.members, config.get("names")):
        found.insert(0, f"the members are now {', '.join(described.members)}")
    return "; ".join(found)


def needs(file: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Waits for a pool with members that are not published."""
    lake = DataRoot(root)
    missing = []
    for name in read_pool_file(file, lake.rules("pools")[0]).members:
        try:
            member(lake, lake.artifact("macroxue", "pools", file.stem), name)
        except NotBuilt:
            missing.append(name)
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        named = ", ".join(missing[:_MOST_NAMED])
        raise Waits(f"{file}: waits for {PACK} {named}{more}, which is not built: bring its drop")


def refuse_merged_away(lake: DataRoot, key: str) -> None:
    """Raise NothingToBuild if a pool merged and deleted the pack, and would delete it again."""
    artifact = lake.artifact("macroxue", "packs", key)
    if (lake.root / artifact).exists():
        return
    for path in (item.record_path for item in lake.artifacts("macroxue/pools")):
        file = lake.inbox("pools") / f"{path.parent.name}.toml"
        if not file.exists() or artifact not in provenance.read_record(path).deleted_inputs:
            continue
        try:
            described = read_pool_file(file, lake.link_rule())
        except GristmillError as error:
            raise NothingToBuild(
                f"{key} was a member of the pool {path.parent.name}, which deleted its pack, and "
                f"the file of the pool cannot be read: {error}"
            ) from error
        if described.delete_members and key in described.members:
            raise NothingToBuild(
                f"{key} is a member of the pool {path.parent.name}, which deleted its pack: to "
                f"build the pack again, set delete_members = false in drops/pools/{file.name}"
            )


def stale_members(lake: DataRoot, pools: Collection[str] | None) -> dict[str, str]:
    """Returns what changed in the members of pools, by `pool/member`; empty if nothing did.

    pools: keys of the pools to compare; None for every published pool.
    """
    stale: dict[str, str] = {}
    for path in (item.record_path for item in lake.artifacts("macroxue/pools")):
        record = provenance.read_record(path)
        if pools is None or record.partition in pools:
            changed = _changed(lake, record, provenance.read_inputs(record, path))
            stale |= {f"{record.partition}/{name}": why for name, why in changed}
    return stale


def _changed(
    lake: DataRoot, record: provenance.Record, inputs: Sequence[Input]
) -> Iterator[tuple[str, str]]:
    """Yields the members of a pool that are not what it was merged from, and how they differ."""
    for item in inputs:
        if item.path is None or item.path in record.deleted_inputs:
            continue
        current = provenance.published_version(lake.root / item.path, item.partition)
        if current != item.data_version:
            yield str(item.partition), "is gone" if current is None else "was rebuilt"
    file = lake.inbox("pools") / f"{record.partition}.toml"
    if not file.exists():
        yield file.name, "is gone"
        return
    try:
        named = read_pool_file(file, lake.link_rule()).members
    except GristmillError as error:
        yield file.name, f"cannot be read: {error}"
        return
    if named != tuple(item.partition for item in inputs):
        yield file.name, f"now names other members: {', '.join(named)}"
