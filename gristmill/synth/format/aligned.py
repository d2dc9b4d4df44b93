"""Whether the three datasets of a shard belong together, and what data they are.

Needs neither torch nor Megatron. Source:
`docs/formats/synth.md#alignment-check`.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

import numpy as np

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.synth.format import indexed

DTYPES: Final = {"tokens": np.dtype("<i4"), "lossmask": np.dtype("u1"), "span": np.dtype("u1")}


def sibling(tokens: Path, name: str) -> Path:
    """Prefix of the dataset `name` that belongs to the prefix `.._tokens`."""
    return tokens.with_name(f"{tokens.name.removesuffix('_tokens')}_{name}")


def digest(tokens: Path) -> str:
    """Check a shard's three datasets against each other and their record; digest of the data.

    tokens: the prefix, without `.bin`. With a provenance record the digest is
    its data version, else the sha256 of the three indices, on which alone
    Megatron's index caches depend. Values in the `.bin` files are not read:
    `laws.kd_laws` does that.

    Raises RuntimeError for any difference in counts, lengths, document indices,
    dtypes, file sizes or recorded digests.
    """
    try:
        opened = {name: indexed.read(sibling(tokens, name)) for name in DTYPES}
        record = _record(tokens)
    except (GristmillError, OSError) as error:
        raise RuntimeError(f"{tokens}: not a whole dataset: {error}") from error
    for name, dtype in DTYPES.items():
        if opened[name].dtype != dtype:
            raise RuntimeError(f"{tokens}: {name} is {opened[name].dtype}, not {dtype}")
        if not indexed.same_boundaries(opened[name], opened["tokens"]):
            raise RuntimeError(f"{tokens}: documents of tokens and {name} have other lengths")
    hashes = {
        f"{tokens.parent.name}/{prefix.name}.idx": sha256_file(
            prefix.with_name(prefix.name + ".idx")
        )
        for prefix in (sibling(tokens, name) for name in DTYPES)
    }
    if record is None:
        return hashlib.sha256("".join(hashes.values()).encode()).hexdigest()
    if record.digest != record.computed_digest():
        raise RuntimeError(f"{tokens}: its provenance record was changed after it was written")
    outputs = {output.path: output for output in record.outputs}
    for path, found in hashes.items():
        if path not in outputs or outputs[path].sha256 != found:
            raise RuntimeError(f"{tokens}: {path} is not the file that its record speaks of")
        binary = path.removesuffix(".idx") + ".bin"
        size = (tokens.parent.parent / binary).stat().st_size
        if binary not in outputs or outputs[binary].bytes != size:
            raise RuntimeError(f"{tokens}: {binary} has {size} bytes, its record has others")
    return record.data_version


def cache_folder(tokens: Path) -> Path:
    """Where index caches of this prefix belong: in the data root's `cache`, out of the artifact.

    Without a record, which tells where the data root is, beside the dataset.
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
    """The record of the shard's partition, if the dataset has one."""
    number = re.fullmatch(r"shard_(\d+)_tokens", tokens.name)
    if number is None:
        return None
    path = provenance.record_path(tokens.parent.parent, number[1], shared=True)
    return provenance.read_record(path) if path.exists() else None
