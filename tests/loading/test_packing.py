"""Packed rows: each token once, no label of another document, the golden rule."""

import pickle
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import GristmillError, Trace
from gristmill.loading import Identity, Loader, Packed, Picked, Plan, mixture, packing
from gristmill.loading.bijection import Numbers
from gristmill.loading.packing import packed_rows


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
        patch.setattr(packing, "_WINDOW", window)
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


def test_rows_of_many_documents_are_nearly_full():
    lengths = np.random.default_rng(5).lognormal(6, 1, 20_000).astype(np.int64) + 1
    firsts, pieces = packed_rows(lengths, 4096)
    assert pieces[:, 2].sum() == lengths.sum()
    assert lengths.sum() / (4096 * (len(firsts) - 1)) > 0.99


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


def test_rows_of_fewer_segments_end_with_the_row_in_a_mixture():
    many, one = Documents([1] * 8), Documents([8] * 3)
    one.identity = Identity("test/documents", ("2",))
    plan = Plan(mixture({"a": Packed(many, 8), "b": Packed(one, 8)}, epochs={"a": 1, "b": 1}))
    (batch,) = Loader(plan, 4, form="numpy")
    for bounds, segments in zip(batch["cu_seqlens"], batch["segments"], strict=True):
        assert bounds[segments:].tolist() == [8] * (len(bounds) - segments)


def test_rows_are_a_source_of_the_loader():
    rows = Packed(Documents([5, 30, 7, 9, 2] * 9), 8)
    loader = Loader(Plan(pickle.loads(pickle.dumps(rows)), seed=3), 4, form="numpy")
    seen = np.concatenate([batch["tokens"].ravel() for batch in loader])
    assert np.count_nonzero(seen) == rows.lengths().sum() == 9 * 53
    assert rows.identity.numbering == {"packed": {"rule": 1, "seq_len": 8}}
    mixed = mixture({"rows": rows}, tokens={"rows": 17})
    assert rows.lengths()[: mixed.quotas[0] - 1].sum() < 17
    assert len(rows.read(np.zeros(0, np.int64))["tokens"]) == 0


def test_what_cannot_be_packed_or_mixed_is_refused():
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
    found = packing.segmented(tokens, documents)
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
