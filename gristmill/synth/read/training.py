"""The training step of Megatron-Core on SYNTH's datasets: `forward_step` and `loss_func`.

This module imports torch and Megatron-Core, so only training jobs and tests import it. It does
not need Megatron-LM (`megatron.training`). See also `batch.py`: the batch of one rank.
Source: `docs/formats/synth.md#step`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.utils import get_model_config

from gristmill.synth.read.batch import Batch, Samples, get_batch
from gristmill.synth.read.loss import check_weights, span_normalized_loss

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
