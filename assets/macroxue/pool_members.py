"""Pools and the packs they are made of: which they take, which they deleted, which are stale."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.macroxue.raw.pool_file import read_pool_file
from gristmill.provenance import Input
from resources import Lake

PACK = "macroxue/pack"


def member(lake: Lake, pool_artifact: str, name: str) -> Input:
    """The published pack `name`, or what the pool's record says of it where it was deleted."""
    artifact = lake.artifact("macroxue", "packs", name)
    path = lake.root / pool_artifact / provenance.RECORD
    if not (lake.root / artifact).exists() and path.exists():
        record = provenance.read_record(path)
        for item in provenance.read_inputs(record, path):
            if item.path == artifact and artifact in record.deleted_inputs:
                return item
    return lake.published(artifact, PACK, name)


def refuse_merged_away(lake: Lake, key: str) -> None:
    """Raise NothingToBuild for a pack that a pool has taken in and deleted.

    As long as the pool's file says so, building the pack would only have it deleted again.
    """
    artifact = lake.artifact("macroxue", "packs", key)
    if (lake.root / artifact).exists():
        return
    for path in sorted((lake.root / "macroxue/pools").glob(f"*/{provenance.RECORD}")):
        file = lake.inbox("pools") / f"{path.parent.name}.toml"
        if not file.exists() or artifact not in provenance.read_record(path).deleted_inputs:
            continue
        described = read_pool_file(file)
        if described.delete_members and key in described.members:
            raise NothingToBuild(
                f"{key} stands in the pool {path.parent.name}, which deleted its pack: to build "
                f"it again say delete_members = false in {file.name}"
            )


def pool_refusal(path: Path) -> str | None:
    """Why the pool that the file `path` describes cannot be merged yet, None where it can."""
    lake = Lake(data_root=str(path.parents[2]))
    try:
        described = read_pool_file(path)
        for name in described.members:
            member(lake, lake.artifact("macroxue", "pools", path.stem), name)
    except GristmillError as error:
        return str(error)
    return None


def stale_members(lake: Lake, pools: Collection[str] | None) -> dict[str, str]:
    """Members that are not what their pool was merged from: what became of each, by `pool/member`.

    pools: which to look at, None for all that are published.
    """
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
    """Members of a pool that are not what it was merged from, and what became of them."""
    for item in inputs:
        if item.path is None or item.path in record.deleted_inputs:
            continue
        found = provenance.published_version(lake.root / item.path, item.partition)
        if found != item.data_version:
            yield str(item.partition), "is gone" if found is None else "was built anew"
    file = lake.inbox("pools") / f"{record.partition}.toml"
    if not file.exists():
        yield file.name, "is gone"
    elif (named := read_pool_file(file).members) != tuple(item.partition for item in inputs):
        yield file.name, f"names other members now: {', '.join(named)}"
