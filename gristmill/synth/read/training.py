"""The training step of Megatron-Core on SYNTH's datasets, its batch, and a blend of shards.

It imports torch and Megatron-Core, but not Megatron-LM (`megatron.training`).
Source: `docs/formats/synth.md#step`.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from megatron.core import parallel_state
from megatron.core.datasets.blended_dataset import BlendedDataset
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.utils import (
    get_batch_on_this_cp_rank,
    get_model_config,
    get_pg_rank,
    get_pg_size,
)
from torch import distributed

from gristmill.synth.read.dataset import makes_index
from gristmill.synth.read.documents import index_folder
from gristmill.synth.read.loss import check_weights, span_normalized_loss

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

    Raises, on every rank of `tp_group`: StopIteration at the end of the iterator; RuntimeError for
    samples without `span_id`; ValueError if S cannot be divided by 2*cp.
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
    """The same as `_read` on every rank of a group, whose first rank reads."""
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


LossOutput = tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]
_REFUSED = ("mock_data", "sft", "fim_data", "legacy_tokenizer", "modelopt_enabled")
"""Arguments of Megatron-LM that choose other data or another loss."""


@dataclass(frozen=True, eq=False)
class KDTraining:
    """What a training job on SYNTH's datasets gives to Megatron: `forward_step` and its loss.

    w_r: weight of the reasoning span, default 1.0.
    w_f: weight of the final span, default 1.0.
    pg_collection: the groups `tp` and `cp`, default those of Megatron's `parallel_state`; where
        that is not initialized, this process is alone.
    device: of the batches, default the current GPU, or the CPU where there is none.

    `forward_step` suits `pretrain` of Megatron-LM and the functions of Megatron-Core's
    `get_forward_backward_func`.

    Raises ValueError if a weight is negative or not finite.
    """

    w_r: float = 1.0
    w_f: float = 1.0
    pg_collection: ProcessGroupCollection | None = None
    device: torch.device | None = None

    def __post_init__(self) -> None:
        check_weights(self.w_r, self.w_f)

    @classmethod
    def from_args(cls, args: Any) -> KDTraining:
        """The training of Megatron-LM's arguments, to which `add_kd_arguments` added its own.

        args: what `megatron.training.get_args` returns.

        Raises RuntimeError if they ask for mock, SFT or FIM data, a legacy tokenizer, or the
        losses of ModelOpt.
        """
        for name in _REFUSED:
            if getattr(args, name, False):
                raise RuntimeError(
                    f"a training on SYNTH's datasets does not allow {name}: unset it"
                )
        return cls(args.kd_span_weight_reasoning, args.kd_span_weight_final)

    def forward_step(
        self, data_iterator: Samples | None, model: torch.nn.Module
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], LossOutput]]:
        """Run the model on the next micro-batch; return its output and the loss of this output.

        data_iterator: gives collated samples of SynthKDDataset. None on ranks that do not read.
        model: a GPTModel of Megatron-Core, wrapped or not; its losses are float [B, S/cp].

        Raises as `get_batch`.
        """
        tp_group, cp_group = self._groups()
        batch = get_batch(
            data_iterator,
            inputs=_has(model, "pre_process") or _has(model, "mtp_process", missing=False),
            labels=_has(model, "post_process"),
            tp_group=tp_group,
            cp_group=cp_group,
            device=self.device,
        )
        output = model(
            batch.tokens,
            batch.position_ids,
            batch.attention_mask,
            labels=batch.labels,
            loss_mask=batch.loss_mask,
        )
        per_token = bool(get_model_config(model).calculate_per_token_loss)
        return output, partial(self.loss_func, batch=batch, per_token=per_token)

    def loss_func(
        self, output_tensor: torch.Tensor, *, batch: Batch, per_token: bool = False
    ) -> LossOutput:
        """Return loss, number of labels and report of one micro-batch, as Megatron expects them.

        output_tensor: float [B, S/cp], loss of each label.
        batch: of the same micro-batch.
        per_token: the model's `calculate_per_token_loss`, default False. It matters under context
            parallelism alone: if it is set Megatron adds the losses of all ranks and divides by
            the sum of their labels; else it divides on each rank and takes the mean of all ranks.

        The loss is float32 0-dim, the number int32 0-dim. The report has a float32 [2] of
        numerator and denominator for each name.

        Raises RuntimeError if the batch has no span_id, else as `span_normalized_loss`.
        """
        if batch.loss_mask is None:
            raise RuntimeError("loss_mask is missing: only the last stage of a pipeline has a loss")
        span = span_normalized_loss(
            output_tensor, batch.loss_mask, batch.span_id, self.w_r, self.w_f, self._groups()[1]
        )
        loss = span.loss if per_token else span.combined * (span.tokens * span.ranks)
        report = {
            name: torch.stack(
                [torch.as_tensor(value, device=loss.device).float() for value in pair]
            )
            for name, pair in span.report().items()
        }
        return loss, span.tokens.int(), report

    def _groups(self) -> tuple[Any, Any]:
        """The tensor and the context parallel group, None for this process alone."""
        if self.pg_collection is not None:
            return self.pg_collection.tp, self.pg_collection.cp
        if parallel_state.model_parallel_is_initialized():
            return (
                parallel_state.get_tensor_model_parallel_group(),
                parallel_state.get_context_parallel_group(),
            )
        return None, None


def add_kd_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the flags of a training on SYNTH's datasets; an `extra_args_provider` of `pretrain`.

    parser: Megatron-LM's.
    """
    group = parser.add_argument_group("SYNTH", "datasets with a loss mask and spans")
    group.add_argument(
        "--synth-kd-data", action="store_true", help="the data paths are SYNTH's `_tokens` prefixes"
    )
    for span in ("reasoning", "final"):
        group.add_argument(
            f"--kd-span-weight-{span}",
            type=_weight,
            default=1.0,
            metavar="WEIGHT",
            help=f"weight of the mean loss of the {span} span, at least 0 (default 1.0)",
        )
    return parser


def _weight(text: str) -> float:
    weight = float(text)
    if not 0 <= weight < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: must be finite and not negative")
    return weight


def _has(model: torch.nn.Module, attribute: str, missing: bool = True) -> bool:
    """Whether a model, below its wrappers, has a part; a model that does not say is whole."""
    inner: Any = model
    while not hasattr(inner, attribute):
        if not hasattr(inner, "module"):
            return missing
        inner = inner.module
    return bool(getattr(inner, attribute))


FILES: Final = ("description.txt", "dataset_index.npy", "dataset_sample_index.npy")


class BlendedSynthKDDataset(BlendedDataset):  # type: ignore[misc]
    """A BlendedDataset whose index is made apart and appears whole in the cache of its config.

    It has Megatron's arguments and samples. Several processes may begin with an empty cache, with
    torch.distributed or without, where Megatron's own class ends in an error.
    """

    def _build_indices(self) -> Any:
        """Build or load the index of the blend."""
        config = self.config  # type: ignore[has-type]
        if not config.path_to_cache or not makes_index(config):
            return super()._build_indices()
        key = f"{self.unique_description_hash}-{type(self).__name__}-{self.split.name}"
        cache = Path(config.path_to_cache)
        with index_folder(cache, key, FILES) as folder:
            # Megatron asks for its rank before it writes, which a process alone has not.
            is_alone = folder != cache and not torch.distributed.is_initialized()
            self.config = copy.copy(config)
            self.config.path_to_cache = None if is_alone else str(folder)
            try:
                indices = super()._build_indices()
            finally:
                self.config = config
            if is_alone:
                description, *arrays = (folder / f"{key}-{name}" for name in FILES)
                description.write_text(self.unique_description)
                for path, array in zip(arrays, indices, strict=True):
                    np.save(path, array)
            return indices


class SynthKDBlendBuilder(BlendedMegatronDatasetBuilder):  # type: ignore[misc]
    """Megatron's builder, whose blends are BlendedSynthKDDataset; its arguments are Megatron's."""

    @staticmethod
    def build_generic_dataset(cls: Any, *args: Any) -> Any:  # noqa: PLW0211  Megatron's name
        """Build a dataset as Megatron does, a blend as ours."""
        mine = BlendedSynthKDDataset if cls is BlendedDataset else cls
        return BlendedMegatronDatasetBuilder.build_generic_dataset(mine, *args)
