"""Micro-batches across the ranks of a training job: the part that a rank computes with.

This module imports torch and Megatron-Core, so only training jobs and tests import it.
See also `training.py`: the step and the loss. Source: `docs/formats/synth.md#micro-batch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from megatron.core.utils import get_batch_on_this_cp_rank, get_pg_rank, get_pg_size
from torch import distributed

_INPUTS = {"tokens": torch.int64, "position_ids": torch.int64}
_LABELS = {"labels": torch.int64, "span_id": torch.int64, "loss_mask": torch.float32}
_READ, _END, _NO_SPAN, _FAILED = range(4)
"""What the rank that reads says about its iterator."""

Samples = Iterator[Mapping[str, torch.Tensor]]


@dataclass(frozen=True)
class Batch:
    """The part of a micro-batch that one rank computes with; None is what it does not need.

    tokens, position_ids: int64 [B, S/cp], where the model embeds tokens.
    labels, span_id: int64 [B, S/cp], where it computes losses.
    loss_mask: float32 [B, S/cp], where it computes losses.
    attention_mask: bool [B, 1, S/cp, S], where either is done and the dataset makes one.
    """

    tokens: torch.Tensor | None = None
    position_ids: torch.Tensor | None = None
    labels: torch.Tensor | None = None
    span_id: torch.Tensor | None = None
    loss_mask: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None


def get_batch(
    data_iterator: Samples | None,
    *,
    inputs: bool = True,
    labels: bool = True,
    tp_group: distributed.ProcessGroup | None = None,
    cp_group: distributed.ProcessGroup | None = None,
    device: torch.device | None = None,
) -> Batch:
    """Return this rank's part of the next micro-batch; all ranks of `tp_group` call it.

    data_iterator: gives collated samples of SynthKDDataset, [B, S] each. Only the first
        rank of `tp_group` reads it; it may be None on the others.
    labels: whether it computes losses, default True. A stage that does neither reads nothing.
    cp_group: context parallel ranks, default this process alone. Each has the same samples
        and keeps two of 2*cp slices of the sequence, as in Megatron.

    Raises, on every rank of `tp_group`: StopIteration at the end of the iterator;
    RuntimeError if the samples have no `span_id`; ValueError if S cannot be divided by 2*cp.
    Another error of the iterator is raised where it is read, and RuntimeError elsewhere.
    """
    if not (inputs or labels):
        return Batch()
    types = (_INPUTS if inputs else {}) | (_LABELS if labels else {})
    device = device or current_device()
    if get_pg_size(tp_group) == 1:
        batch = _read(data_iterator, types, device)
    else:
        batch = _broadcast(data_iterator, types, tp_group, device)
    if (ranks := get_pg_size(cp_group)) > 1:
        length = next(iter(batch.values())).shape[1]
        if length % (2 * ranks):
            raise ValueError(
                f"sequence length {length} cannot be divided by {2 * ranks}, twice the number of "
                "context parallel ranks: choose another length"
            )
        batch = get_batch_on_this_cp_rank(batch, cp_group)
    return Batch(**batch)


def current_device() -> torch.device:
    """Return the current GPU, or the CPU where there is none."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _read(
    data_iterator: Samples | None, types: Mapping[str, torch.dtype], device: torch.device
) -> dict[str, torch.Tensor]:
    """The fields of the next micro-batch, and the attention mask if it has one."""
    if data_iterator is None:
        raise RuntimeError(
            "this rank has no data iterator: build the dataset on the first rank of each tensor "
            "parallel group"
        )
    samples = next(data_iterator)
    if "span_id" in types and "span_id" not in samples:
        raise _no_span()
    chosen = dict(types)
    if "attention_mask" in samples:
        chosen["attention_mask"] = torch.bool
    return {
        name: samples[name].to(device, dtype, non_blocking=True) for name, dtype in chosen.items()
    }


def _broadcast(
    data_iterator: Samples | None,
    types: Mapping[str, torch.dtype],
    group: distributed.ProcessGroup | None,
    device: torch.device,
) -> dict[str, torch.Tensor]:
    """The same as `_read` on every rank of a group, whose first rank reads.

    First go the sizes, or why there is no batch: a rank that waits for a batch which never
    comes would wait until the time of the group is over.
    """
    batch: dict[str, torch.Tensor] = {}
    error: BaseException | None = None
    header = [_READ, 0, 0, 0]
    if get_pg_rank(group) == 0:
        try:
            batch = _read(data_iterator, types, device)
            rows, length = next(iter(batch.values())).shape
            header = [_READ, rows, length, "attention_mask" in batch]
        except BaseException as raised:  # noqa: BLE001 -- raised again below
            error = raised
            header[0] = _status(raised)
    status, rows, length, masked = _sent(torch.tensor(header, device=device), group).tolist()
    if error is not None:
        raise error
    if status != _READ:
        raise _refusal(status)
    for name, dtype in types.items():
        values = batch.get(name, torch.empty((rows, length), dtype=dtype, device=device))
        batch[name] = _sent(values, group)
    if masked:
        shape = (rows, 1, length, length)
        mask = batch.get("attention_mask", torch.empty(shape, dtype=torch.bool, device=device))
        batch["attention_mask"] = _sent(mask.view(torch.uint8), group).view(torch.bool)
    return batch


def _sent(values: torch.Tensor, group: distributed.ProcessGroup | None) -> torch.Tensor:
    """The values of the first rank of a group."""
    values = values.contiguous()
    distributed.broadcast(values, distributed.get_process_group_ranks(group)[0], group)
    return values


def _no_span() -> RuntimeError:
    return RuntimeError("span_id is missing: take the batches from SynthKDDataset")


def _status(error: BaseException) -> int:
    if isinstance(error, StopIteration):
        return _END
    return _NO_SPAN if str(error) == str(_no_span()) else _FAILED


def _refusal(status: int) -> BaseException:
    """What a rank raises when the rank that reads has no batch."""
    if status == _END:
        return StopIteration()
    if status == _NO_SPAN:
        return _no_span()
    return RuntimeError(
        "the first rank of this tensor parallel group could not read a batch: see its error"
    )
