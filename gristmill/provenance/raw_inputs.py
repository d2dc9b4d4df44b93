"""Raw files as inputs of a record: listed, sized and hashed, each hash computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from gristmill.hashing import sha256_file
from gristmill.provenance.record import Input, InputsFile, inputs_path, read_inputs, read_record


class KnownHash(NamedTuple):
    """The sha256 of a file that was hashed before.

    trusted_ns: it holds for a file whose inode did not change after this time.
    """

    sha256: str
    trusted_ns: int


Known = Mapping[tuple[str, int, int], KnownHash]
"""Hashes by (path, bytes, mtime_ns)."""


def known_hashes(record_path: Path) -> dict[tuple[str, int, int], KnownHash]:
    """Hashes by (path, bytes, mtime_ns) of the raw inputs of a published record.

    A file that kept its size and times need not be read again; `verify` reads it.
    Empty where the list of inputs is not the one that the record describes.
    """
    if not record_path.exists():
        return {}
    record = read_record(record_path)
    if record.inputs_file and not _is_whole(inputs_path(record_path), record.inputs_file):
        return {}
    inputs = read_inputs(record, record_path)
    return {
        (item.path, item.bytes, item.mtime_ns): KnownHash(item.sha256, record.trusted_ns)
        for item in inputs
        if item.path and item.sha256 and item.bytes is not None and item.mtime_ns is not None
    }


def _is_whole(path: Path, listed: InputsFile) -> bool:
    return path.is_file() and sha256_file(path) == listed.sha256


def raw_inputs(
    root: Path,
    files: Iterable[Path],
    asset: str,
    partition: str | None,
    known: Known,
) -> list[Input]:
    """Inputs for raw files, in the given order.

    root: the data root; paths become relative to it.
    files: below `root`.
    asset, partition: of the drop that the files belong to.
    known: from `known_hashes`; files in it are not hashed, if their inode is as old.

    Raises OSError where a file cannot be read.
    """

    def describe(file: Path) -> Input:
        path, stat = file.relative_to(root).as_posix(), file.stat()
        earlier = known.get((path, stat.st_size, stat.st_mtime_ns))
        is_known = earlier is not None and stat.st_ctime_ns <= earlier.trusted_ns
        return Input(
            asset=asset,
            partition=partition,
            path=path,
            bytes=stat.st_size,
            sha256=earlier.sha256 if earlier and is_known else sha256_file(file),
            mtime_ns=stat.st_mtime_ns,
        )

    with ThreadPoolExecutor() as threads:
        return list(threads.map(describe, files))
