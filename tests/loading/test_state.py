"""States: what they hold, what a resume refuses with both values, and going on with other data."""

import json
import pickle
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.loading import Loader, Mixture, OtherData, Plan, mixture
from gristmill.loading.state import _digest, batch_of, consumed
from tests.loading.numbered import Numbered


def loader(*versions: str, seed: int = 7, window: int = 0, quota: int = 30) -> Loader:
    sources = tuple(Numbered(f"s{n}", [0, 10], each) for n, each in enumerate(versions))
    plan = Plan(Mixture(sources, (quota,) * len(sources)), seed=seed, window=window)
    return Loader(plan, 4, form="numpy")


def state_at(steps: int, *versions: str) -> dict[str, Any]:
    made = loader(*versions)
    for _, _ in zip(range(steps), made, strict=False):
        pass
    found: dict[str, Any] = json.loads(json.dumps(made.state_dict()))
    return found


def edited(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A state that a loader might have written with other values."""
    found = {**state, **changes}
    del found["sha256"]
    return found | {"sha256": _digest(found)}


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all integers in a state."""
    if type(value) is int:
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers_in(inner, (*path, key))


def test_a_state_is_a_small_object_of_json_that_names_the_data():
    state = state_at(3, "1", "1")
    assert len(json.dumps(state)) < 1_500
    assert {name: state[name] for name in ("position", "step", "seed", "batches", "segments")} == {
        "position": 12,
        "step": 3,
        "seed": 7,
        "batches": [[0, 0, 4]],
        "segments": [[0, [30, 30]]],
    }
    assert state["sources"][1] == {
        "asset": "test/numbered",
        "versions": ["1"],
        "split": None,
        "numbering": {"name": "s1"},
        "samples": 10,
        "artifact": "s1",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "the state is 'other' of version 1"),
        ({"version": 2}, "of version 2 and order 1; this is 'gristmill.loader' of version 1"),
        ({"order": 2}, "and order 2; this is .* and order 1"),
        ({"seed": 8}, "the state's seed is 8, here it is 7"),
        ({"window": 1}, "the state's window is 1, here it is 0"),
        ({"segments": [[0, [30, 29]]]}, "quotas are .30, 29., here they are .30, 30."),
    ],
)
def test_a_state_of_another_run_is_refused_with_both_values(change, words):
    with pytest.raises(OtherData, match=words):
        loader("1", "1").load_state_dict(edited(state_at(3, "1", "1"), **change))


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("versions", ["2"], "s1: the state was written for versions 2, here it is 1: copy"),
        ("split", "train", "for split 'train', here it is None"),
        ("samples", 11, "for samples 11, here it is 10"),
        ("asset", "test/other", "for asset 'test/other', here it is 'test/numbered'"),
        ("numbering", {"name": "x"}, "for numbering {'name': 'x'}, here it is {'name': 's1'}"),
    ],
)
def test_a_state_of_other_data_is_refused_with_both_values(part, value, words):
    state = state_at(3, "1", "1")
    state["sources"][1][part] = value
    with pytest.raises(OtherData, match=words):
        loader("1", "1").load_state_dict(edited(state))


@pytest.mark.parametrize("name", ["position", "batches", "segments", "sources", "seed"])
def test_a_damaged_state_is_refused(name):
    state = state_at(3, "1")
    del state[name]
    state = edited(state)
    with pytest.raises(GristmillError, match=f"the state is damaged .*{name}"):
        loader("1").load_state_dict(state)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("position", float("inf")),
        ("batches", [[0, 0, 0]]),
        ("batches", [[0]]),
        ("segments", [[10**30, [1]]]),
        ("segments", [[0, [-1]]]),
        ("segments", []),
        ("segments", [[4, [30]]]),
        ("segments", [[0, [30]], [0, [30]]]),
        ("segments", [[0, [30, 30]]]),
        ("batches", []),
        ("batches", [[0, 4, 4]]),
        ("batches", [[0, 0, 4], [2, 9, 4]]),
        ("batches", [[0, 0, 4], [4, 16, 4]]),
        ("position", 31),
        ("position", -1),
        ("position", 13),
        ("step", 4),
        ("sources", None),
        ("sources", ["s1"]),
        ("sources", [{"samples": "many"}]),
    ],
)
def test_a_state_with_a_value_that_no_loader_writes_is_refused(name, value):
    state = edited(state_at(3, "1"), **{name: value})
    for read in (loader("1").load_state_dict, consumed, batch_of):
        with pytest.raises(GristmillError, match="the state"):
            read(state)
        with pytest.raises(GristmillError, match="the state is damaged"):
            read(None)  # a checkpoint without one


def test_every_edit_of_a_number_and_every_flipped_digit_is_damage():
    made = loader("1", "1")
    made.load_state_dict(state_at(3, "1", "1"))
    made.mix(Mixture(made.plan.sources, (40, 8)))
    next(iter(made))
    state = json.loads(json.dumps(made.state_dict()))
    paths, text = list(numbers_in(state)), json.dumps(state)
    assert len(paths) > 15
    for path in paths:
        wrong = json.loads(text)
        holder = wrong
        for key in path[:-1]:
            holder = holder[key]
        for change in (-1, 2, 7):
            with pytest.raises(GristmillError, match="the state is damaged"):
                holder[path[-1]] += change
                loader("1", "1").load_state_dict(wrong)
    for at, sign in enumerate(text):
        if sign.isdigit():
            flipped = json.loads(text[:at] + str((int(sign) + 1) % 10 or 1) + text[at + 1 :])
            if flipped != state:
                with pytest.raises(GristmillError, match="the state is damaged"):
                    loader("1", "1").load_state_dict(flipped)


def test_a_source_may_be_added_and_a_state_of_an_earlier_version_is_read():
    state = state_at(3, "1")
    del state["sha256"]
    made = loader("1")
    with pytest.warns(UserWarning, match="the state has no digest"):
        made.load_state_dict(state)
    assert made.position == 12
    with pytest.raises(OtherData, match=r"s1: the state has no such source: .*loader.mix"):
        loader("1", "1").load_state_dict(state_at(3, "1"))
    made = loader("1")
    made.load_state_dict(state_at(3, "1"))
    made.mix(Mixture((*made.plan.sources, Numbered("new", [0, 5])), (4, 4)))
    assert made.state_dict()["segments"] == [[0, [30]], [12, [4, 4]]]
    assert sum(len(batch["number"]) for batch in made) == 8


def test_other_data_goes_on_from_the_position_as_a_new_source():
    state = state_at(3, "1", "1")
    made = loader("1", "2")
    made.load_state_dict(state, changed="continue")
    assert [len(batch["number"]) for batch in made] == [4] * 15
    after = made.state_dict()
    assert [each["versions"] for each in after["sources"]] == [["1"], ["1"], ["2"]]
    assert after["segments"] == [[0, [30, 30]], [12, [30, 0, 30]]]
    again = loader("1", "2")
    with pytest.raises(OtherData, match="s1"):
        again.load_state_dict(after)
    again.load_state_dict(after, changed="continue")
    with pytest.raises(OtherData, match="s1: is not here: give the loader that version"):
        again[0]


def test_a_budget_of_tokens_counts_on_where_its_segment_began():
    """After another mixture, after a restart by a script with that mixture, and with other data."""
    state = state_at(3, "1", "1")
    made = loader("1", "1")
    made.load_state_dict(state)
    asked = mixture(dict(zip("ab", made.plan.sources, strict=True)), tokens={"a": 33, "b": 95})
    made.mix(asked)
    for changed in ("refuse", "continue"):
        again = Loader(Plan(asked, seed=7), 4, form="numpy")
        again.load_state_dict(made.state_dict(), changed=changed)
        assert again.state_dict() == made.state_dict()
        assert pickle.loads(pickle.dumps(again.plan)).facts() == made.plan.facts()
    other = mixture(
        {"a": made.plan.sources[0], "c": Numbered("c", [0, 9])}, tokens={"a": 33, "c": 9}
    )
    again = Loader(Plan(other, seed=7), 4, form="numpy")
    for _ in range(2):
        again.load_state_dict(state, changed="continue")
    assert again.state_dict()["segments"][1][1][:2] == [made.plan.segments[1][1][0], 0]


def test_what_is_gone_is_never_named_nor_read():
    made = loader("1", "2", window=1)
    made.load_state_dict(edited(state_at(3, "1", "1"), window=1), changed="continue")
    gone = made.plan.sources[1]
    assert made.plan.drawn(12)[1] > 0
    for ask in (lambda: made.numbers(0), lambda: made.plan.seen(1, 0, 12)):
        with pytest.raises(OtherData, match=f"{gone.identity.artifact}: is not here"):
            ask()
    last = Loader(Plan(Numbered("s1", [0, 5]), seed=7), 4, world=3, uneven=True, form="numpy")
    last.load_state_dict(state_at(3, "1"), changed="continue")
    assert [len(batch["value"]) for batch in last] == [1, 0]


@pytest.mark.parametrize("ends", ["short", "pad"])
def test_a_mixture_begins_behind_a_short_step_and_loses_nothing(ends):
    plan = Plan(Numbered("s0", [0, 10]), seed=7)
    made = Loader(plan, 4, form="numpy", ends=ends)
    given = [number for batch in made for number in batch["number"][batch["real"]].tolist()]
    made.mix(Mixture(plan.sources, (10,)))
    again = Loader(plan, 4, form="numpy", ends=ends)
    again.load_state_dict(json.loads(json.dumps(made.state_dict())))
    for each in (made, again):
        more = [each[step]["number"].tolist() for step in range(6)]
        assert [len(numbers) for numbers in more] == [4, 4, 2, 4, 4, 2 if ends == "short" else 4]
        assert list(chain(*more[:3])) == given
        assert sorted(list(chain(*more[3:]))[:10]) == list(range(10))
        assert [batch["number"].tolist() for batch in each] == more[3:]
