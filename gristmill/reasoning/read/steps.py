"""Supervision for probes: the example and the step of every token, and values summed by step.

`shard_rows.py` reads them from index and alignment. Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.reasoning.read.shard_rows import Ranges


class StepValues(NamedTuple):
    """A value for each step of each example of each sequence of a batch, in their order.

    sequence: int64 [M], row of the batch.
    tokens: int64 [M], tokens of the step in this sequence.
    value: float64 [M], or [M, ...] for values with further dimensions.
    """

    sequence: npt.NDArray[np.int64]
    example: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


def by_step(
    values: Any, batch: Mapping[str, Any], how: Literal["mean", "sum"] = "mean"
) -> StepValues:
    """Sum any value of tokens by the steps that the tokens belong to.

    values: numbers [n, seq_len] or [n, seq_len, ...], array or tensor; for example the activations
        of features, or losses.
    batch: of a ShardReader with steps: `step_id` and `example` are [n, seq_len].
    how: "mean" over the tokens of a step, the default, or "sum".

    A step that goes on in the next sequence has a value for each: weigh means by `tokens` to join
    them. Tokens outside of steps count nowhere.

    Raises ValueError for values of another shape, or another `how`.
    """
    if how not in ("mean", "sum"):
        raise ValueError(f'how must be "mean" or "sum", not {how!r}')
    numbers, steps, examples = map(_array, (values, batch["step_id"], batch["example"]))
    if numbers.shape[:2] != steps.shape:
        raise ValueError(f"values are {numbers.shape}, the batch has {steps.shape} tokens")
    inside = np.flatnonzero(steps.ravel())
    key = np.stack(
        [inside // max(steps.shape[1], 1), examples.ravel()[inside], steps.ravel()[inside]]
    ).astype(np.int64)
    begins = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(0))[: key.shape[1]])
    tokens = np.diff(np.append(begins, key.shape[1]))
    flat = numbers.reshape(-1, *numbers.shape[2:])[inside].astype(np.float64)
    sums = np.add.reduceat(flat, begins) if len(begins) else flat
    if how == "mean":
        sums = sums / tokens.reshape(-1, *[1] * (sums.ndim - 1))
    sequence, example, step = key[:, begins]
    return StepValues(sequence, example, step, tokens, sums)


def fill(out: npt.NDArray[Any], rows: npt.NDArray[np.int64], ranges: Ranges, missing: int) -> None:
    """Write the values of ranges beside the tokens of sequences.

    out: integers [n, seq_len], written whole.
    rows: int64 [n], sequences of the shard.
    missing: for tokens outside of all ranges.
    """
    count, seq_len = out.shape
    first = np.searchsorted(ranges.row, rows, "left")
    number = np.searchsorted(ranges.row, rows, "right") - first
    # The number of each range that lies in one of the sequences, and which sequence that is.
    place = np.repeat(np.arange(count), number)
    within = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
    chosen = np.repeat(first, number) + within
    change = np.zeros(count * seq_len + 1, out.dtype if out.dtype.kind == "i" else np.int8)
    value = (ranges.value[chosen] - missing).astype(change.dtype)
    np.add.at(change, place * seq_len + ranges.start[chosen], value)
    np.subtract.at(change, place * seq_len + ranges.stop[chosen], value)
    np.cumsum(change[:-1], out=change[:-1])
    out[:] = change[:-1].reshape(count, seq_len)
    if missing:
        out += missing


def _array(values: Any) -> npt.NDArray[Any]:
    """Numbers as an array, tensors of torch on any device and with a gradient included."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point():
            values = values.double()
    return np.asarray(values)
