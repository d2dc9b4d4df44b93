"""Artifacts as Parquet: a file or more for each split, in row groups that viewers read.

Source: `docs/consumers.md#datasets`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import yaml

from gristmill import families
from gristmill.contract import BadInput, GristmillError
from gristmill.dispatch import recorded_assets
from gristmill.exports.parquet import writer
from gristmill.exports.table import Split, columns_of, fitted

_FILE_BYTES = 256 << 20


def splits_at(place: Path) -> list[Split]:
    """The splits in the folder of an artifact, in their order.

    place: the folder. Raises GristmillError where it is of no asset that has rows.
    """
    assets = dict.fromkeys(recorded_assets(place).values())
    found = [each for asset in assets for each in families.splits_of(asset, place)]
    if not found:
        raise GristmillError(f"{place}: is no folder of an artifact that has rows")
    return found


def project(place: Path, out: Path) -> dict[str, int]:
    """Write the rows of an artifact as Parquet into a new folder.

    place: folder of the artifact. out: a folder that does not exist; it is whole or not there.

    Returns the rows of each file, by its path in the folder: `data/train-00000-of-00001.parquet`,
    with a folder more for each of several tables, which a README.md names. Memory does not grow
    with the artifact.
    Raises GristmillError for a folder without rows or an `out` that exists, BadInput for damage.
    """
    if out.exists():
        raise BadInput(out, "exists: give a folder that does not")
    staged = out.with_name(f".{out.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        staged.mkdir(parents=True)
        rows: dict[str, int] = {}
        found = splits_at(place)
        groups = grouped(found)
        for name, group in groups.items():
            schema = columns_of(each for each in found if each.table == name[0])
            rows |= _written(group, staged, name, schema)
        (staged / "README.md").write_text(_head(groups))
        staged.rename(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return rows


def _head(groups: Mapping[tuple[str, str], object]) -> str:
    """The README.md by which `load_dataset` finds the files of each table."""
    configs: dict[str, list[dict[str, str]]] = {}
    for table, split in groups:
        path = f"data/{table}/{split}-*.parquet" if table else f"data/{split}-*.parquet"
        configs.setdefault(table or "default", []).append({"split": split, "path": path})
    listed = [{"config_name": name, "data_files": files} for name, files in configs.items()]
    return f"---\n{yaml.safe_dump({'configs': listed}, sort_keys=False)}---\n"


def grouped(splits: Iterable[Split]) -> dict[tuple[str, str], list[Split]]:
    """Splits by table and name, as several partitions have parts of one."""
    groups: dict[tuple[str, str], list[Split]] = {}
    for each in splits:
        groups.setdefault((each.table, each.name), []).append(each)
    return groups


def _written(
    group: Sequence[Split], out: Path, name: tuple[str, str], schema: pa.Schema
) -> Iterator[tuple[str, int]]:
    table, split = name
    folder = out / "data" / table if table else out / "data"
    folder.mkdir(parents=True, exist_ok=True)
    counts: list[int] = []
    file, path = None, folder
    for batch in (batch for each in group for batch in each.batches()):
        if file is not None and path.stat().st_size > _FILE_BYTES:
            file.close()
            file = None
        if file is None:
            path = folder / f"{len(counts)}.{split}"
            file = writer(path, schema)
            counts.append(0)
        file.write(fitted(batch, schema))
        counts[-1] += len(batch)
    if file is not None:
        file.close()
    for number, rows in enumerate(counts):
        last = folder / f"{split}-{number:05d}-of-{len(counts):05d}.parquet"
        (folder / f"{number}.{split}").rename(last)
        yield last.relative_to(out).as_posix(), rows
