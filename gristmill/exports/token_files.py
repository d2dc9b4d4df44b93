"""Token files of llm.c, which modded-nanogpt reads too: a header, then tokens of 16 bits.

The separator is before each document, since readers look for beginnings by it. Source:
`docs/consumers.md#llmc`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.card import splits_at
from gristmill.exports.table import Split

Tokens = npt.NDArray[Any]

_HEADER, _MAGIC, _VERSION = 256, 20240520, 1
_SEPARATOR: Final = 50256
_NAMES: Final = {"validation": "val"}
FILE_TOKENS: Final = 100_000_000


def token_files(place: Path, out: Path, file_tokens: int = FILE_TOKENS) -> dict[str, int]:
    """Write the documents of GPT-2 shards as token files into a new folder.

    place: folder of the shards. out: a folder that does not exist; it is whole or not there.
    file_tokens: after so many a file ends, with a whole document; default 100 million.

    Returns the tokens of each file by its name, as `tokens_train_000000.bin`.
    Raises GristmillError for other artifacts or an `out` that exists, BadInput for damage.
    """
    if out.exists():
        raise BadInput(out, "exists: give a folder that does not")
    splits = splits_at(place)
    if any("input_ids" not in each.schema().names for each in splits):
        raise GristmillError(f"{place}: has no tokens: give the folder of reasoning/gpt2_shards")
    staged = out.with_name(f".{out.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        staged.mkdir(parents=True)
        counts: dict[str, int] = {}
        for name in dict.fromkeys(each.name for each in splits):
            own = [each for each in splits if each.name == name]
            for number, path in enumerate(_written(own, staged, file_tokens, place)):
                last = staged / f"tokens_{_NAMES.get(name, name)}_{number:06d}.bin"
                path.rename(last)
                counts[last.name] = (last.stat().st_size - 4 * _HEADER) // 2
        staged.rename(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return counts


def _written(
    splits: Sequence[Split], folder: Path, file_tokens: int, place: Path
) -> Iterator[Path]:
    """Write one file after another; each is whole when it is yielded."""
    file: BinaryIO | None = None
    path, count = folder / "part", 0
    for tokens, bounds in _documents(splits, place):
        at, last = 0, len(bounds) - 1
        while at < last:
            if file is None:
                file, count = path.open("xb"), 0
                file.write(bytes(4 * _HEADER))
            full = int(np.searchsorted(bounds, bounds[at] + file_tokens - count))
            end = min(max(full, at + 1), last)
            file.write(tokens[bounds[at] : bounds[end]].data)
            count += int(bounds[end] - bounds[at])
            at = end
            if count >= file_tokens:
                _close(file, count)
                file = None
                yield path
    if file is not None:
        _close(file, count)
        yield path


def _documents(splits: Sequence[Split], place: Path) -> Iterator[tuple[Tokens, Tokens]]:
    """The tokens of documents, each after its separator, and where they begin, with the end."""
    for batch in (batch for each in splits for batch in each.batches()):
        listed = batch["input_ids"]
        values, offsets = np.asarray(listed.flatten()), np.asarray(listed.offsets)
        bounds = offsets - offsets[0]
        if len(values) and not 0 <= values.min() <= values.max() <= _SEPARATOR:
            raise GristmillError(f"{place}: has tokens that are not of GPT-2: give its shards")
        if (np.diff(bounds) < 1).any() or (values[bounds[1:] - 1] != _SEPARATOR).any():
            raise BadInput(place, "has a document without its separator: build the shards again")
        yield np.roll(values, 1).astype("<u2"), bounds


def _close(file: BinaryIO, count: int) -> None:
    file.seek(0)
    header = np.zeros(_HEADER, "<i4")
    header[:3] = _MAGIC, _VERSION, count
    file.write(header.tobytes())
    file.close()
