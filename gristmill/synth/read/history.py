"""Documents and conversations as a history names them, and what a loader had of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from gristmill.exports.messages import shard_rows
from gristmill.history.rows import Kept
from gristmill.loading.past import Past
from gristmill.loading.source import Packed, Source
from gristmill.provenance import Record
from gristmill.provenance.trace_inputs import source
from gristmill.synth.format import megatron, trace

_COLUMNS: Final = ("split", "document", "row", "synth_id")


def harmony(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each conversation, by its id."""
    raw = [str(each.path) for each in source(folder, record.partition).raw_inputs()]
    (name,) = (each.path for each in record.outputs if each.path.endswith(".parquet"))
    where = raw[0] if len(raw) == 1 else ""
    for number, (text, own) in enumerate(shard_rows(folder / name, ("messages_json", "synth_id"))):
        yield Kept("", str(own or ""), text.encode(), where, -1, -1, number)


def documents(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each document, by the id of its conversation; its contents are its tokens."""
    (name,) = (each.path for each in record.outputs if each.path.startswith("trace/"))
    inputs = source(folder, record.partition).inputs
    assets = (each.asset for each in inputs if each.asset and each.data_version is not None)
    made_from = next(each for each in assets if not each.startswith("tokenizers/"))
    tokens = _tokens_of_rows if record.asset.endswith("/distill") else _tokens_of_shard
    given = {
        split: tokens(folder, split, name[len("trace/trace_") : -len(".parquet")])
        for split in ("train", "valid")
    }
    with trace.opened(folder / name) as file:
        for batch in file.iter_batches(columns=_COLUMNS):
            columns = (batch[column].to_pylist() for column in _COLUMNS)
            for split, document, row, own in zip(*columns, strict=True):
                content, size = next(given[split])
                yield Kept(split, own or "", content, made_from, row - 1, -1, document, 1, size)


def _tokens_of_shard(folder: Path, split: str, shard: str) -> Iterator[tuple[bytes, int]]:
    """The tokens and masks of each document of a shard, and how many they are."""
    if not (folder / split / f"shard_{shard}_tokens.idx").exists():
        return
    of = [
        megatron.opened(folder / split / f"shard_{shard}_{name}") for name in ("tokens", "lossmask")
    ]
    begin = 0
    for length in chain.from_iterable(each.tolist() for each in of[0].length_batches()):
        yield b"".join(each.values[begin : begin + length].tobytes() for each in of), length
        begin += length


def _tokens_of_rows(folder: Path, split: str, _: str) -> Iterator[tuple[bytes, int]]:
    from gristmill.synth.read import distill  # loads Arrow

    for batch in distill.batches(folder, split):
        ids, labels = (batch[name] for name in ("input_ids", "labels"))
        for own, label in zip(ids, labels, strict=True):
            found = [each.values.to_numpy() for each in (own, label)]
            yield b"".join(each.tobytes() for each in found), len(found[0])


def past(kept: Past, **options: Any) -> Source:
    """The documents of a folder as `documents.opened` gives them, perhaps packed."""
    own, seq_len = kept.of(), options.get("seq_len")
    return own if seq_len is None else Packed(own, seq_len)
