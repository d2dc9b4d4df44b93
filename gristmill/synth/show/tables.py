"""The tables of rows in Harmony shards and Megatron datasets, for the sample browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from gristmill.browse.columns import Columns, of_parquet
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token
from gristmill.contract import BadInput, GristmillError
from gristmill.synth.builders.harmony_shard import shard_name, shards
from gristmill.synth.format import trace
from gristmill.synth.format.megatron import Indexed
from gristmill.synth.read import distill
from gristmill.synth.show import tokens

if TYPE_CHECKING:
    from gristmill.browse.opening import Files

_SEARCHABLE: Final = ("messages_json", "synth_id", "language", "exercise", "text", "metadata_json")
_SPLITS: Final = ("train", "valid")
_HEADER, _INDEX_BYTES = 34, 20
_STEP: Final = 256
"""Documents that are decoded together."""
_TRACED: Final = ("input", "row", "synth_id", "language", "exercise")


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table for each shard of Harmony, or for each split of each shard of a dataset.

    asset: its key. folder: its path. files: what the records say of them.
    """
    if asset == "synth/harmony":
        for number in shards(folder):
            yield _harmony(folder, files, number)
    elif asset.endswith("/kd_shards"):
        found = sorted(folder.glob("*/shard_*_tokens.idx"))
        for path in found:
            if path.parent.name in _SPLITS:
                number = path.name[6:-11]
                shared = "" if asset.startswith("chat/") else number
                yield _documents(folder, files, number, path.parent.name, shared)
    elif asset.endswith("/distill"):
        for split in _SPLITS:
            yield _distilled(folder, files, split)


def _drawn(
    title: Callable[[Record], str], messages: Callable[[Record], list[tokens.Message]]
) -> dict[str, Any]:
    """How a row is drawn, and its tokens."""

    def pictures(row: Record) -> list[Picture]:
        return [tokens.picture(title(row), messages(row))]

    def shown(row: Record) -> list[Token]:
        return [token for message in messages(row) for token in message.tokens]

    return {"pictures": pictures, "tokens": shown}


def _harmony(folder: Path, files: Files, number: str) -> Stored:
    def messages(row: Record) -> list[tokens.Message]:
        vocabulary = tokens.vocabulary_of(folder)
        return tokens.harmony_row(folder / shard_name(number), row.number, row.values, vocabulary)

    return Stored(
        number,
        lambda: of_parquet(files.checked(shard_name(number))),
        _SEARCHABLE,
        partition=number,
        sample=lambda row: (str(row.number), {"shard": number}),
        chosen={"shard": number},
        ids=("synth_id",),
        **_drawn(lambda row: f"{number} row {row.number} · {row.values['synth_id']}", messages),
    )


def _documents(folder: Path, files: Files, number: str, split: str, partition: str) -> Stored:
    def messages(row: Record) -> list[tokens.Message]:
        return tokens.document(folder, number, split, row.number, tokens.vocabulary_of(folder))

    return Stored(
        f"{split}/{number}",
        lambda: _Documents(folder, files, number, split).columns(),
        _SEARCHABLE,
        slow=("text",),
        partition=partition,
        sample=lambda row: (str(row.number), {"shard": number, "split": split}),
        chosen={"shard": number, "split": split},
        ids=("synth_id",) if (folder / trace.path(number)).is_file() else (),
        **_drawn(lambda row: f"{split} document {row.number}", messages),
    )


def _distilled(folder: Path, files: Files, split: str) -> Stored:
    def messages(row: Record) -> list[tokens.Message]:
        return tokens.distilled(folder, split, row.number, tokens.vocabulary_of(folder))

    def opened() -> Columns:
        name = distill.SPLITS[split]
        paths = [files.checked(f"{name}/{path.name}") for path in distill.files_of(folder, split)]
        held = pa.Table.from_batches(distill.batches(folder, split), distill.SCHEMA)
        held = held.select([name for name in distill.SCHEMA.names if name != "attention_mask"])
        types = dict.fromkeys(held.column_names, "text")

        def get(names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
            part = held.slice(first, stop - first)
            return {name: part[name].to_pylist() for name in names}

        return Columns(paths[0], types, len(held), get, step=_STEP)  # type: ignore[arg-type]

    return Stored(
        distill.SPLITS[split],
        opened,
        ("id", "source"),
        sample=lambda row: (str(row.number), {"split": split}),
        chosen={"split": split},
        ids=("id",),
        **_drawn(lambda row: f"{split} row {row.number}", messages),
    )


class _Documents:
    """The documents of one split of a shard: their sizes are proved, and each as it is read."""

    def __init__(self, folder: Path, files: Files, number: str, split: str) -> None:
        self._split = split
        stem = f"{split}/shard_{number}_tokens"
        index, values = files.checked(f"{stem}.idx"), files.checked(f"{stem}.bin")
        count, rest = divmod(index.stat().st_size - 42, _INDEX_BYTES)
        size, odd = divmod(values.stat().st_size, 4)
        with index.open("rb") as file:
            magic = file.read(9)
        if rest or odd or count < 0 or magic != b"MMIDIDX\x00\x00":
            raise BadInput(index, "is no index of Megatron for these tokens: build the shard again")
        self._data = Indexed(values, index, np.dtype("<i4"), count, size)
        self._trace = files.folder / trace.path(number)
        self._decode = _decoder(folder)
        self._places = lru_cache(8)(self._traced)

    def columns(self) -> Columns:
        """Its documents by number."""
        types: dict[str, Any] = {"tokens": "integer"}
        if self._trace.is_file():
            types |= dict.fromkeys(_TRACED, "text") | {"row": "integer"}
        if self._decode is not None:
            types["text"] = "text"
        return Columns(self._data.index, types, self._data.count, self._get, step=_STEP)

    def _get(self, names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        if "tokens" in names:
            found["tokens"] = np.array(self._data.lengths[first:stop])
        if traced := [name for name in names if name in _TRACED]:
            found |= {name: self._places(first, stop)[name] for name in traced}
        if "text" in names:
            found["text"] = self._texts(first, stop)
        return found

    def _texts(self, first: int, stop: int) -> list[str]:
        bounds = self._data.bounds(first, stop)
        if (np.diff(bounds) <= 0).any() or bounds[0] < 0 or bounds[-1] > self._data.size:
            rule = (
                f"documents {first:,} to {stop:,} do not follow each other: build the shard again"
            )
            raise BadInput(self._data.index, rule)
        assert self._decode is not None
        text_of = self._decode().text
        texts = []
        for begin, end in pairwise(bounds.tolist()):
            texts.append(text_of(self._data.values[begin:end].tolist()))
        return texts

    def _traced(self, first: int, stop: int) -> Mapping[str, list[Any]]:
        """Columns of the trace of some documents, which are in their order in each split."""
        import polars as pl

        try:
            own = pl.scan_parquet(self._trace).filter(pl.col("split") == self._split)
            inside = pl.col("document").is_between(first, stop - 1)
            found = own.filter(inside).select(*_TRACED).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BadInput(self._trace, f"is damaged ({error}): build the shard again") from error
        if len(found) != stop - first:
            rule = f"does not have the documents {first:,} to {stop - 1:,} of {self._split}"
            raise BadInput(self._trace, f"{rule}: build the shard again")
        return {name: found[name].to_list() for name in _TRACED}


def _decoder(folder: Path) -> Callable[[], tokens.Words] | None:
    """Gives the words when it is needed; None where its vocabulary is not to be had."""
    try:
        path = tokens.vocabulary_of(folder)
    except GristmillError:
        return None
    return lambda: tokens.words_of(path)
