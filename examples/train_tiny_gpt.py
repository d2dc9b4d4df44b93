"""Trains a tiny GPT of Megatron-Core on SYNTH's sample shards, on the CPU, in one process.

    make run install
    .venv/bin/python examples/train_tiny_gpt.py --plot docs/training-loss.svg

The parts are those of a real job: SynthKDDataset through Megatron's builder of blends, a
DataLoader, a GPTModel, `KDTraining.forward_step` and Megatron's `get_forward_backward_func`.
Megatron-LM and Transformer Engine are not needed. See also `docs/synth.md#reading-in-training`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDatasetConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import TransformerConfig
from torch import distributed
from torch.overrides import TorchFunctionMode

from gristmill.svg import BOLD, END, MIDDLE, RULE, small_card, small_text
from gristmill.synth import KDTraining, SynthKDDataset, add_kd_arguments

LENGTH, ROWS, MICRO_BATCHES, SEED = 128, 2, 2, 1
VOCABULARY, EOD = 201_088, 199_999
SPANS = ("reasoning", "final")
COLOURS = {"reasoning": "#b06a1f", "final": "#2f7d5b"}


class OnTheCPU(TorchFunctionMode):
    """Makes tensors on the CPU where Megatron-Core asks for a GPU: its schedules always do."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of torch, with another device."""
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


class CausalAttention(torch.nn.Module):
    """Attention to the tokens before, by torch alone: Megatron-Core's own needs a GPU."""

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
    ) -> torch.Tensor:
        """Return [S, B, heads * width] of three [S, B, heads, width]."""
        q, k, v = (values.permute(1, 2, 0, 3) for values in (query, key, value))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.permute(2, 0, 1, 3).flatten(2)


def tiny_gpt() -> GPTModel:
    """Two layers of width 32 over the whole vocabulary of o200k_harmony."""
    config = TransformerConfig(
        num_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        hidden_dropout=0.0,
        use_cpu_initialization=True,
        calculate_per_token_loss=True,
        finalize_model_grads_func=divide_gradients,
    )
    layers = get_gpt_layer_local_spec(normalization="LayerNorm")
    layers.submodules.self_attention.submodules.core_attention = CausalAttention
    return GPTModel(config, layers, VOCABULARY, LENGTH)


def divide_gradients(models: list[torch.nn.Module], tokens: torch.Tensor, **_: Any) -> None:
    """Divide by the labels of all micro-batches; Megatron's own also adds up over ranks."""
    for model in models:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad /= tokens.clamp(min=1)


def micro_batches(data: Path, number: int) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of samples of all train shards, blended and shuffled by Megatron."""
    tokens = sorted(data.glob("train/shard_*_tokens.idx"))
    if not tokens:
        raise SystemExit(
            f"{data}: has no train/shard_XX_tokens.idx: run `make run`, or give --data"
        )
    config = GPTDatasetConfig(
        blend_per_split=[([str(path.with_suffix("")) for path in tokens], None), None, None],
        sequence_length=LENGTH,
        random_seed=SEED,
        tokenizer=SimpleNamespace(
            vocab_size=VOCABULARY, eod=EOD, pad=-1, unique_identifiers={"name": "o200k_harmony"}
        ),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    builder = BlendedMegatronDatasetBuilder(
        SynthKDDataset, [number * ROWS, 0, 0], lambda: True, config
    )
    train, _, _ = builder.build()
    return iter(torch.utils.data.DataLoader(train, batch_size=ROWS))


def train(data: Path, steps: int, training: KDTraining) -> Iterator[dict[str, tuple[float, int]]]:
    """Train, and give the mean loss and the number of labels of each span, step by step."""
    torch.manual_seed(SEED)
    model = tiny_gpt()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = micro_batches(data, steps * MICRO_BATCHES)
    for _ in range(steps):
        optimizer.zero_grad()
        reports = get_forward_backward_func()(
            forward_step_func=training.forward_step,
            data_iterator=batches,
            model=model,
            num_microbatches=MICRO_BATCHES,
            seq_length=LENGTH,
            micro_batch_size=ROWS,
        )
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses = {}
        for span in SPANS:
            total, labels = torch.stack([report[f"{span} loss"] for report in reports]).sum(0)
            losses[span] = (float(total / labels.clamp(min=1)), int(labels))
        yield losses


def plot(losses: Sequence[dict[str, tuple[float, int]]]) -> str:
    """The losses as an SVG on a background of its own: each step, and means of five steps."""
    left, right, top, bottom = 52, 560, 60, 296
    highest = max(loss for step in losses for loss, _ in step.values())
    most = max(2.0, 2.0 * -(-highest // 2))
    across = (right - left) / max(len(losses) - 1, 1)
    body = [small_text(20, 30, "A tiny GPT on the sample shards", BOLD, right)]
    body.append(small_text(right, 30, "mean loss of a label; bold: of five steps", END, right))
    for loss in range(0, int(most) + 1, 2):
        y = bottom - (bottom - top) * loss / most
        body.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{RULE}" stroke-width="0.7"/>')
        body.append(small_text(left - 8, y + 4, str(loss), END, right))
    for step in range(0, len(losses) + 1, max(1, len(losses) // 5)):
        x = left + across * (max(step, 1) - 1)
        body.append(small_text(x, bottom + 20, str(max(step, 1)), MIDDLE, right))
    body.append(small_text(right, bottom + 40, "step", END, right))
    for number, span in enumerate(SPANS):
        colour, dashes = COLOURS[span], ' stroke-dasharray="7 3"' if number else ""
        points = [
            (left + across * k, step[span][0]) for k, step in enumerate(losses) if step[span][1]
        ]
        for values, style in (
            (points, ' stroke-width="1" opacity="0.45"'),
            (_means(points), f' stroke-width="2.6"{dashes}'),
        ):
            path = " ".join(
                f"{x:.1f},{bottom - (bottom - top) * loss / most:.1f}" for x, loss in values
            )
            body.append(f'<polyline points="{path}" fill="none" stroke="{colour}"{style}/>')
        x = left + 150 + 150 * number
        body.append(f'<path d="M{x} 76h34" stroke="{colour}" stroke-width="2.6"{dashes}/>')
        body.append(small_text(x + 42, 80, span, f" fill='{colour}'{BOLD}", right))
    return small_card(350, body, 580)


def _means(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Each point with the mean of itself and up to four before it."""
    means = []
    for k, (x, _) in enumerate(points):
        last = [loss for _, loss in points[max(0, k - 4) : k + 1]]
        means.append((x, sum(last) / len(last)))
    return means


def main() -> None:
    """Train, print the losses, and draw them if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("data/megatron/synth_kd_v1_smoke"))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    args = add_kd_arguments(parser).parse_args()
    alone = distributed.HashStore()
    distributed.init_process_group("gloo", store=alone, rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    begin = time.monotonic()
    training = KDTraining(
        args.kd_span_weight_reasoning, args.kd_span_weight_final, device=torch.device("cpu")
    )
    losses = []
    with OnTheCPU():
        for step in train(args.data, args.steps, training):
            losses.append(step)
            shown = ", ".join(
                f"{span} {loss:.3f} ({labels} labels)" for span, (loss, labels) in step.items()
            )
            print(f"step {len(losses)}: {shown}", flush=True)
    print(f"{args.steps} steps in {time.monotonic() - begin:.0f} s")
    if args.plot:
        args.plot.write_text(plot(losses))
    parallel_state.destroy_model_parallel()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
