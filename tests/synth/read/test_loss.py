"""The span-normalised loss against its formula, and in training steps on sample shards."""

import math

import numpy as np
import pytest

from gristmill.synth import span_normalized_loss
from tests.later import later

torch = later("torch")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.3, 2.0), (0.0, 1.0)])
def test_the_loss_is_that_of_the_formula(seed: int, weights: tuple[float, float]) -> None:
    chance = np.random.default_rng(seed)
    losses = chance.random((3, 17))
    span = chance.integers(0, 3, (3, 17))
    mask = (span != 0) & (chance.random((3, 17)) < 0.9)
    w_r, w_f = weights
    reasoning, final = losses[mask & (span == 1)], losses[mask & (span == 2)]
    loss = span_normalized_loss(
        torch.tensor(losses), torch.tensor(mask, dtype=torch.float32), torch.tensor(span), w_r, w_f
    )
    combined = w_r * reasoning.mean() + w_f * final.mean()
    tokens = len(reasoning) + len(final)
    expected = {
        "combined": combined,
        "loss": combined * tokens,
        "tokens": tokens,
        "reasoning": reasoning.mean(),
        "final": final.mean(),
        "reasoning_sum": reasoning.sum(),
        "final_sum": final.sum(),
        "reasoning_tokens": len(reasoning),
        "final_tokens": len(final),
        "reasoning_weight": w_r / len(reasoning),
        "final_weight": w_f / len(final),
    }
    for name, value in expected.items():
        assert getattr(loss, name).item() == pytest.approx(float(value), rel=1e-5), name
    report = {k: (float(a), float(b)) for k, (a, b) in loss.report().items()}
    assert report["lm loss"] == (pytest.approx(combined * tokens, rel=1e-5), tokens)
    assert report["reasoning loss"][1] == report["reasoning tokens"][0] == len(reasoning)


def test_the_gradient_is_the_effective_weight_and_a_wrong_argument_is_refused() -> None:
    losses = torch.rand(2, 6, requires_grad=True)
    span = torch.tensor([[0, 1, 1, 2, 0, 0], [1, 2, 2, 2, 0, 1]])
    loss = span_normalized_loss(losses, (span != 0).float(), span, 0.5, 3.0)
    loss.combined.backward()
    expected = torch.tensor([0.0, 0.5 / 4, 3.0 / 4])[span]
    assert torch.allclose(losses.grad, expected)
    assert loss.reasoning_weight.item() == 0.5 / 4
    ones = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="span_id is missing"):
        span_normalized_loss(ones, ones, None)
    with pytest.raises(ValueError, match="shapes differ"):
        span_normalized_loss(ones, ones, torch.ones(3, 2))
    for weight in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="negative"):
            span_normalized_loss(ones, ones, ones, w_f=weight)
        with pytest.raises(ValueError, match="negative"):
            span_normalized_loss(ones, ones, ones, w_r=weight)
    with pytest.raises(ValueError, match="not floating point"):
        span_normalized_loss(ones.long(), ones, ones)


def test_a_span_without_labels_and_an_infinite_loss_of_a_masked_one_have_no_effect() -> None:
    losses = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    final = span_normalized_loss(losses, torch.ones(1, 3), torch.full((1, 3), 2))
    assert (final.combined.item(), final.reasoning.item()) == (2.0, 0.0)
    empty = span_normalized_loss(losses, torch.zeros(1, 3), torch.zeros(1, 3))
    empty.loss.backward()
    assert (empty.loss.item(), empty.tokens.item()) == (0.0, 0)
    assert torch.equal(losses.grad, torch.zeros(1, 3))
    losses = torch.tensor([math.inf, 2.0, math.nan], requires_grad=True)
    loss = span_normalized_loss(losses, torch.tensor([0, 1, 0]), torch.tensor([1, 1, 2]))
    loss.loss.backward()
    assert loss.loss.item() == 2.0
    assert losses.grad.tolist() == [0.0, 1.0, 0.0]
