"""The numbers of samples: which values ask for which, and which ask for none."""

from typing import Any

import numpy as np
import pytest

from gristmill.reading.sample_numbers import is_one, number_of, numbers_of
from tests.later import later

torch = later("torch")


def _made(value: Any) -> Any:
    """A value, which a function makes where it is one of torch."""
    return value() if callable(value) else value


def _name(value: Any) -> str:
    return "of torch" if callable(value) else repr(value)


ONE = [7, -3, np.uint8(7), np.int16(-3), np.uint64(7), np.array(7), lambda: torch.tensor(-3)]
MANY = [
    [7, -10],
    (7, 0),
    range(7, -1, -7),
    [np.uint8(7), -10],
    np.array([7, -10], np.int8),
    np.array([7, 0], np.uint64),
    lambda: torch.tensor([7, -10]),
    lambda: [torch.tensor(7), torch.tensor(0)],
]
NONE: list[tuple[Any, str]] = [
    (True, "bool: for a mask use"),
    (np.True_, "bool: for a mask use"),
    (lambda: torch.tensor(True), "bool: for a mask use"),
    (np.ones(2, bool), r"bool: for a mask use np\.flatnonzero\(mask\)$"),
    (lambda: torch.ones(2).bool(), "bool: for a mask use"),
    (1.0, "float"),
    (np.float32(1), "float32"),
    ("1", "str"),
    (b"1", "bytes"),
    (None, "NoneType"),
    (slice(0, 2), "slice"),
]


@pytest.mark.parametrize("number", ONE, ids=_name)
def test_an_integer_of_any_type_is_one_number(number):
    number = _made(number)
    assert is_one(number)
    found = number_of(number, 10, "row")
    assert (type(found), found) == (int, 7)
    assert numbers_of(number, 10, "row").tolist() == [7]


@pytest.mark.parametrize("numbers", MANY, ids=_name)
def test_integers_of_any_type_are_a_list_of_numbers(numbers):
    numbers = _made(numbers)
    assert not is_one(numbers)
    found = numbers_of(numbers, 10, "row")
    assert (found.dtype, found.tolist()) == (np.int64, [7, 0])
    with pytest.raises(TypeError, match="row numbers are integers"):
        number_of(numbers, 10, "row")


@pytest.mark.parametrize(
    "nothing", [[], (), np.array([]), np.zeros(0, bool), lambda: torch.tensor([])]
)
def test_nothing_asks_for_no_sample(nothing):
    nothing = _made(nothing)
    found = numbers_of(nothing, 10, "row")
    assert (found.dtype, found.shape) == (np.int64, (0,))
    assert numbers_of(nothing, 0, "row").shape == (0,)


@pytest.mark.parametrize(("wrong", "kind"), NONE, ids=[_name(wrong) for wrong, _ in NONE])
def test_what_is_no_integer_is_a_type_error_that_names_its_type(wrong, kind):
    wrong = _made(wrong)
    with pytest.raises(TypeError, match=f"^row numbers are integers, not {kind}"):
        number_of(wrong, 10, "row")
    for numbers in (wrong, [wrong], [wrong, wrong], [1, wrong]):
        with pytest.raises(TypeError, match=r"^row numbers are"):
            numbers_of(numbers, 10, "row")


def test_lists_of_lists_are_refused_and_negative_numbers_where_they_count_from_no_end():
    for wrong in ([[0, 1], [1, 2]], [[0], [1, 2]], np.zeros((1, 1), np.int64)):
        with pytest.raises(TypeError, match="row numbers are a list of integers, not"):
            numbers_of(wrong, 10, "row")
    assert numbers_of([3, 0], 10, "row", from_end=False).tolist() == [3, 0]
    with pytest.raises(IndexError, match="no row -1: there are 10"):
        numbers_of([3, -1], 10, "row", from_end=False)


@pytest.mark.parametrize(
    "number", [10, -11, 2**63, 2**64 - 1, 2**70, -(2**70), np.uint64(2**64 - 1)], ids=_name
)
def test_a_number_outside_is_an_index_error_with_number_and_length(number):
    with pytest.raises(IndexError, match=f"^no row {number}: there are 10$"):
        number_of(number, 10, "row")
    for numbers in (number, [number], [-1, number], [0, number, 11]):
        with pytest.raises(IndexError, match=f"^no row {number}: there are 10$"):
            numbers_of(numbers, 10, "row")
