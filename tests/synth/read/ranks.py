"""Runs the training glue on several ranks, each a process, over gloo on the CPU.

Each rank writes what it got to a file. `test_batch.py` and `test_training.py` compare.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from megatron.core.process_groups_config import ProcessGroupCollection
from torch import distributed, multiprocessing

from gristmill.synth.read.training import Batch, KDTraining, get_batch

ROWS, LENGTH, WORDS, STEPS = 3, 16, 50, 4
FIELDS = ("tokens", "position_ids", "labels", "span_id", "loss_mask", "attention_mask")
WEIGHTS = (0.7, 2.0)


def samples(step: int, *, masked: bool = False) -> dict[str, torch.Tensor]:
    """A collated batch: the last one has no final answer, and one row has no labels at all."""
    chance = np.random.default_rng(step)
    span = chance.integers(0, 2 if step == STEPS - 1 else 3, (ROWS, LENGTH))
    span[1] = 0
    kept = (span != 0) & (chance.random((ROWS, LENGTH)) < 0.8)
    batch = {
        "tokens": torch.tensor(chance.integers(0, WORDS, (ROWS, LENGTH))),
        "labels": torch.tensor(chance.integers(0, WORDS, (ROWS, LENGTH))),
        "loss_mask": torch.tensor(kept, dtype=torch.float32),
        "position_ids": torch.arange(LENGTH).repeat(ROWS, 1),
        "span_id": torch.tensor(span),
    }
    if masked:
        mask = torch.tensor(chance.random((ROWS, 1, LENGTH, LENGTH)) < 0.5)
        batch["attention_mask"] = mask
    return batch


class LossOfLabels(torch.nn.Module):
    """A model whose loss of a label is a parameter of its own."""

    def __init__(self, per_token: bool) -> None:
        super().__init__()
        chance = np.random.default_rng(7)
        self.losses = torch.nn.Parameter(torch.tensor(chance.random(WORDS), dtype=torch.float32))
        self.config = SimpleNamespace(calculate_per_token_loss=per_token)

    def forward(self, tokens: Any, position_ids: Any, mask: Any, *, labels: Any, **_: Any) -> Any:
        return self.losses[labels]


def failing(error: type[BaseException]) -> Iterator[Any]:
    raise error("the disk is gone")
    yield


def outcomes(reads: bool, tp: Any, cp: Any) -> list[str]:
    """What a rank raises at the end of the data, without spans, and where reading fails."""
    without_span = {k: v for k, v in samples(0).items() if k != "span_id"}
    raised = []
    for iterator in (iter(()), iter([without_span]), failing(OSError), None):
        try:
            get_batch(iterator if reads else None, tp_group=tp, cp_group=cp)
        except (StopIteration, RuntimeError, OSError) as error:
            raised.append(f"{type(error).__name__}: {error}")
        else:
            raised.append("nothing")
    return raised


def as_arrays(batch: Batch) -> dict[str, Any]:
    values = {name: getattr(batch, name) for name in FIELDS}
    return {k: None if v is None else v.numpy() for k, v in values.items()}


def train(tp: Any, cp: Any, reads: bool, per_token: bool) -> dict[str, Any]:
    """Losses, numbers of labels, reports and the gradient of a step of several micro-batches."""
    training = KDTraining(*WEIGHTS, ProcessGroupCollection(tp=tp, cp=cp))
    model = LossOfLabels(per_token)
    steps = iter([samples(step) for step in range(STEPS)]) if reads else None
    done = []
    for _ in range(STEPS):
        output, loss_func = training.forward_step(steps, model)
        loss, tokens, report = loss_func(output)
        (loss if per_token else loss / tokens.clamp(min=1) / STEPS).backward()
        done.append((loss.item(), int(tokens), {k: v.tolist() for k, v in report.items()}))
    return {"steps": done, "gradient": model.losses.grad.numpy()}


def groups(rank: int, world: int, tp_size: int) -> tuple[Any, Any]:
    """The tensor parallel group of a rank, of adjacent ranks, and its context parallel group."""
    layout = np.arange(world).reshape(-1, tp_size)
    tp = [distributed.new_group(ranks.tolist()) for ranks in layout]
    cp = [distributed.new_group(ranks.tolist()) for ranks in layout.T]
    return tp[rank // tp_size], cp[rank % tp_size]


def results_of(rank: int, world: int, tp_size: int) -> dict[str, Any]:
    """What one rank gets, as `check_ranks` takes it."""
    tp, cp = groups(rank, world, tp_size)
    reads = rank % tp_size == 0
    batches = {}
    for name, (inputs, labels) in {
        "all": (True, True),
        "first": (True, False),
        "last": (False, True),
    }.items():
        for masked in (False, True):
            steps = iter([samples(0, masked=masked)]) if reads else None
            batch = get_batch(steps, inputs=inputs, labels=labels, tp_group=tp, cp_group=cp)
            batches[name, masked] = as_arrays(batch)
    return {
        "batches": batches,
        "raised": outcomes(reads, tp, cp),
        "training": {flag: train(tp, cp, reads, flag) for flag in (False, True)},
    }


def run_rank(rank: int, world: int, tp_sizes: list[int], folder: str) -> None:
    """The process of one rank."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world
    )
    results = {tp_size: results_of(rank, world, tp_size) for tp_size in tp_sizes}
    torch.save(results, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def run(world: int, tp_sizes: list[int], folder: Path) -> None:
    """Run as many processes as `world`, and check each way to divide them into groups."""
    multiprocessing.spawn(run_rank, (world, tp_sizes, str(folder)), nprocs=world, join=True)
    files = [folder / f"{rank}.pt" for rank in range(world)]
    results = [torch.load(file, weights_only=False) for file in files]
    for tp_size in tp_sizes:
        check_ranks([result[tp_size] for result in results], tp_size, world // tp_size)


def check_ranks(results: list[dict[str, Any]], tp_size: int, cp_size: int) -> None:
    """Compare what all ranks got with slices and losses that NumPy computes."""
    for rank, result in enumerate(results):
        for (name, masked), batch in result["batches"].items():
            check_slices(batch, name, masked, rank // tp_size, cp_size)
        check_outcomes(result["raised"], rank % tp_size == 0)
    for per_token in (False, True):
        check_training([result["training"][per_token] for result in results[::tp_size]], per_token)
        for rank, result in enumerate(results):
            of_first = results[rank - rank % tp_size]["training"][per_token]
            assert result["training"][per_token]["steps"] == of_first["steps"]


def check_slices(batch: dict[str, Any], name: str, masked: bool, part: int, parts: int) -> None:
    """A rank has two slices of the sequence: one from its begin, one from its end."""
    needed = {
        "all": {"tokens", "position_ids", "labels", "span_id", "loss_mask"},
        "first": {"tokens", "position_ids"},
        "last": {"labels", "span_id", "loss_mask"},
    }[name] | ({"attention_mask"} if masked else set())
    assert {field for field, values in batch.items() if values is not None} == needed
    for field in needed:
        whole = samples(0, masked=masked)[field].numpy()
        slices = np.split(whole, 2 * parts, axis=2 if field == "attention_mask" else 1)
        expected = np.concatenate(
            [slices[part], slices[2 * parts - 1 - part]], axis=2 if field == "attention_mask" else 1
        )
        if parts == 1:
            expected = whole
        assert batch[field].dtype == expected.dtype, field
        assert np.array_equal(batch[field], expected), field


def check_outcomes(raised: list[str], reads: bool) -> None:
    end, without_span, failed, no_iterator = raised
    assert end == "StopIteration: "
    assert without_span.startswith("RuntimeError: span_id is missing: take the batches from")
    if reads:
        assert failed == "OSError: the disk is gone"
        assert no_iterator.startswith("RuntimeError: this rank has no data iterator: build the")
    else:
        assert failed == no_iterator
        assert failed.startswith("RuntimeError: the first rank of this tensor parallel group")


def in_numpy(step: int, losses: np.ndarray) -> dict[str, Any]:
    """The formula of `docs/formats/synth.md#span-normalised-loss`, in float64."""
    batch = {name: values.numpy() for name, values in samples(step).items()}
    per_label = losses[batch["labels"]]
    r = (batch["loss_mask"] != 0) & (batch["span_id"] == 1)
    f = (batch["loss_mask"] != 0) & (batch["span_id"] == 2)
    w_r, w_f = WEIGHTS
    weight = w_r * r / max(r.sum(), 1) + w_f * f / max(f.sum(), 1)
    gradient = np.zeros(WORDS)
    np.add.at(gradient, batch["labels"], weight)
    return {
        "combined": (weight * per_label).sum(),
        "tokens": int(r.sum() + f.sum()),
        "gradient": gradient,
        "reasoning": (per_label[r].sum(), r.sum()),
        "final": (per_label[f].sum(), f.sum()),
        "weights": (w_r / max(r.sum(), 1), w_f / max(f.sum(), 1)),
    }


def check_training(ranks: list[dict[str, Any]], per_token: bool) -> None:
    """Losses of context parallel ranks, put together as Megatron does, are those of the whole."""
    losses = LossOfLabels(per_token).losses.detach().numpy().astype(np.float64)
    steps = [in_numpy(step, losses) for step in range(STEPS)]
    total = sum(step["tokens"] for step in steps)
    gradients = [rank["gradient"].astype(np.float64) for rank in ranks]
    if per_token:
        expected = sum(step["gradient"] * step["tokens"] for step in steps) / total
        gradient = np.sum(gradients, axis=0) / total
    else:
        expected = sum(step["gradient"] for step in steps) / STEPS
        gradient = np.mean(gradients, axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
    for number, step in enumerate(steps):
        parts = [rank["steps"][number] for rank in ranks]
        assert sum(tokens for _, tokens, _ in parts) == step["tokens"]
        combined = (
            sum(loss for loss, _, _ in parts) / step["tokens"]
            if per_token
            else np.mean([loss / max(tokens, 1) for loss, tokens, _ in parts])
        )
        np.testing.assert_allclose(combined, step["combined"], rtol=1e-5)
        report = {
            name: np.sum([rank_report[name] for _, _, rank_report in parts], axis=0)
            for name in parts[0][2]
        }
        expected = [step["combined"] * step["tokens"], step["tokens"]]
        np.testing.assert_allclose(report["lm loss"], expected, rtol=1e-5)
        for span, weight in zip(("reasoning", "final"), step["weights"], strict=True):
            np.testing.assert_allclose(report[f"{span} loss"], step[span], rtol=1e-5)
            for name, value in ((f"{span} tokens", step[span][1]), (f"{span} weight", weight)):
                np.testing.assert_allclose(report[name][0] / report[name][1], value, rtol=1e-5)
