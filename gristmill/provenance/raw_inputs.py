"""Raw files as inputs of a record: listed, sized and hashed, each hash computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gristmill.hashing import sha256_file
from gristmill.provenance.record import Input, InputsFile, inputs_path, read_inputs, read_record


def known_hashes(record_path: Path) -> dict[tuple[str, int, int], str]:
    """sha256 by (path, bytes, mtime_ns) of the raw inputs of a published record.

    A file that kept its size and time need not be read again; `verify` reads it.
    Empty where the list of inputs is not the one that the record describes.
    """
    if not record_path.exists():
        return {}
    record = read_record(record_path)
    if record.inputs_file and not _is_whole(inputs_path(record_path), record.inputs_file):
        return {}
    inputs = read_inputs(record, record_path)
    return {
        (item.path, item.bytes, item.mtime_ns): item.sha256
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
    known: Mapping[tuple[str, int, int], str],
) -> list[Input]:
    """Inputs for raw files, in the given order.

    root: the data root; paths become relative to it.
    files: below `root`.
    asset, partition: of the drop that the files belong to.
    known: from `known_hashes`; files in it are not hashed.

    Raises OSError where a file cannot be read.
    """

    def describe(file: Path) -> Input:
        path, stat = file.relative_to(root).as_posix(), file.stat()
        stamp = (path, stat.st_size, stat.st_mtime_ns)
        return Input(
            asset=asset,
            partition=partition,
            path=path,
            bytes=stat.st_size,
            sha256=known.get(stamp) or sha256_file(file),
            mtime_ns=stat.st_mtime_ns,
        )

    with ThreadPoolExecutor() as threads:
        return list(threads.map(describe, files))
