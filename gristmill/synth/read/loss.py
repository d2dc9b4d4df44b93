"""The span-normalised loss: reasoning and final answers weigh what they are given to weigh.

Source: `docs/formats/synth.md#span-normalised-loss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class SpanLoss:
    """A micro-batch's loss and what is logged of it. All values are 0-dim tensors.

    loss: combined * tokens, to be divided by the tokens summed over micro-batches,
        as Megatron does; differentiable, as are combined, reasoning and final.
    tokens: int64, supervised labels of both spans.
    combined: w_r * reasoning + w_f * final.
    reasoning, final: mean loss of each span, 0 where it has no label.
    reasoning_sum, final_sum: the sums that the means were made from.
    reasoning_tokens, final_tokens: int64, labels of each span.
    reasoning_weight, final_weight: what one label of the span weighs in
        `combined`: w / max(count, 1).
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

    def report(self) -> dict[str, tuple[torch.Tensor, torch.Tensor | int]]:
        """Pairs (numerator, denominator) for a logger that sums both and divides."""
        return {
            "lm loss": (self.loss.detach(), self.tokens),
            "reasoning loss": (self.reasoning_sum.detach(), self.reasoning_tokens),
            "final loss": (self.final_sum.detach(), self.final_tokens),
            "reasoning tokens": (self.reasoning_tokens, 1),
            "final tokens": (self.final_tokens, 1),
            "reasoning weight": (self.reasoning_weight, 1),
            "final weight": (self.final_weight, 1),
        }


def span_normalized_loss(
    losses: torch.Tensor,
    loss_mask: torch.Tensor,
    span_id: torch.Tensor | None,
    w_r: float = 1.0,
    w_f: float = 1.0,
) -> SpanLoss:
    """L = w_r * mean(losses | span 1) + w_f * mean(losses | span 2) over one micro-batch.

    losses: float, of every label. loss_mask: 0 or 1. span_id: 0, 1 or 2. All of
    one shape, whatever it is. A span without a label contributes 0.

    Raises RuntimeError where span_id is missing, ValueError for shapes that
    differ, weights that are negative or not finite, or losses that are not floating point.
    """
    import torch

    if span_id is None:
        raise RuntimeError("span_id is missing: the batch does not come from SynthKDDataset")
    if not losses.shape == loss_mask.shape == span_id.shape:
        raise ValueError(
            f"shapes differ: losses {tuple(losses.shape)}, loss_mask {tuple(loss_mask.shape)}, "
            f"span_id {tuple(span_id.shape)}"
        )
    if not (0 <= w_r < math.inf and 0 <= w_f < math.inf):
        raise ValueError(f"weights must be finite and not negative: {w_r}, {w_f}")
    if not losses.is_floating_point():
        raise ValueError(f"losses are {losses.dtype}, not floating point")
    flat, kept = losses.reshape(-1).float(), loss_mask.reshape(-1) != 0
    spans = span_id.reshape(-1)
    zero = flat.new_zeros(())
    sums, counts = [], []
    for span in (1, 2):
        chosen = kept & (spans == span)
        # Not `flat * chosen`: a masked label may have an infinite loss.
        sums.append(torch.where(chosen, flat, zero).sum())
        counts.append(chosen.sum())
    means = [total / count.clamp(min=1) for total, count in zip(sums, counts, strict=True)]
    combined = w_r * means[0] + w_f * means[1]
    tokens = counts[0] + counts[1]
    return SpanLoss(
        loss=combined * tokens,
        tokens=tokens,
        combined=combined,
        reasoning=means[0],
        final=means[1],
        reasoning_sum=sums[0],
        final_sum=sums[1],
        reasoning_tokens=counts[0],
        final_tokens=counts[1],
        reasoning_weight=w_r / counts[0].clamp(min=1),
        final_weight=w_f / counts[1].clamp(min=1),
    )
