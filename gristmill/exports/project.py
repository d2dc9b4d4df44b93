"""Artifacts as Parquet: a file or more for each split, in row groups that viewers read.

Source: `docs/consumers.md#datasets`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from gristmill.contract import BadInput
from gristmill.exports.card import body, completed, head, records_at, splits_at
from gristmill.exports.parquet import writer
from gristmill.exports.table import Split, columns_of, fitted, grouped

_FILE_BYTES = 256 << 20


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
        files = written(splits_at(place), staged)
        records = records_at(place)
        found = head([*files], records, sum(files.values()))
        (staged / "README.md").write_text(completed(body(records, False), found, out))
        staged.rename(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return {each.file: rows for each, rows in files.items()}


def written(
    splits: Sequence[Split], out: Path, above: str = "data", partition: str = ""
) -> dict[Split, int]:
    """Write rows as Parquet below a folder.

    splits: of an artifact. out: the folder. above: path in it, with a folder more for each of
    several tables. partition: whose rows are written; default: those of all.

    Returns a split for each file, with its path in `out`, and its rows.
    Raises BadInput for damage, and as `columns_of`.
    """
    files: dict[Split, int] = {}
    asked = (each for each in splits if not partition or each.partition in ("", partition))
    for (table, name), group in grouped(asked).items():
        schema = columns_of(each for each in splits if each.table == table)
        folder = out / above / table
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{name}-{group[0].partition}" if partition and group[0].partition else name
        for path, rows in _written(group, folder, stem, schema):
            files[replace(group[0], file=path.relative_to(out).as_posix())] = rows
    return files


def _written(
    group: Sequence[Split], folder: Path, stem: str, schema: pa.Schema
) -> Iterator[tuple[Path, int]]:
    counts: list[int] = []
    file, path = None, folder
    for batch in (batch for each in group for batch in each.batches()):
        if file is not None and path.stat().st_size > _FILE_BYTES:
            file.close()
            file = None
        if file is None:
            path = folder / f"{len(counts)}.{stem}"
            file = writer(path, schema)
            counts.append(0)
        file.write(fitted(batch, schema))
        counts[-1] += len(batch)
    if file is not None:
        file.close()
    for number, rows in enumerate(counts):
        last = folder / f"{stem}-{number:05d}-of-{len(counts):05d}.parquet"
        yield (folder / f"{number}.{stem}").rename(last), rows
