"""What must hold between a shard's trace and its datasets: documents, messages, split.

Source: `docs/formats/synth.md#trace-laws`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.synth.format import harmony_tokens, holdout, parquet, trace
from gristmill.synth.format.indexed import Indexed

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS: Final = 1024
_STANDARD_DEVIATIONS: Final = 6.0


def check(
    root: Path, number: str, opened: Mapping[str, Indexed | None], valid_fraction: float | None
) -> Iterator[Violation]:
    """Yield what the trace of shard `number` and its tokens say against each other.

    opened: the tokens of each split, None where it has no documents.
    """
    where = trace.path(number)
    if not (root / where).exists():
        yield Violation("trace", where, "there is no trace file")
        return
    try:
        yield from _check(root / where, where, opened, valid_fraction)
    except (BadInput, UnicodeDecodeError) as error:
        yield Violation("trace", where, str(error))


def _check(
    file: Path, where: str, opened: Mapping[str, Indexed | None], valid_fraction: float | None
) -> Iterator[Violation]:
    counts = dict.fromkeys(opened, 0)
    # The split is a cut through the hash values, so the two sides share no id
    # if the highest value of one is below the lowest of the other.
    highest_valid, lowest_train = -1, 1 << 64
    with trace.opened(file) as found:
        columns = ["split", "document", "synth_id", "offsets"]
        for batch in parquet.batches(file, found, _ROWS, columns):
            if any(column.null_count for column in batch.columns):
                yield Violation("trace", where, "has nulls")
                return
            names = batch.column("split").to_numpy(zero_copy_only=False)
            for name, tokens in opened.items():
                rows = batch.filter(names == name)
                if wrong := _documents(rows, counts[name], tokens):
                    yield Violation("trace", f"{where}: {name}", wrong)
                    return
                counts[name] += len(rows)
                values = [
                    holdout.value(synth_id) for synth_id in rows.column("synth_id").to_pylist()
                ]
                if name == "valid":
                    highest_valid = max([highest_valid, *values])
                else:
                    lowest_train = min([lowest_train, *values])
    held = {name: 0 if tokens is None else len(tokens) for name, tokens in opened.items()}
    if counts != held:
        yield Violation("trace", where, f"knows {counts} documents, the datasets hold {held}")
    if highest_valid >= lowest_train:
        yield Violation("disjoint splits", where, "no cut in the synth_id hash divides the splits")
    if valid_fraction is not None:
        if not highest_valid < holdout.threshold(valid_fraction) <= lowest_train:
            yield Violation("split rule", where, f"is not the split at {valid_fraction}")
        yield from _share(where, counts, valid_fraction)


def _documents(rows: pa.RecordBatch, first: int, tokens: Indexed | None) -> str | None:
    """What is wrong with documents `first`, first + 1, ..; None if nothing is."""
    if not len(rows):
        return None
    numbers = rows.column("document").to_numpy()
    last = first + len(rows)
    if not np.array_equal(numbers, np.arange(first, last)):
        return f"documents are not {first} to {last - 1}"
    if tokens is None or last > len(tokens):
        return f"speaks of document {last - 1}, which is not there"
    column: Any = rows.column("offsets")
    bounds, offsets = column.offsets.to_numpy(), column.values.to_numpy()
    edges = tokens.bounds(first, last)
    starts, begin, stop = edges[:-1], int(edges[0]), int(edges[-1])
    found = np.flatnonzero(tokens.load(begin, stop) == harmony_tokens.START)
    absolute = offsets[bounds[0] : bounds[-1]] + np.repeat(starts - begin, np.diff(bounds))
    is_end = np.zeros(len(absolute), dtype=np.bool_)
    is_end[bounds[1:] - bounds[0] - 1] = True
    if not np.array_equal(found, absolute[~is_end]):
        return f"messages of documents {first} to {last - 1} do not begin where <|start|> stands"
    if not np.array_equal(absolute[is_end], edges[1:] - 1 - begin):
        return f"documents {first} to {last - 1} do not end where their EOD stands"
    return None


def _share(where: str, counts: Mapping[str, int], valid_fraction: float) -> Iterator[Violation]:
    total = sum(counts.values())
    expected = valid_fraction * total
    slack = 1 + _STANDARD_DEVIATIONS * math.sqrt(expected * (1 - valid_fraction))
    if abs(counts["valid"] - expected) > slack:
        yield Violation(
            "split share", where, f"{counts['valid']} of {total} valid, {expected:.1f} expected"
        )
