"""The identity of what a reader has open."""

import pickle
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import GristmillError, Trace
from gristmill.loading import (
    BatchSampler,
    Grouped,
    Identity,
    Loader,
    Mixture,
    Packed,
    Picked,
    Plan,
    mixture,
    source,
)
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import (
    MOST_VERSIONS,
    Source,
    digest_of,
    identity_of,
    names_of,
    packed_rows,
    whole,
)
from gristmill.reading.folder import Generation
from tests.loading.numbered import Numbered


def opened(*versions: str | None) -> list[Generation]:
    return [
        Generation(Path("/data/x/y/z", str(n)), each, each, {}) for n, each in enumerate(versions)
    ]


def test_versions_and_selections_are_part_of_the_identity():
    few = identity_of("a/b", opened(*map(str, range(MOST_VERSIONS))))
    assert few.versions == tuple(map(str, range(MOST_VERSIONS)))
    many = [str(n) for n in range(MOST_VERSIONS + 1)]
    found = identity_of("a/b", opened(*many))
    assert found.versions[0].startswith("sha256 of 17: ")
    assert found.text != identity_of("a/b", opened(*many[:-1], "other")).text
    assert few.artifact.startswith("y/z/0, y/z/1, ")
    assert digest_of(np.array([1, 2], np.int32)) == digest_of(np.array([1, 2]))
    assert digest_of(np.array([1, 2])) != digest_of(np.array([2, 1]))
    texts = {Picked(SOURCE, np.array(chosen)).identity.text for chosen in ([1, 2], [2, 1], [1, 3])}
    assert len(texts | {SOURCE.identity.text}) == 4
    ranges = Picked(SOURCE, np.array([1, 3])).identity.text
    assert ranges == Picked(SOURCE, np.array([1, 3]), np.array([1, 1])).identity.text


def test_a_source_is_known_by_what_it_has_and_a_copy_is_the_same():
    assert isinstance(Numbered("a", [0, 1]), Source)
    assert not isinstance(object(), Source)
    with pytest.raises(GristmillError, match="y/z/1: has no provenance record"):
        identity_of("a/b", opened("1", None))
    here, there = (
        Identity("a/b", ("1",), "train", {"cap": 8}, place) for place in ("data/x", "/copy/x")
    )
    assert here.text == there.text
    assert here.text == (
        '{"asset": "a/b", "numbering": {"cap": 8}, "split": "train", "versions": ["1"]}'
    )


def test_sources_of_one_artifact_are_named_by_their_split_or_their_number():
    given = [("a", "train"), ("a", "val"), ("b", "train"), ("c", None), ("c", None)]
    identities = [
        Identity("x", (str(at),), split, {}, name) for at, (name, split) in enumerate(given)
    ]
    names = ["a train", "a val", "b", "c (source 4)", "c (source 5)"]
    assert names_of(identities) == names


SOURCE = Numbered("a", [0, 40, 100])
BITS = np.arange(5, dtype=np.uint64)


def test_epochs_of_chosen_and_grouped_samples_give_each_once():
    view = Picked(SOURCE, np.array([90, 10, 40]), np.array([2, 3, 1]))
    assert view.chosen(np.arange(6), np.zeros(6, np.uint64)).tolist() == [90, 91, 10, 11, 12, 40]
    assert [view.place(number) for number in (90, 91, 10, 12, 40)] == [0, 1, 2, 4, 5]
    (batch,) = Loader(Plan(view, seed=3), 6, form="numpy")
    assert sorted(batch["number"].tolist()) == [10, 11, 12, 40, 90, 91]
    assert np.array_equal(batch["value"], batch["number"])
    with pytest.raises(IndexError, match="no sample 13: it is not among the 6 chosen"):
        view.place(13)
    bounds = np.array([0, 1, 40, 100])
    view = Grouped(SOURCE, bounds)
    numbers = [batch["number"].tolist() for batch in Loader(_epochs(view, 50), 3, form="numpy")]
    for epoch in numbers:
        assert sorted(np.searchsorted(bounds, epoch, "right").tolist()) == [1, 2, 3]
    assert len({tuple(sorted(epoch)) for epoch in numbers}) > 40
    with pytest.raises(IndexError, match="no sample 100"):
        view.place(100)


def test_groups_are_sampled_alike_and_a_sampler_counts_on_by_the_whole_source():
    plan = _epochs(Grouped(SOURCE, np.array([0, 4])), 1_000)
    counts = np.bincount(plan.at(np.arange(1_000))[1])
    assert counts.sum() == 1_000
    assert ((counts - 250) ** 2 / 250).sum() < 21  # one seed in 10,000 would give more
    view = Grouped(Picked(SOURCE, np.array([70, 20, 30])), np.array([0, 1, 3]))
    assert whole(view) is SOURCE
    assert view.chosen(np.array([0, 1, 1]), BITS[:3]).tolist() == [70, 30, 20]
    assert [view.place(number) for number in (70, 20, 30)] == [0, 1, 1]
    assert set(view.identity.numbering) == {"name", "picked", "grouped"}
    second = Numbered("b", [0, 5])
    plan = Plan(Mixture((Picked(SOURCE, np.array([99])), second), (1, 5)), seed=1)
    (numbers,) = BatchSampler(plan, 6)
    assert sorted(numbers) == [99, 100, 101, 102, 103, 104]


@pytest.mark.parametrize("chosen", [[], [100], [-1], [5, 5], [3, 9, 3]])
def test_a_selection_outside_or_twice_is_refused(chosen):
    with pytest.raises(GristmillError, match="a: the chosen samples are none"):
        Picked(SOURCE, np.array(chosen, np.int64))


@pytest.mark.parametrize("bounds", [[0, 4, 4, 9], [0, 101], [-1, 5]])
def test_groups_without_samples_or_outside_are_refused(bounds):
    with pytest.raises(GristmillError, match="a: bounds of its groups"):
        Grouped(SOURCE, np.array(bounds))


def _epochs(view: Grouped, epochs: int) -> Plan:
    return Plan(Mixture((view,), (epochs * int(view.cuts[-1]),)), seed=4)


class Documents:
    """Documents whose token t is 1000 d + t + 1, with a mask that is 1 but for the last one."""

    def __init__(self, lengths: list[int], masked: bool = True) -> None:
        self._lengths, self._masked = np.array(lengths, np.int64), masked
        self.identity = Identity("test/documents", ("1",), "train", {}, "documents")
        self.cuts, self.words = np.array([0, len(lengths)]), "a"

    def lengths(self) -> Numbers:
        return self._lengths

    def read(self, numbers: Numbers) -> dict[str, Any]:
        lengths = self._lengths[numbers]
        places = np.arange(lengths.max(initial=0))
        tokens = 1000 * numbers[:, None] + places + 1
        tokens[places >= lengths[:, None]] = 0
        found = {"tokens": tokens.astype(np.int32), "length": lengths}
        if self._masked:
            found["loss_mask"] = (places < lengths[:, None] - 1).astype(np.uint8)
        return found

    def origin(self, number: int) -> Iterator[Trace]:
        return iter([f"document {number}"])  # type: ignore[list-item]


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 16), st.integers(1, 20))
def test_every_token_is_in_one_row(lengths, seq_len, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_WINDOW", window)
        firsts, pieces = packed_rows(np.array(lengths, np.int64), seq_len)
    tokens = [(d, t) for d, first, n in pieces.tolist() for t in range(first, first + n)]
    assert sorted(tokens) == [(d, t) for d, n in enumerate(lengths) for t in range(n)]
    sizes = [int(pieces[a:b, 2].sum()) for a, b in pairwise(firsts)]
    assert all(0 < size <= seq_len for size in sizes)
    # A document is cut only where it is longer than a row: into whole rows and a rest.
    assert all(first % seq_len == 0 for _, first, _ in pieces.tolist())
    # Best fit decreasing: no two rows of a window could be one.
    if window >= len(lengths):
        assert all(a + b > seq_len for a, b in pairwise(sorted(sizes)))


def test_the_rule_is_golden():
    firsts, pieces = packed_rows(np.array([3, 9, 2, 0, 5, 8, 1, 3]), 8)
    assert firsts.tolist() == [0, 1, 2, 4, 8]
    assert pieces.tolist() == [
        [1, 0, 8],
        [5, 0, 8],
        *([4, 0, 5], [0, 0, 3]),
        *([7, 0, 3], [2, 0, 2], [1, 8, 1], [6, 0, 1]),
    ]


def test_rows_of_documents_are_nearly_full_and_end_with_the_row():
    lengths = np.random.default_rng(5).lognormal(6, 1, 20_000).astype(np.int64) + 1
    firsts, pieces = packed_rows(lengths, 4096)
    assert pieces[:, 2].sum() == lengths.sum()
    assert lengths.sum() / (4096 * (len(firsts) - 1)) > 0.99
    many, one = Documents([1] * 8), Documents([8] * 3)
    one.identity = Identity("test/documents", ("2",))
    plan = Plan(mixture({"a": Packed(many, 8), "b": Packed(one, 8)}, epochs={"a": 1, "b": 1}))
    (batch,) = Loader(plan, 4, form="numpy")
    for bounds, segments in zip(batch["cu_seqlens"], batch["segments"], strict=True):
        assert bounds[segments:].tolist() == [8] * (len(bounds) - segments)


@pytest.mark.parametrize("masked", [True, False])
def test_a_row_has_its_documents_apart(masked):
    rows = Packed(Documents([3, 9, 2, 5], masked), 8)
    found = rows.read(np.array([1, 0, 2]))
    assert found["tokens"].tolist() == [
        [3001, 3002, 3003, 3004, 3005, 1, 2, 3],
        [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008],
        [2001, 2002, 1009, 0, 0, 0, 0, 0],
    ]
    assert found["labels"].tolist() == [
        [3002, 3003, 3004, 3005, 0, 2, 3, 0],
        [1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009],
        [2002, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert found["loss_mask"].tolist() == (found["labels"] > 0).astype(int).tolist()
    assert found["position_ids"].tolist() == [
        [0, 1, 2, 3, 4, 0, 1, 2],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 0, 0, 0, 0, 0, 0],
    ]
    assert found["cu_seqlens"].tolist() == [[0, 5, 8, 8], [0, 8, 8, 8], [0, 2, 3, 8]]
    assert found["segments"].tolist() == [2, 1, 3]
    assert {name: found[name].dtype.name for name in ("tokens", "labels", "position_ids")} == {
        "tokens": "int32",
        "labels": "int32",
        "position_ids": "int32",
    }
    assert rows.lengths().tolist() == [8, 8, 3]
    assert list(rows.origin(1)) == ["document 3", "document 0"]


def test_rows_are_a_source_and_what_cannot_be_packed_is_refused():
    rows = Packed(Documents([5, 30, 7, 9, 2] * 9), 8)
    loader = Loader(Plan(pickle.loads(pickle.dumps(rows)), seed=3), 4, form="numpy")
    seen = np.concatenate([batch["tokens"].ravel() for batch in loader])
    assert np.count_nonzero(seen) == rows.lengths().sum() == 9 * 53
    assert rows.identity.numbering == {"packed": {"rule": 1, "seq_len": 8}}
    mixed = mixture({"rows": rows}, tokens={"rows": 17})
    assert rows.lengths()[: mixed.quotas[0] - 1].sum() < 17
    assert len(rows.read(np.zeros(0, np.int64))["tokens"]) == 0
    documents = Documents([5, 3])
    with pytest.raises(GristmillError, match="rows of 0 tokens: give"):
        Packed(documents, 0)
    with pytest.raises(GristmillError, match="cannot be packed into rows of 8"):
        Packed(Picked(documents, np.array([1])), 8)
    with pytest.raises(GristmillError, match="different vocabularies or lengths"):
        mixture({"a": documents, "b": Packed(documents, 8)}, epochs={"a": 1, "b": 1})


@given(
    st.lists(
        st.lists(st.sampled_from([-1, 3, 4, 5, 9]), min_size=6, max_size=6), min_size=1, max_size=5
    )
)
def test_rows_that_hold_documents_get_the_columns_of_packed_rows(rows):
    documents = np.array(rows, np.int64)
    tokens = np.arange(1, documents.size + 1, dtype=np.int32).reshape(documents.shape)
    found = source.segmented(tokens, documents)
    for row, ids in enumerate(rows):
        runs = [list(run) for _, run in groupby(range(6), key=ids.__getitem__)]
        bounds = [run[0] for run in runs] + [6] * (7 - len(runs))
        assert found["cu_seqlens"][row].tolist() == bounds
        assert found["segments"][row] == len(runs)
        for run in runs:
            is_document = ids[run[0]] >= 0
            labels = [*run[1:], None]
            for place, at in enumerate(run):
                has = is_document and labels[place] is not None
                assert found["loss_mask"][row, at] == has
                assert found["labels"][row, at] == (tokens[row, at + 1] if has else 0)
                assert found["position_ids"][row, at] == (place if is_document else 0)
    kinds = {name: column.dtype.name for name, column in found.items()}
    integers = dict.fromkeys(("labels", "position_ids", "cu_seqlens", "segments"), "int32")
    assert kinds == {**integers, "loss_mask": "uint8"}
