"""The training step: what Megatron's schedules get from it, and the flags of a job."""

import argparse
import io
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.later import later
from tests.synth.read.test_dataset import config, process_group

torch = later("torch")
ranks = later("tests.synth.read.ranks", "torch", "megatron.core")
synth = later("gristmill.synth", "torch", "megatron.core")
batches = later("gristmill.synth.read.training", "torch", "megatron.core")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("per_token", [False, True])
def test_losses_over_micro_batches_are_those_of_the_formula(per_token):
    ranks.check_training([ranks.train(None, None, True, per_token)], per_token)


def test_the_step_gives_the_types_that_megatron_adds_up():
    model = ranks.LossOfLabels(per_token=True)
    output, loss_func = synth.KDTraining(*ranks.WEIGHTS).forward_step(
        iter([ranks.samples(0)]), model
    )
    loss, tokens, report = loss_func(output)
    assert (loss.dtype, tokens.dtype) == (torch.float32, torch.int32)
    assert (loss.dim(), tokens.dim()) == (0, 0)
    assert loss.requires_grad
    assert list(report) == [
        *("lm loss", "reasoning loss", "final loss", "reasoning tokens", "final tokens"),
        *("reasoning weight", "final weight"),
    ]
    for pair in report.values():
        assert (pair.dtype, pair.shape, pair.requires_grad) == (torch.float32, (2,), False)
    batch = ranks.samples(0)
    whole = synth.span_normalized_loss(output, batch["loss_mask"], batch["span_id"], *ranks.WEIGHTS)
    assert torch.equal(loss, whole.loss)
    assert torch.equal(loss_func.func(output, batch=batches.Batch(**batch))[0], whole.loss)


def pipeline(parts: dict[str, bool]) -> tuple[Any, Any]:
    """A stage, and it as Megatron wraps it twice."""

    class Stage(torch.nn.Module):
        """A stage of a pipeline, which keeps what it is called with."""

        def __init__(self, **parts: bool) -> None:
            super().__init__()
            self.config = SimpleNamespace(calculate_per_token_loss=False)
            for name, value in parts.items():
                setattr(self, name, value)

        def forward(self, *inputs: Any, **labels: Any) -> Any:
            self.inputs, self.labels = inputs, labels
            return torch.zeros(ranks.ROWS, ranks.LENGTH)

    class Wrapper(torch.nn.Module):
        """What Megatron puts around a model for data parallelism and for half precision."""

        def __init__(self, module: torch.nn.Module) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any, **labels: Any) -> Any:
            return self.module(*inputs, **labels)

    stage = Stage(**parts)
    return stage, Wrapper(Wrapper(stage))


@pytest.mark.parametrize(
    ("parts", "inputs", "labels"),
    [
        ({"pre_process": True, "post_process": True}, True, True),
        ({"pre_process": True, "post_process": False}, True, False),
        ({"pre_process": False, "post_process": True}, False, True),
        ({"pre_process": False, "post_process": True, "mtp_process": True}, True, True),
        ({"pre_process": False, "post_process": False}, False, False),
        ({}, True, True),
    ],
)
def test_a_stage_of_a_pipeline_is_called_with_what_it_needs(parts, inputs, labels):
    stage, wrapped = pipeline(parts)
    _, loss_func = synth.KDTraining().forward_step(iter([ranks.samples(0)]), wrapped)
    assert [value is not None for value in stage.inputs] == [inputs, inputs, False]
    assert {k: v is not None for k, v in stage.labels.items()} == {
        "labels": labels,
        "loss_mask": labels,
    }
    if not labels:
        with pytest.raises(RuntimeError, match="loss_mask is missing: only the last stage"):
            loss_func(torch.zeros(1))


def test_a_batch_needs_spans_and_its_fields_have_the_types_of_the_format():
    samples = {k: v for k, v in ranks.samples(0).items() if k != "span_id"}
    with pytest.raises(RuntimeError, match="span_id is missing: take the batches from"):
        synth.KDTraining().forward_step(iter([samples]), ranks.LossOfLabels(per_token=False))
    batch = batches.Batch(loss_mask=samples["loss_mask"])
    with pytest.raises(RuntimeError, match="span_id is missing: take the batches from"):
        synth.KDTraining().loss_func(samples["loss_mask"], batch=batch)
    samples = {k: v.to(torch.int32) for k, v in ranks.samples(0).items()}
    batch = batches.get_batch(iter([samples]))
    assert {batch.tokens.dtype, batch.labels.dtype, batch.span_id.dtype} == {torch.int64}
    assert batch.loss_mask.dtype == torch.float32
    assert batch.tokens.device == batches.current_device()
    steps = iter([ranks.samples(0, masked=True)])
    ranks.check_slices(ranks.as_arrays(batches.get_batch(steps)), "all", True, 0, 1)
    assert ranks.outcomes(True, None, None)[3].startswith("RuntimeError: this rank has no data")
    ranks.check_outcomes(ranks.outcomes(True, None, None), reads=True)


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (1.0, math.nan), (math.inf, 1.0)])
def test_a_wrong_weight_is_refused(weights):
    with pytest.raises(ValueError, match="finite and not negative"):
        synth.KDTraining(*weights)


def test_flags_become_weights_and_a_process_alone_reads_the_index_again(kd_root, tmp_path):
    parser = synth.add_kd_arguments(argparse.ArgumentParser())
    args = parser.parse_args(["--synth-kd-data", "--kd-span-weight-final", "2.5"])
    training = synth.KDTraining.from_args(args)
    assert (args.synth_kd_data, training.w_r, training.w_f) == (True, 1.0, 2.5)
    assert parser.parse_args([]).synth_kd_data is False
    training = synth.KDTraining.from_args(parser.parse_args(["--kd-span-weight-reasoning", "0"]))
    assert (training.w_r, training.w_f) == (0.0, 1.0)
    first = samples(blend(kd_root, tmp_path))
    assert {number for number, _ in first} == {0, 1}
    assert named(tmp_path) == expected()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = blend(kd_root, tmp_path)
    assert isinstance(again.dataset_index, np.memmap)
    assert samples(again) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
    assert samples(blend(kd_root, None)) == first


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "much"])
@pytest.mark.parametrize("span", ["reasoning", "final"])
def test_a_wrong_flag_is_refused(weight, span, capsys):
    parser = synth.add_kd_arguments(argparse.ArgumentParser())
    with pytest.raises(SystemExit):
        parser.parse_args([f"--kd-span-weight-{span}={weight}"])
    assert f"--kd-span-weight-{span}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mock_data", "sft", "fim_data", "legacy_tokenizer"])
def test_other_data_is_refused(name):
    args = synth.add_kd_arguments(argparse.ArgumentParser()).parse_args([])
    setattr(args, name, True)
    with pytest.raises(RuntimeError, match=f"does not allow {name}"):
        synth.KDTraining.from_args(args)


builders = later("megatron.core.datasets.blended_megatron_dataset_builder")
blends = later("gristmill.synth.read.training", "torch", "megatron.core")
__all__ = ["process_group"]
# Megatron warns about the pad token -1, and numpy warns about Megatron.


def blend(root: Path, cache: Path | None, builder: Any = None) -> Any:
    """Forty samples of both splits of a shard."""
    prefixes = [str(root / f"{split}/shard_00_tokens") for split in ("train", "valid")]
    settings = config(cache, blend_per_split=[(prefixes, [0.7, 0.3]), None, None])
    chosen = builder or synth.SynthKDBlendBuilder
    (made, _, _) = chosen(synth.SynthKDDataset, [40, 0, 0], lambda: True, settings).build()
    return made


def samples(made: Any) -> list[tuple[int, list[int]]]:
    return [(int(made[n]["dataset_id"]), made[n]["tokens"].tolist()) for n in range(40)]


def named(cache: Path) -> list[str]:
    found = sorted(path.name for path in cache.iterdir() if "Blended" in path.name)
    return [name.partition("-")[2] for name in found]


def expected() -> list[str]:
    return sorted(f"BlendedSynthKDDataset-train-{name}" for name in blends.FILES)


@pytest.mark.usefixtures("process_group")
def test_with_torch_distributed_a_blend_has_the_samples_of_megatrons_own(kd_root, tmp_path):
    own = samples(blend(kd_root, tmp_path / "own", builders.BlendedMegatronDatasetBuilder))
    made = blend(kd_root, tmp_path / "ours")
    assert made.config.path_to_cache == str(tmp_path / "ours")
    assert samples(made) == own
    assert named(tmp_path / "ours") == expected()
    assert samples(blend(kd_root, tmp_path / "ours")) == own


def test_a_second_opener_waits_for_an_index_that_is_half_written(kd_root, tmp_path, monkeypatch):
    half, go, save = Event(), Event(), np.save

    def slow(path: Any, array: Any, **options: Any) -> None:
        if "dataset_sample_index" not in str(path) or half.is_set():
            save(path, array, **options)
            return
        octets = io.BytesIO()
        save(octets, array, **options)
        with Path(path).open("wb") as file:
            file.write(octets.getvalue()[:40])
            file.flush()
            half.set()
            assert go.wait(60)
            file.write(octets.getvalue()[40:])

    alone = samples(blend(kd_root, None))
    monkeypatch.setattr(np, "save", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(blend, kd_root, tmp_path)
        assert half.wait(60)
        seen = named(tmp_path)
        second = pool.submit(blend, kd_root, tmp_path)
        go.set()
        assert not set(seen) & set(expected())
        assert samples(first.result(60)) == samples(second.result(60)) == alone
    assert named(tmp_path) == expected()


# torch warns about numbers of threads, Megatron about what is not installed.


def group_of(size: int) -> object:
    return SimpleNamespace(size=lambda: size, rank=lambda: 0)


def test_a_stage_gets_what_it_needs_and_one_without_losses_needs_no_span():
    for name, (inputs, labels) in {"first": (True, False), "last": (False, True)}.items():
        batch = batches.get_batch(iter([ranks.samples(0)]), inputs=inputs, labels=labels)
        ranks.check_slices(ranks.as_arrays(batch), name, False, 0, 1)
    steps = iter([ranks.samples(0)])
    nothing = batches.get_batch(steps, inputs=False, labels=False)
    assert set(ranks.as_arrays(nothing).values()) == {None}
    assert len(list(steps)) == 1
    samples = {k: v for k, v in ranks.samples(0).items() if k != "span_id"}
    assert batches.get_batch(iter([samples]), labels=False).tokens is not None


@pytest.mark.parametrize("size", [3, 16])
def test_a_length_that_context_parallel_ranks_cannot_divide_is_refused(size, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(ValueError, match=f"sequence length 16 cannot be divided by {2 * size},"):
        batches.get_batch(iter([ranks.samples(0)]), cp_group=group_of(size))


@pytest.mark.slow
def test_two_ranks_have_their_slices_and_add_up_to_the_whole(tmp_path):
    """Both tensor parallel, then both context parallel."""
    ranks.run(2, [2, 1], tmp_path)


@pytest.mark.slow
def test_four_ranks_have_their_slices_and_add_up_to_the_whole(tmp_path):
    """Two by two, then all four of one kind."""
    ranks.run(4, [2, 4, 1], tmp_path)
