"""Which family answers for a folder: by the records in it, else by its files."""

from __future__ import annotations

from pathlib import Path

from gristmill import provenance
from gristmill.families import Kind, Misuse, catalogs, kind_of_asset, other_kind


def kinds_at(path: Path) -> list[Kind]:
    """The kinds of the artifacts in a folder.

    Several where partitions of several assets share the folder. A folder that no asset made, or one
    that is not known, is of a kind that a family can show, if its files say so. Raises Misuse where
    the folder holds nothing that a family knows, and GristmillError where a record cannot be read.
    """
    recorded = dict.fromkeys(recorded_assets(path).values())
    kinds = [kind for asset in recorded if (kind := kind_of_asset(asset)) is not None]
    if not kinds:
        found = [asset for each in catalogs() if (asset := each.asset_of(path)) is not None]
        of_assets = [] if recorded else [kind_of_asset(asset) for asset in found]
        kinds = [kind for kind in (*of_assets, *map(other_kind, found)) if kind is not None]
    if not kinds:
        known = ", ".join(kind.asset for each in catalogs() for kind in each.kinds)
        raise Misuse(f"{path} is not an artifact of a known asset; the assets are {known}")
    return kinds


def recorded_assets(path: Path) -> dict[str | None, str]:
    """The assets of the artifacts in a folder by partition, None for one that has it to itself.

    Raises GristmillError where a record cannot be read.
    """
    own = path / provenance.RECORD
    if own.exists():
        return {None: provenance.read_record(own).asset}
    records = sorted((path / provenance.SHARED_RECORDS).glob("*.json"))
    return {record.stem: provenance.read_record(record).asset for record in records}
