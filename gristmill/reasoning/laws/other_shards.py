"""Laws of token shards without an index, as the original's scripts write them.

A meta need only have the keys of the contract, and a `.pt` file may be of any version of torch.
See also `shards.py`: the shards that Gristmill writes. Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, Violation
from gristmill.reasoning.format import foreign_pt, names
from gristmill.reasoning.format.shards import CONTRACT, TOKENS

_NUMBERS: Final = ("seq_len", "num_sequences", "token_count", "shard_index")


def other_shard_laws(folder: Path, corpus: str, split: str) -> Iterator[Violation]:
    """Yield the violations of the shards of one split.

    The laws: `files`, `meta`, `readable`, `shape`, `ids`, `sha256` as in `shards.py`, and `full`:
    all have one `seq_len`, and as many sequences as the first, but for the last.
    """
    inside = folder / corpus / split
    stems = {path.name.partition(".")[0] for path in inside.glob("shard_*")}
    metas: list[Mapping[str, Any]] = []
    for stem in sorted(stems):
        where = f"{corpus}/{split}/{stem}"
        missing = [end for end in (".pt", ".meta.json") if not (folder / f"{where}{end}").is_file()]
        for end in missing:
            yield Violation("files", where + end, "is missing, other files of it are there")
        if missing:
            continue
        try:
            meta = _read(folder / f"{where}.meta.json", corpus, split, f"{where}.pt")
            metas.append(meta)
            yield from _tensor_laws(folder, meta)
        except BadInput as error:
            yield Violation("readable", where, str(error))
    for meta in metas:
        if meta["seq_len"] != metas[0]["seq_len"]:
            yield Violation("full", meta["path"], "seq_len is not that of the first shard")
        elif meta["num_sequences"] != metas[0]["num_sequences"] and meta is not metas[-1]:
            yield Violation("full", meta["path"], "has not as many sequences as the first shard")


def _read(path: Path, corpus: str, split: str, shard: str) -> Mapping[str, Any]:
    """The meta of a shard. Raises BadInput where it is not that of this shard."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no meta file of a shard: {error}") from error
    if not isinstance(found, dict) or not set(CONTRACT) <= set(found):
        raise BadInput(path, f"is no meta file of a shard: it needs {', '.join(CONTRACT)}")
    for name in _NUMBERS:
        if type(found[name]) is not int or found[name] < 0:
            raise BadInput(path, f"{name} is {found[name]!r}, expected a number from 0")
    expected = {
        "dataset": corpus,
        "split": split,
        "path": shard,
        "token_count": found["num_sequences"] * found["seq_len"],
    }
    for name, value in expected.items():
        if found[name] != value:
            raise BadInput(path, f"{name} is {found[name]!r}, expected {value!r}")
    if names.shard(corpus, split, found["shard_index"]) != shard:
        raise BadInput(path, f"shard_index {found['shard_index']} is not the number in its name")
    return found


def _tensor_laws(folder: Path, meta: Mapping[str, Any]) -> Iterator[Violation]:
    path = folder / meta["path"]
    ids = foreign_pt.mapped(path)
    shape = (meta["num_sequences"], meta["seq_len"])
    if ids.shape != shape:
        yield Violation("shape", meta["path"], f"is {ids.shape}, its meta file says {shape}")
        return
    least, most = int(ids.min()), int(ids.max())
    if least < 0 or most >= TOKENS:
        found = f"ids from {least} to {most}, allowed 0 to {TOKENS - 1}"
        yield Violation("ids", meta["path"], found)
    tensor, _ = foreign_pt.hashes(path)
    if tensor != meta["sha256"]:
        rule = f"the tensor has {tensor}, its meta file {meta['sha256']}"
        yield Violation("sha256", meta["path"], rule)
