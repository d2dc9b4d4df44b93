import functools
import json
import operator
import sys
from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.loading import BatchSampler, Loader, Plan, mixture
from tests import budget
from tests.loading.numbered import Numbered
from tests.loading.trial import Trial


def one(length: int = 100) -> Plan:
    return Plan(Numbered("one", [0, length]), seed=3)


def numbers_of(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["number"].tolist()]


@pytest.mark.parametrize("seed", budget.some(range(300), each=0.5))
def test_nothing_is_lost_or_doubled_by_kills_and_resizes(seed):
    Trial(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("hundred", budget.some(range(3, 100), each=8))
def test_ten_thousand_trials(hundred):
    for seed in range(hundred * 100, hundred * 100 + 100):
        Trial(seed).run()


def test_a_step_is_one_at_any_ranks_and_micro_batches():
    steps = [batch["number"].tolist() for batch in Loader(one(), 24, form="numpy")]
    assert [len(step) for step in steps] == [24, 24, 24, 24, 4]
    for world in (1, 2, 3, 24):
        ranks = [Loader(one(), 24, rank=r, world=world, form="numpy") for r in range(world)]
        for number in (3, 0, 4):
            found = [each for rank in ranks for each in rank[number]["number"].tolist()]
            assert found == steps[number]
    with pytest.raises(IndexError, match="no step 5"):
        Loader(one(), 24, form="numpy")[5]
    first = Loader(one(), 10, form="numpy")
    batches = [batch for _, batch in zip(range(3), first, strict=False)]
    second = Loader(one(), 35, form="numpy")
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert numbers_of(batches) + numbers_of(second) == numbers_of(Loader(one(), 100, form="numpy"))
    assert [second[step]["position"] for step in range(5)] == [0, 10, 20, 30, 65]
    assert second[1]["number"].tolist() == batches[1]["number"].tolist()
    with pytest.raises(GristmillError, match="use 1, 2, 3, 4, 6 or 12 ranks"):
        Loader(one(), 12, world=5)
    assert len(Loader(one(), 12, world=5, uneven=True)) == 9
    made, positions, sizes = Loader(one(), 40, micro=16, form="numpy"), [], []
    for batch in made:
        positions.append(made.position)
        sizes.append(len(batch["number"]))
    assert sizes == [16, 16, 8, 16, 16, 8, 16, 4]
    assert positions == [0, 0, 40, 40, 40, 80, 80, 100]
    assert len(made[0]["number"]) == 40


@pytest.mark.parametrize(
    ("ends", "sizes"), [("short", [40, 40, 20]), ("drop", [40, 40]), ("pad", [40, 40, 40])]
)
def test_all_ranks_have_as_many_steps(ends, sizes):
    for world in (1, 2, 4, 5, 8):
        ranks = [
            Loader(one(), 40, rank=r, world=world, ends=ends, form="numpy") for r in range(world)
        ]
        assert {len(rank) for rank in ranks} == {len(sizes)}
        steps = list(zip(*ranks, strict=True))
        assert [sum(len(part["number"]) for part in step) for step in steps] == sizes
        real = sum(int(part["real"].sum()) for step in steps for part in step)
        assert real == min(sum(sizes), 100)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rank": 2}, {"rank": -1}, {"batch": 0}, {"ends": "wrap"}, {"form": "jax"}),
        *({"micro": 0}, {"workers": -1}),
    ],
)
def test_an_argument_outside_is_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=rf"^{name}={value!r}: must be \S"):
        Loader(one(), **{"batch": 4, **wrong})


def test_batches_are_tensors_or_columns_and_keys_those_of_the_draw():
    torch = pytest.importorskip("torch")
    batch = next(iter(Loader(one(), 8)))
    assert {name: batch[name].dtype for name in ("value", "number", "source", "key", "real")} == {
        **dict.fromkeys(("value", "number", "source", "key"), torch.int64),
        "real": torch.bool,
    }
    made = Loader(one(), 8, form="numpy", collate=lambda batch: int(batch["value"].sum()))
    assert sum(made) == sum(range(100))
    assert made[0] == int(Loader(one(), 8, form="numpy")[0]["value"].sum())
    plan = Plan(mixture({"a": Numbered("a", [0, 50])}, epochs={"a": 2}), seed=3)
    (whole,) = Loader(plan, 100, form="numpy")
    halves = [batch["key"].tolist() for batch in Loader(plan, 25, world=1, form="numpy")]
    assert functools.reduce(operator.iadd, halves, []) == whole["key"].tolist()
    assert len(set(whole["key"].tolist())) == 100
    plan = Plan(Numbered("long", [0, 10**12]), seed=1)
    made = Loader(plan, 256, form="numpy")
    batch = made[3 * 10**9]
    assert batch["position"] == 768 * 10**9
    assert plan.seen(0, int(batch["number"][0]), plan.length) == [768 * 10**9]


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_give_the_same_and_the_state_is_of_what_was_given(start_method):
    pytest.importorskip("torch")
    alone = list(Loader(one(), 10))
    made = Loader(one(), 10, workers=2, start_method=start_method)
    for number, batch in enumerate(made):
        assert batch["number"].tolist() == alone[number]["number"].tolist()
        assert batch["key"].tolist() == alone[number]["key"].tolist()
        assert made.state_dict()["position"] == 10 * (number + 1)
        if number == 3:
            break
    rest = Loader(one(), 10)
    rest.load_state_dict(made.state_dict())
    assert numbers_of(rest) == numbers_of(alone[4:])


def test_the_ledger_gets_a_line_a_start_from_rank_0(tmp_path):
    file = tmp_path / "ledger.jsonl"
    for rank in (0, 1):
        made = Loader(one(), 10, rank=rank, world=2, form="numpy", ledger=file)
        list(made)
        list(made)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["position"], line["step"], line["world"]) for line in lines] == [
        (0, 0, 2),
        (100, 10, 2),
    ]


def test_sources_of_other_columns_or_vocabularies_are_refused_by_name():
    class Other(Numbered):
        def read(self, numbers: Any) -> dict[str, Any]:
            return {"other": numbers}

    sources = {"a": Numbered("first", [0, 9]), "b": Other("second", [0, 9])}
    made = Loader(Plan(mixture(sources, epochs={"a": 1, "b": 1})), 18, form="numpy")
    with pytest.raises(GristmillError, match="first and second differ in the column 'other'"):
        list(made)
    sources = {name: Numbered(name, [0, 9]) for name in ("first", "second")}
    for name, source in sources.items():
        source.words = name  # type: ignore[attr-defined]
    epochs = dict.fromkeys(sources, 1)
    with pytest.raises(GristmillError, match="first and second are of different vocabularies"):
        mixture(sources, epochs=epochs)
    assert mixture(sources, epochs=epochs | {"second": 0}).quotas == (9, 0)
    changed = Plan(sources["first"]).changed(4, mixture(sources, epochs={"first": 0, "second": 1}))
    with pytest.raises(GristmillError, match="first and second differ in the column 'words of the"):
        list(Loader(changed, 13, form="numpy"))
    sources["second"].words = "first"  # type: ignore[attr-defined]
    assert len(list(Loader(Plan(mixture(sources, epochs=epochs)), 18, form="numpy"))) == 1


def test_narrower_columns_are_filled_behind():
    class Wide(Numbered):
        def __init__(self, name: str, width: int) -> None:
            super().__init__(name, [0, 9])
            self._width = width

        def read(self, numbers: Any) -> dict[str, Any]:
            return {"row": np.repeat(numbers[:, None] + 1, self._width, axis=1)}

    sources = {"a": Wide("a", 2), "b": Wide("b", 5)}
    (batch,) = Loader(Plan(mixture(sources, epochs={"a": 1, "b": 1})), 18, form="numpy")
    assert batch["row"].shape == (18, 5)
    narrow = batch["row"][batch["source"] == 0]
    assert not narrow[:, 2:].any()
    assert np.array_equal(narrow[:, 0], batch["number"][batch["source"] == 0] + 1)


def test_a_sampler_gives_lists_and_counts_what_the_loop_was_given():
    sampler = BatchSampler(one(), 30)
    lists = list(sampler)
    assert functools.reduce(operator.iadd, lists, []) == numbers_of(Loader(one(), 30, form="numpy"))
    assert len(sampler) == 4
    again = BatchSampler(one(), 30)
    again.load_state_dict(sampler.state_dict(2))
    assert list(again) == lists[2:]
    with pytest.raises(GristmillError, match="5 batches of 4"):
        sampler.state_dict(5)


def test_without_torch_the_error_names_the_extra_and_the_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r'the extra `train` brings it.*form="numpy"'):
        next(iter(Loader(one(), 30)))
    assert len(next(iter(Loader(one(), 30, form="numpy")))["number"]) == 30
