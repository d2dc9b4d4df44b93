"""The member packs of pools: recognise those that a pool deleted, list stale ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gristmill import provenance
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.macroxue.raw.pool_file import read_pool_file
from gristmill.provenance import Input
from resources import Lake


def refuse_merged_away(lake: Lake, key: str) -> None:
    """Raise NothingToBuild if a pool merged and deleted the pack, and would delete it again."""
    artifact = lake.artifact("macroxue", "packs", key)
    if (lake.root / artifact).exists():
        return
    for path in sorted((lake.root / "macroxue/pools").glob(f"*/{provenance.RECORD}")):
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


def stale_members(lake: Lake, pools: Collection[str] | None) -> dict[str, str]:
    """Returns what changed in the members of pools, by `pool/member`; empty if nothing did."""
    stale: dict[str, str] = {}
    for path in sorted((lake.root / "macroxue/pools").glob(f"*/{provenance.RECORD}")):
        record = provenance.read_record(path)
        if pools is None or record.partition in pools:
            changed = _changed(lake, record, provenance.read_inputs(record, path))
            stale |= {f"{record.partition}/{name}": why for name, why in changed}
    return stale


def _changed(
    lake: Lake, record: provenance.Record, inputs: Sequence[Input]
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
