"""The span-normalised loss: reasoning and final answer each have a weight of their own.

Source: `docs/formats/synth.md#span-normalised-loss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import distributed


@dataclass(frozen=True)
class SpanLoss:
    """The loss of one micro-batch, and what is logged. All values but `ranks` are 0-dim tensors.

    loss: combined * tokens. Megatron divides its sum over micro-batches by the
        sum of tokens.
    tokens: int64, number of supervised labels of both spans.
    reasoning_tokens, final_tokens: int64, number of labels of each span.
    reasoning_weight, final_weight: float32, weight of one label of the span in
        `combined`: w / max(labels, 1).
    ranks: number of context parallel ranks that the micro-batch is divided over, 1 by default.
        With several, tokens, sums and counts are those of this rank; the means are over the
        labels of all ranks, and the values of `loss`, `combined`, `reasoning` and `final` are
        this rank's summands of them.

    The losses are float32 and differentiable.
    """

    loss: torch.Tensor
    tokens: torch.Tensor
    combined: torch.Tensor
    reasoning: torch.Tensor
    final: torch.Tensor
    reasoning_sum: torch.Tensor
    final_sum: torch.Tensor
    reasoning_tokens: torch.Tensor
    final_tokens: torch.Tensor
    reasoning_weight: torch.Tensor
    final_weight: torch.Tensor
    ranks: int = 1

    def report(self) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
        """Pairs of numerator and denominator, summed over micro-batches and ranks, for a logger."""
        return {
            "lm loss": (self.loss.detach(), self.tokens),
            "reasoning loss": (self.reasoning_sum.detach(), self.reasoning_tokens),
            "final loss": (self.final_sum.detach(), self.final_tokens),
            "reasoning tokens": (self.reasoning_tokens, 1 / self.ranks),
            "final tokens": (self.final_tokens, 1 / self.ranks),
            "reasoning weight": (self.reasoning_weight, 1),
            "final weight": (self.final_weight, 1),
        }


def span_normalized_loss(
    losses: torch.Tensor,
    loss_mask: torch.Tensor,
    span_id: torch.Tensor | None,
    w_r: float = 1.0,
    w_f: float = 1.0,
    cp_group: distributed.ProcessGroup | None = None,
) -> SpanLoss:
    """Return w_r * mean(losses of span 1) + w_f * mean(losses of span 2) over one micro-batch.

    losses: float of any shape, loss of each label.
    loss_mask: of the same shape, 0 or 1.
    span_id: of the same shape, span code 0, 1 or 2.
    w_r: weight of the reasoning span, default 1.0.
    w_f: weight of the final span, default 1.0.
    cp_group: context parallel ranks that have the other labels of the micro-batch, default
        none. All of them call this; their losses add up to that of the micro-batch.

    A span without labels contributes 0.

    Raises RuntimeError if span_id is None. Raises ValueError if the shapes differ, if
    a weight is negative or not finite, or if losses is not floating point.
    """
    import torch

    if span_id is None:
        raise RuntimeError("span_id is missing: take the batches from SynthKDDataset")
    _check_arguments(losses, loss_mask, span_id, w_r, w_f)
    flat, kept = losses.reshape(-1).float(), loss_mask.reshape(-1) != 0
    spans = span_id.reshape(-1)
    zero = flat.new_zeros(())
    sums, counts = [], []
    for span in (1, 2):
        chosen = kept & (spans == span)
        # `flat * chosen` would be NaN if a masked label has an infinite loss.
        sums.append(torch.where(chosen, flat, zero).sum())
        counts.append(chosen.sum())
    wholes, ranks = _over_ranks(torch.stack(counts), cp_group)
    divisors = wholes.clamp(min=1)
    means = [total / divisor for total, divisor in zip(sums, divisors, strict=True)]
    combined = w_r * means[0] + w_f * means[1]
    tokens = counts[0] + counts[1]
    return SpanLoss(
        loss=combined * wholes.sum(),
        tokens=tokens,
        combined=combined,
        reasoning=means[0],
        final=means[1],
        reasoning_sum=sums[0],
        final_sum=sums[1],
        reasoning_tokens=counts[0],
        final_tokens=counts[1],
        reasoning_weight=w_r / divisors[0],
        final_weight=w_f / divisors[1],
        ranks=ranks,
    )


def _over_ranks(
    counts: torch.Tensor, group: distributed.ProcessGroup | None
) -> tuple[torch.Tensor, int]:
    """The sum of the counts over the ranks of a group, and the number of ranks."""
    if group is None or group.size() == 1:
        return counts, 1
    from torch import distributed

    counts = counts.clone()
    distributed.all_reduce(counts, group=group)
    return counts, group.size()


def _check_arguments(
    losses: torch.Tensor, loss_mask: torch.Tensor, span_id: torch.Tensor, w_r: float, w_f: float
) -> None:
    if not losses.shape == loss_mask.shape == span_id.shape:
        raise ValueError(
            f"shapes differ: losses {tuple(losses.shape)}, loss_mask {tuple(loss_mask.shape)}, "
            f"span_id {tuple(span_id.shape)}"
        )
    check_weights(w_r, w_f)
    if not losses.is_floating_point():
        raise ValueError(f"losses are {losses.dtype}, not floating point")


def check_weights(w_r: float, w_f: float) -> None:
    """Raise ValueError if a weight of a span is negative or not finite."""
    if not (0 <= w_r < math.inf and 0 <= w_f < math.inf):
        raise ValueError(f"weights must be finite and not negative: {w_r}, {w_f}")
