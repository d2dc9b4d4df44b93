"""The identity of what a reader has open."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.loading import BatchSampler, Grouped, Loader, Mixture, Picked, Plan
from gristmill.loading.source import (
    MOST_VERSIONS,
    Identity,
    Source,
    digest_of,
    identity_of,
    names_of,
    whole,
)
from gristmill.reading.generation import Generation
from tests.loading.numbered import Numbered


def opened(*versions: str | None) -> list[Generation]:
    return [
        Generation(Path("/data/x/y/z", str(n)), each, each, {}) for n, each in enumerate(versions)
    ]


def test_a_copy_elsewhere_has_the_same_identity():
    here, there = (
        Identity("a/b", ("1",), "train", {"cap": 8}, place) for place in ("data/x", "/copy/x")
    )
    assert here.text == there.text
    assert here.text == (
        '{"asset": "a/b", "numbering": {"cap": 8}, "split": "train", "versions": ["1"]}'
    )


def test_versions_are_listed_up_to_a_number_and_then_hashed():
    few = identity_of("a/b", opened(*map(str, range(MOST_VERSIONS))))
    assert few.versions == tuple(map(str, range(MOST_VERSIONS)))
    many = [str(n) for n in range(MOST_VERSIONS + 1)]
    found = identity_of("a/b", opened(*many))
    assert found.versions[0].startswith("sha256 of 17: ")
    assert found.text != identity_of("a/b", opened(*many[:-1], "other")).text
    assert few.artifact.startswith("y/z/0, y/z/1, ")


def test_files_without_a_record_are_refused():
    with pytest.raises(GristmillError, match="y/z/1: has no provenance record"):
        identity_of("a/b", opened("1", None))


def test_a_selection_is_named_by_its_numbers_and_another_one_is_another_order():
    assert digest_of(np.array([1, 2], np.int32)) == digest_of(np.array([1, 2]))
    assert digest_of(np.array([1, 2])) != digest_of(np.array([2, 1]))
    texts = {Picked(SOURCE, np.array(chosen)).identity.text for chosen in ([1, 2], [2, 1], [1, 3])}
    assert len(texts | {SOURCE.identity.text}) == 4
    ranges = Picked(SOURCE, np.array([1, 3])).identity.text
    assert ranges == Picked(SOURCE, np.array([1, 3]), np.array([1, 1])).identity.text


def test_a_source_is_known_by_what_it_has():
    assert isinstance(Numbered("a", [0, 1]), Source)
    assert not isinstance(object(), Source)


def test_sources_of_one_artifact_are_named_by_their_split_or_their_number():
    given = [("a", "train"), ("a", "val"), ("b", "train"), ("c", None), ("c", None)]
    identities = [
        Identity("x", (str(at),), split, {}, name) for at, (name, split) in enumerate(given)
    ]
    names = ["a train", "a val", "b", "c (source 4)", "c (source 5)"]
    assert names_of(identities) == names


SOURCE = Numbered("a", [0, 40, 100])
BITS = np.arange(5, dtype=np.uint64)


def test_an_epoch_of_picked_gives_each_chosen_sample_once():
    view = Picked(SOURCE, np.array([90, 10, 40]), np.array([2, 3, 1]))
    assert view.chosen(np.arange(6), np.zeros(6, np.uint64)).tolist() == [90, 91, 10, 11, 12, 40]
    assert [view.place(number) for number in (90, 91, 10, 12, 40)] == [0, 1, 2, 4, 5]
    (batch,) = Loader(Plan(view, seed=3), 6, form="numpy")
    assert sorted(batch["number"].tolist()) == [10, 11, 12, 40, 90, 91]
    assert np.array_equal(batch["value"], batch["number"])
    with pytest.raises(IndexError, match="no sample 13: it is not among the 6 chosen"):
        view.place(13)


def test_an_epoch_of_groups_gives_one_sample_of_each_and_others_later():
    bounds = np.array([0, 1, 40, 100])
    view = Grouped(SOURCE, bounds)
    numbers = [batch["number"].tolist() for batch in Loader(_epochs(view, 50), 3, form="numpy")]
    for epoch in numbers:
        assert sorted(np.searchsorted(bounds, epoch, "right").tolist()) == [1, 2, 3]
    assert len({tuple(sorted(epoch)) for epoch in numbers}) > 40
    with pytest.raises(IndexError, match="no sample 100"):
        view.place(100)


def test_each_sample_of_a_group_is_as_likely():
    plan = _epochs(Grouped(SOURCE, np.array([0, 4])), 1_000)
    counts = np.bincount(plan.at(np.arange(1_000))[1])
    assert counts.sum() == 1_000
    assert ((counts - 250) ** 2 / 250).sum() < 21  # one seed in 10,000 would give more


def test_groups_of_chosen_samples_name_those_of_the_whole():
    view = Grouped(Picked(SOURCE, np.array([70, 20, 30])), np.array([0, 1, 3]))
    assert whole(view) is SOURCE
    assert view.chosen(np.array([0, 1, 1]), BITS[:3]).tolist() == [70, 30, 20]
    assert [view.place(number) for number in (70, 20, 30)] == [0, 1, 1]
    assert set(view.identity.numbering) == {"name", "picked", "grouped"}


@pytest.mark.parametrize("chosen", [[], [100], [-1], [5, 5], [3, 9, 3]])
def test_a_selection_outside_or_twice_is_refused(chosen):
    with pytest.raises(GristmillError, match="a: the chosen samples are none"):
        Picked(SOURCE, np.array(chosen, np.int64))


@pytest.mark.parametrize("bounds", [[0, 4, 4, 9], [0, 101], [-1, 5]])
def test_groups_without_samples_or_outside_are_refused(bounds):
    with pytest.raises(GristmillError, match="a: bounds of its groups"):
        Grouped(SOURCE, np.array(bounds))


def test_a_sampler_counts_on_by_the_whole_source():
    second = Numbered("b", [0, 5])
    plan = Plan(Mixture((Picked(SOURCE, np.array([99])), second), (1, 5)), seed=1)
    (numbers,) = BatchSampler(plan, 6)
    assert sorted(numbers) == [99, 100, 101, 102, 103, 104]


def _epochs(view: Grouped, epochs: int) -> Plan:
    return Plan(Mixture((view,), (epochs * int(view.cuts[-1]),)), seed=4)
