"""Laws between the trace of a shard and its datasets: documents, messages, split.

Source: `docs/formats/synth.md#trace-laws`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.synth.format import harmony_tokens, parquet, trace
from gristmill.synth.laws.hash_bounds import HashBounds
from gristmill.synth.laws.hash_sample import HashSample
from gristmill.synth.laws.values import Values

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 1024
_COLUMNS: Final = ("split", "document", "synth_id", "offsets")
_STANDARD_DEVIATIONS: Final = 6.0


def check(
    root: Path, number: str, tokens: Mapping[str, Values | None], valid_fraction: float | None
) -> Iterator[Violation]:
    """Yield the violations between a trace and the tokens of its shard.

    root: the dataset.
    number: of the shard ("00").
    tokens: of each split, None where it has no documents; their values are checked as
        they are read.
    valid_fraction: which the split must obey; None if that is not tested.
    """
    where = trace.path(number)
    if not (root / where).exists():
        yield Violation("trace", where, "there is no trace file")
        return
    counts, bounds, sample = dict.fromkeys(tokens, 0), HashBounds(), HashSample()
    try:
        broken = next(_rows(root / where, where, tokens, counts, bounds, sample), None)
    except (BadInput, UnicodeDecodeError) as error:
        broken = Violation("trace", where, str(error))
    if broken is not None:
        yield broken
        return
    documents = {split: 0 if each is None else len(each) for split, each in tokens.items()}
    if counts != documents:
        rule = f"has {counts} documents, the datasets have {documents}"
        yield Violation("trace", where, rule)
    if not bounds.divide():
        rule = "no value of the synth_id hash divides train from valid"
        yield Violation("disjoint splits", where, rule)
    if valid_fraction is not None:
        if not bounds.divide_at(valid_fraction):
            yield Violation("split rule", where, f"is not the split at {valid_fraction}")
        yield from _fraction(where, sample.counts(), valid_fraction)


def _rows(
    file: Path,
    where: str,
    tokens: Mapping[str, Values | None],
    counts: dict[str, int],
    bounds: HashBounds,
    sample: HashSample,
) -> Iterator[Violation]:
    """Yield what is wrong with single rows; count the documents of each split, and their ids."""
    with trace.opened(file) as opened:
        for batch in parquet.batches(file, opened, _BATCH_ROWS, list(_COLUMNS)):
            if any(column.null_count for column in batch.columns):
                yield Violation("trace", where, "has nulls")
                return
            splits = batch.column("split").to_numpy(zero_copy_only=False)
            if unknown := sorted(set(splits) - set(tokens)):
                yield Violation("trace", where, f"has a split {unknown[0]!r}")
                return
            for split, datasets in tokens.items():
                rows = batch.filter(splits == split)
                if wrong := _documents(rows, counts[split], datasets):
                    yield Violation("trace", f"{where}: {split}", wrong)
                    return
                counts[split] += len(rows)
                sample.add(split, bounds.add(split, rows.column("synth_id").to_pylist()))


def _documents(rows: pa.RecordBatch, first: int, tokens: Values | None) -> str | None:
    """Return what is wrong with documents `first`, first + 1, ..; None if nothing is."""
    if not len(rows):
        return None
    numbers = rows.column("document").to_numpy()
    last = first + len(rows)
    if not np.array_equal(numbers, np.arange(first, last)):
        return f"documents are not {first} to {last - 1}"
    if tokens is None or last > len(tokens):
        return f"document {last - 1} is not in the datasets"
    column: Any = rows.column("offsets")
    if column.values.null_count or not np.all(np.diff(column.offsets.to_numpy())):
        return f"documents {first} to {last - 1} lack offsets"
    bounds, offsets = column.offsets.to_numpy(), column.values.to_numpy()
    edges = tokens.tokens.bounds(first, last)
    starts, begin = edges[:-1], int(edges[0])
    messages = np.flatnonzero(tokens.ids(first, edges) == harmony_tokens.START)
    absolute = offsets[bounds[0] : bounds[-1]] + np.repeat(starts - begin, np.diff(bounds))
    is_end = np.zeros(len(absolute), dtype=np.bool_)
    is_end[bounds[1:] - bounds[0] - 1] = True
    if not np.array_equal(messages, absolute[~is_end]):
        return f"messages of documents {first} to {last - 1} do not begin where <|start|> is"
    if not np.array_equal(absolute[is_end], edges[1:] - 1 - begin):
        return f"documents {first} to {last - 1} do not end where their EOD is"
    return None


def _fraction(where: str, counts: Mapping[str, int], valid_fraction: float) -> Iterator[Violation]:
    total = sum(counts.values())
    expected = valid_fraction * total
    slack = 1 + _STANDARD_DEVIATIONS * math.sqrt(expected * (1 - valid_fraction))
    if abs(counts["valid"] - expected) > slack:
        rule = f"{counts['valid']} of {total} synth_ids are valid, {expected:.1f} expected"
        yield Violation("split share", where, rule)
