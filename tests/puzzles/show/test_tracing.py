"""`gristmill trace` of a dataset."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.families import Misuse, Request
from gristmill.puzzles.show.tracing import place, traced_example

Small = Callable[[str], Path]


def test_split_and_set_have_defaults(tmp_path: Path) -> None:
    assert place(Request(tmp_path, "0")) == ("train", "all")
    assert place(Request(tmp_path, "0", {"split": None, "set": None})) == ("train", "all")
    assert place(Request(tmp_path, "0", {"split": "test", "set": "hard"})) == ("test", "hard")


def test_an_example_is_traced_by_its_number(small: Small) -> None:
    (found,) = traced_example(Request(small("maze"), "1", {"split": "test"}))
    assert found.facts()["example"] == "test all 1"


def test_a_sample_that_is_no_number_is_refused(small: Small) -> None:
    with pytest.raises(Misuse):
        list(traced_example(Request(small("maze"), "first")))
