"""Artifacts for other programs: as Parquet, in row groups that viewers read, and as documents.

Source: `docs/consumers.md#datasets`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.card import body, completed, head, records_at, splits_at
from gristmill.exports.litdata_chunks import CHUNK_TOKENS, chunks
from gristmill.exports.parquet import writer
from gristmill.exports.table import Split, columns_of, fitted, grouped
from gristmill.exports.text_files import text_files
from gristmill.exports.token_files import FILE_TOKENS, token_files

PARQUET: Final = "parquet"
TOKEN_FORMATS: Final = {"llm.c": (token_files, FILE_TOKENS), "litdata": (chunks, CHUNK_TOKENS)}
"""Of each format of tokens what writes a split, and after how many tokens a file ends."""
FORMATS: Final = (*TOKEN_FORMATS, "nanochat")
"""Formats of documents, of which a program reads the files as they are."""
_NAMES: Final = {"validation": "val"}
_FILE_BYTES = 256 << 20


def project(place: Path, out: Path, to: str = PARQUET, most: int | None = None) -> dict[str, int]:
    """Write the rows of an artifact for other programs into a new folder.

    place: folder of the artifact. out: a folder that does not exist; it is whole or not there.
    to: one of `FORMATS`, or Parquet with a README.md. most: as of `write`.

    Returns the rows, tokens or texts of each file, by its path in the folder; of Parquet
    `data/train-00000-of-00001.parquet`, with a folder more for each of several tables. Memory does
    not grow with the artifact.
    Raises GristmillError for a folder without such rows or an `out` that exists, BadInput for
    damage.
    """
    if out.exists():
        raise BadInput(out, "exists: give a folder that does not")
    splits = splits_at(place)
    staged = out.with_name(f".{out.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        staged.mkdir(parents=True)
        if to == PARQUET:
            files = written(splits, staged)
            records = records_at(place)
            found = head([*files], records, sum(files.values()))
            (staged / "README.md").write_text(completed(body(records, False), found, out))
            counts = {each.file: rows for each, rows in files.items()}
        else:
            counts = write(to, splits, staged, most, place)
        staged.rename(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return counts


def write(
    to: str, splits: Sequence[Split], out: Path, most: int | None = None, place: Path | None = None
) -> dict[str, int]:
    """Write documents in a format into a folder.

    to: one of `FORMATS`. splits: of artifacts. out: the folder, without files of this format.
    most: after so many tokens a file ends, with a whole document; default that of the format.
    place: of the artifact, for errors.

    Returns the tokens or texts of each file by its path. Raises GristmillError where a split has
    none, BadInput for damage.
    """
    if to == "nanochat":
        if any(each.texts is None for each in splits):
            raise GristmillError(f"{place}: has no texts: give the folder of reasoning/normalized")
        return text_files(splits, out)
    ends = {each.tokens.end if each.tokens else None for each in splits}
    if len(ends) > 1 or None in ends:
        rule = "give the folder of reasoning/gpt2_shards, reasoning/tokens or synth/kd_shards"
        raise GristmillError(f"{place}: has no documents of tokens: {rule}")
    of_split, usual = TOKEN_FORMATS[to]
    counts: dict[str, int] = {}
    for name in dict.fromkeys(each.name for each in splits):
        own = [each for each in splits if each.name == name]
        counts |= of_split(_NAMES.get(name, name), own, out, most or usual)
    return counts


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
