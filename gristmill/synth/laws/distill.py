"""Laws of datasets of token ids, labels and spans: files, columns, rows and their origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gristmill.contract import GristmillError, Violation
from gristmill.families import Subject
from gristmill.synth.builders import distill_part
from gristmill.synth.config import DistillConfig
from gristmill.synth.format import harmony_tokens, trace
from gristmill.synth.read import distill

_HARMONY: Final = ("harmony", "chatgpt_plain")


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a dataset."""
    folder, config = subject.folder, subject.config
    try:
        if json.loads((folder / distill.DICT).read_bytes()) != {
            "splits": [*distill.SPLITS.values()]
        }:
            yield Violation("splits", distill.DICT, "does not name train and validation")
    except (OSError, ValueError) as error:
        yield Violation("readable", distill.DICT, str(error))
    has_trace = not subject.missing({"trace": "trace, split by id"})
    # Only a record says how the rows are rendered.
    render = config.get("render")
    returns = json.loads(str(render))["template"] in _HARMONY if render else "template" in config
    for split in distill.SPLITS:
        try:
            yield from _split(folder, split, config, returns, has_trace)
        except GristmillError as error:
            yield Violation("readable", distill.SPLITS[split], str(error))


def _split(
    folder: Path, split: str, config: Any, returns: bool, has_trace: bool
) -> Iterator[Violation]:
    where, row = distill.SPLITS[split], 0
    names = _names(folder, split) if has_trace else iter(())
    most = int(config.get("max_length", 0))
    for batch in distill.batches(folder, split):
        for name, broken in _broken(batch, most, returns):
            if broken.any():
                yield Violation(name, where, f"row {row + int(broken.argmax())} breaks it")
        if has_trace:
            own = [*islice(names, len(batch))]
            ids = [text.partition(":")[2] for text in batch.column("id").to_pylist()]
            if own != ids:
                yield Violation("trace", where, f"the ids from row {row} on are not those of it")
            yield from _drawn(config, split, own, where)
        row += len(batch)
    if next(names, None) is not None:
        yield Violation("trace", where, f"has more documents than the {row} rows")


def _broken(batch: pa.RecordBatch, most: int, returns: bool) -> Iterator[tuple[str, Any]]:
    """Yield the laws of rows, and which rows break each, bool [rows]."""
    lists = [batch.column(name) for name in ("input_ids", "labels", "attention_mask")]
    lengths = [np.asarray(each.value_lengths()) for each in lists]
    uneven = (lengths[0] != lengths[1]) | (lengths[0] != lengths[2]) | (lengths[0] == 0)
    yield "equal lengths", uneven
    if uneven.any():
        return
    ids, labels, mask = (np.asarray(each.flatten()) for each in lists)
    start, reasoning, final = (np.asarray(each) for each in batch.column("spans").flatten())
    ends = np.cumsum(lengths[0])
    begins = ends - lengths[0]
    yield (
        "spans",
        ((start + reasoning + final != lengths[0]) | (start < 1) | (reasoning < 0) | (final < 1)),
    )
    is_prompt = np.arange(len(ids)) - np.repeat(begins, lengths[0]) < np.repeat(start, lengths[0])
    wrong = labels != np.where(is_prompt, distill.IGNORED, ids)
    yield "labels", np.logical_or.reduceat(wrong, begins)
    yield "attention_mask", np.logical_or.reduceat(mask != 1, begins)
    yield "ids", np.logical_or.reduceat(ids < 0, begins)
    if returns:
        yield "end", ids[ends - 1] != harmony_tokens.RETURN
    if most:
        yield "max_length", lengths[0] > most


def _names(folder: Path, split: str) -> Iterator[str]:
    """Yield the synth_id of each document of a split."""
    for path in sorted(folder.glob("trace/trace_*.parquet")):
        with trace.opened(path) as file:
            for batch in file.iter_batches(columns=["split", "synth_id"]):
                for own, name in zip(*(column.to_pylist() for column in batch), strict=True):
                    if own == split:
                        yield name


def _drawn(config: Any, split: str, names: list[str], where: str) -> Iterator[Violation]:
    """Yield the first row of SYNTH that its draw puts into the other split."""
    if "render" in config or "valid_fraction" not in config:
        return
    rule = DistillConfig(Path(), float(config["valid_fraction"]), seed=int(config["seed"]))
    for name in names:
        if distill_part.is_valid(rule, name) != (split == "valid"):
            yield Violation("split", where, f"synth_id {name!r} is of the other split")
            return
