"""A batch of rows that passes a cap on tokens: what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.synth.builders import kd_part
from gristmill.synth.builders.kd_part import _Sorted, _up_to_cap
from gristmill.synth.render.documents import Documents


def _documents(places: list[int]) -> Documents:
    """A document of two messages and ten times its place plus ten tokens for each place."""
    lengths = np.array([10 * place + 10 for place in places], dtype=np.int32)
    runs = np.array([n for length in lengths for n in (length - 1, 1)], dtype=np.int32)
    total = int(lengths.sum())
    return Documents(
        np.repeat(np.array(places, dtype=np.int32), lengths),
        np.zeros(total, dtype=np.uint8),
        lengths,
        runs,
        np.full(len(places), 2, dtype=np.int32),
    )


@pytest.mark.parametrize(
    ("tokens", "kept", "refused"),
    [
        (1, [0], []),
        (10, [0], []),
        (11, [0, 2], [1]),
        (40, [0, 2], [1]),
        (41, [0, 2, 3], [1]),
        (80, [0, 2, 3], [1]),
        (81, [0, 2, 3, 5], [1, 4]),
        (140, [0, 2, 3, 5], [1, 4]),
        (141, [0, 2, 3, 5], [1, 4, 6]),
    ],
)
def test_documents_up_to_the_one_that_reaches_the_cap_are_kept(
    tokens: int, kept: list[int], refused: list[int]
) -> None:
    """Rows 0, 2, 3 and 5 have 10, 30, 40 and 60 tokens; 1, 4 and 6 are refused."""
    places = {"train": [0, 3], "valid": [2, 5]}
    rows = _Sorted(list("abcdefg"), {1: "bad", 4: "bad", 6: "bad"})
    of_rows: dict[str, list[Any]] = {name: [*numbers] for name, numbers in places.items()}
    rows.places, rows.conversations = places, of_rows
    made = _up_to_cap(rows, {name: _documents(numbers) for name, numbers in places.items()}, tokens)
    assert sorted(rows.places["train"] + rows.places["valid"]) == kept
    assert rows.conversations == rows.places
    assert list(rows.refused) == refused
    for split, documents in made.items():
        expected = _documents(rows.places[split])
        for name in ("tokens", "span", "lengths", "runs", "run_counts"):
            assert getattr(documents, name).tolist() == getattr(expected, name).tolist(), name


def test_a_batch_without_documents_keeps_its_refused_rows() -> None:
    rows = _Sorted(["a"], {0: "bad"})
    made = _up_to_cap(rows, {split: _documents([]) for split in kd_part.SPLITS}, 5)
    assert rows.refused == {0: "bad"}
    assert all(not len(documents.lengths) for documents in made.values())
