"""The training step: what Megatron's schedules get from it, and the flags of a job."""

import argparse
import math
from types import SimpleNamespace
from typing import Any

import pytest

from tests.later import later

torch = later("torch")
ranks = later("tests.synth.read.ranks", "torch", "megatron.core")
synth = later("gristmill.synth", "torch", "megatron.core")
batches = later("gristmill.synth.read.batch", "torch", "megatron.core")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("per_token", [False, True])
def test_losses_over_micro_batches_are_those_of_the_formula(per_token: bool) -> None:
    ranks.check_training([ranks.train(None, None, True, per_token)], per_token)


def test_the_step_gives_the_types_that_megatron_adds_up() -> None:
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


@pytest.mark.parametrize("span", [0, 1, 2])
def test_a_span_without_labels_contributes_nothing(span: int) -> None:
    samples = ranks.samples(0) | {"span_id": torch.full((ranks.ROWS, ranks.LENGTH), span)}
    output, loss_func = synth.KDTraining().forward_step(
        iter([samples]), ranks.LossOfLabels(per_token=False)
    )
    loss, tokens, report = loss_func(output)
    labels = int(samples["loss_mask"].sum()) if span else 0
    assert int(tokens) == labels
    assert loss.item() == pytest.approx((output * samples["loss_mask"]).sum().item() * (span > 0))
    assert [report[f"{name} tokens"][0].item() for name in ("reasoning", "final")] == [
        labels * (span == 1),
        labels * (span == 2),
    ]


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
def test_a_stage_of_a_pipeline_is_called_with_what_it_needs(
    parts: dict[str, bool], inputs: bool, labels: bool
) -> None:
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


def test_a_batch_without_spans_is_refused() -> None:
    samples = {k: v for k, v in ranks.samples(0).items() if k != "span_id"}
    with pytest.raises(RuntimeError, match="span_id is missing: take the batches from"):
        synth.KDTraining().forward_step(iter([samples]), ranks.LossOfLabels(per_token=False))
    batch = batches.Batch(loss_mask=samples["loss_mask"])
    with pytest.raises(RuntimeError, match="span_id is missing: take the batches from"):
        synth.KDTraining().loss_func(samples["loss_mask"], batch=batch)


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (1.0, math.nan), (math.inf, 1.0)])
def test_a_wrong_weight_is_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        synth.KDTraining(*weights)


def test_flags_become_weights() -> None:
    parser = synth.add_kd_arguments(argparse.ArgumentParser())
    args = parser.parse_args(["--synth-kd-data", "--kd-span-weight-final", "2.5"])
    training = synth.KDTraining.from_args(args)
    assert (args.synth_kd_data, training.w_r, training.w_f) == (True, 1.0, 2.5)
    assert parser.parse_args([]).synth_kd_data is False
    training = synth.KDTraining.from_args(parser.parse_args(["--kd-span-weight-reasoning", "0"]))
    assert (training.w_r, training.w_f) == (0.0, 1.0)


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "much"])
@pytest.mark.parametrize("span", ["reasoning", "final"])
def test_a_wrong_flag_is_refused(
    weight: str, span: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = synth.add_kd_arguments(argparse.ArgumentParser())
    with pytest.raises(SystemExit):
        parser.parse_args([f"--kd-span-weight-{span}={weight}"])
    assert f"--kd-span-weight-{span}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mock_data", "sft", "fim_data", "legacy_tokenizer"])
def test_other_data_is_refused(name: str) -> None:
    args = synth.add_kd_arguments(argparse.ArgumentParser()).parse_args([])
    setattr(args, name, True)
    with pytest.raises(RuntimeError, match=f"does not allow {name}"):
        synth.KDTraining.from_args(args)
