"""Micro-batches of a training job: who reads, who gets what, and who keeps which slice."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.later import later

torch = later("torch")
batches = later("gristmill.synth.read.batch", "torch", "megatron.core")
ranks = later("tests.synth.read.ranks", "torch", "megatron.core")

# torch warns about numbers of threads, Megatron about what is not installed.
pytestmark = pytest.mark.filterwarnings("ignore")


def group_of(size: int) -> object:
    return SimpleNamespace(size=lambda: size, rank=lambda: 0)


def test_one_process_has_the_whole_batch() -> None:
    steps = iter([ranks.samples(0, masked=True)])
    ranks.check_slices(ranks.as_arrays(batches.get_batch(steps)), "all", True, 0, 1)
    assert ranks.outcomes(True, None, None)[3].startswith("RuntimeError: this rank has no data")
    ranks.check_outcomes(ranks.outcomes(True, None, None), reads=True)


def test_a_stage_gets_what_it_needs() -> None:
    for name, (inputs, labels) in {"first": (True, False), "last": (False, True)}.items():
        batch = batches.get_batch(iter([ranks.samples(0)]), inputs=inputs, labels=labels)
        ranks.check_slices(ranks.as_arrays(batch), name, False, 0, 1)
    steps = iter([ranks.samples(0)])
    nothing = batches.get_batch(steps, inputs=False, labels=False)
    assert set(ranks.as_arrays(nothing).values()) == {None}
    assert len(list(steps)) == 1


def test_a_stage_without_losses_needs_no_span() -> None:
    samples = {k: v for k, v in ranks.samples(0).items() if k != "span_id"}
    assert batches.get_batch(iter([samples]), labels=False).tokens is not None


def test_fields_have_the_types_of_the_format() -> None:
    samples = {k: v.to(torch.int32) for k, v in ranks.samples(0).items()}
    batch = batches.get_batch(iter([samples]))
    assert {batch.tokens.dtype, batch.labels.dtype, batch.span_id.dtype} == {torch.int64}
    assert batch.loss_mask.dtype == torch.float32
    assert batch.tokens.device == batches.current_device()


@pytest.mark.parametrize("size", [3, 16])
def test_a_length_that_context_parallel_ranks_cannot_divide_is_refused(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(ValueError, match=f"sequence length 16 cannot be divided by {2 * size},"):
        batches.get_batch(iter([ranks.samples(0)]), cp_group=group_of(size))


@pytest.mark.slow
def test_two_ranks_have_their_slices_and_add_up_to_the_whole(tmp_path: Path) -> None:
    """Both tensor parallel, then both context parallel."""
    ranks.run(2, [2, 1], tmp_path)


@pytest.mark.slow
def test_four_ranks_have_their_slices_and_add_up_to_the_whole(tmp_path: Path) -> None:
    """Two by two, then all four of one kind."""
    ranks.run(4, [2, 4, 1], tmp_path)
