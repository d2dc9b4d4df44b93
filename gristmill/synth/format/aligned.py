"""Alignment checks: do the three datasets of a shard belong together, and which data are they?

Source: `docs/formats/synth.md#alignment-check`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.synth.format import indexed

DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "tokens": np.dtype("<i4"),
    "lossmask": np.dtype("u1"),
    "span": np.dtype("u1"),
}
"""The three datasets of a shard, by suffix: `docs/formats/synth.md#data-types`."""


def sibling(tokens: Path, name: str) -> Path:
    """Return the prefix of another dataset of the same shard and split."""
    return tokens.with_name(f"{tokens.name.removesuffix('_tokens')}_{name}")


def digest(tokens: Path) -> str:
    """Compare a shard's three datasets with each other and with their record; return their digest.

    tokens: prefix of the tokens dataset, without `.bin`.

    The digest is the data version of the provenance record. Without a record it
    is the sha256 of the three index files, which decide Megatron's index cache.
    The values in the bin files are not read; `laws/values.py` checks them.

    Raises RuntimeError if counts, lengths, document indices, dtypes, file sizes or
    recorded digests differ.
    """
    try:
        datasets = {name: indexed.read(sibling(tokens, name)) for name in DTYPES}
        record = _record(tokens)
    except (GristmillError, OSError) as error:
        raise RuntimeError(f"{tokens}: the dataset is not complete: {error}") from error
    _compare_boundaries(tokens, datasets)
    hashes = {}
    for prefix in (sibling(tokens, name) for name in DTYPES):
        index = prefix.with_name(f"{prefix.name}.idx")
        hashes[f"{tokens.parent.name}/{index.name}"] = sha256_file(index)
    if record is None:
        return hashlib.sha256("".join(hashes.values()).encode()).hexdigest()
    _compare_with_record(tokens, record, hashes)
    return record.data_version


def _compare_boundaries(tokens: Path, datasets: Mapping[str, indexed.Indexed]) -> None:
    for name, dtype in DTYPES.items():
        if datasets[name].dtype != dtype:
            raise RuntimeError(f"{tokens}: {name} is {datasets[name].dtype}, not {dtype}")
        if not indexed.same_boundaries(datasets[name], datasets["tokens"]):
            raise RuntimeError(
                f"{tokens}: documents of tokens and {name} differ in number or length"
            )


def _compare_with_record(
    tokens: Path, record: provenance.Record, hashes: Mapping[str, str]
) -> None:
    """Compare the index files by sha256 and the bin files by size with the record."""
    if record.digest != record.computed_digest():
        raise RuntimeError(f"{tokens}: its provenance record was changed after it was written")
    outputs = {output.path: output for output in record.outputs}
    for path, sha256 in hashes.items():
        if path not in outputs or outputs[path].sha256 != sha256:
            raise RuntimeError(f"{tokens}: {path} is not the file in its provenance record")
        binary = path.removesuffix(".idx") + ".bin"
        size = (tokens.parent.parent / binary).stat().st_size
        if binary not in outputs or outputs[binary].bytes != size:
            raise RuntimeError(
                f"{tokens}: {binary} has {size} bytes, its provenance record has another size"
            )


def cache_folder(tokens: Path) -> Path:
    """Return the folder for index caches of this dataset, outside of the published artifact.

    The folder is in the `cache` folder of the data root, which the provenance
    record determines. Without a record, or if the dataset is not where its record
    says, the folder is in `cache` beside the dataset.
    """
    dataset = tokens.absolute().parent.parent
    inside = Path("synth") / dataset.name / tokens.parent.name / tokens.name
    if (record := _record(tokens)) is not None:
        depth = len(Path(record.artifact).parts)
        root = dataset.parents[depth - 1]
        if root / record.artifact == dataset:
            return root / "cache" / inside
    return dataset.parent / "cache" / inside


def _record(tokens: Path) -> provenance.Record | None:
    """The provenance record of the shard, if the dataset has one."""
    number = re.fullmatch(r"shard_(\d+)_tokens", tokens.name)
    if number is None:
        return None
    path = provenance.record_path(tokens.parent.parent, number[1], shared=True)
    return provenance.read_record(path) if path.exists() else None
