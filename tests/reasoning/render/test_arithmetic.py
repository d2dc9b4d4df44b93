import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.reasoning.render.arithmetic import NoValue, holds, value, written_in
from tests.reasoning.indexed_splits import real_records


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("48/2", 24),
        ("1/4", 0.25),
        (".25", 0.25),
        ("3.", 3),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("2(3+4)", 14),
        ("(1+1)(2+2)", 8),
        ("10-2-3", 5),
        ("100/10/2", 5),
        ("-5+8", 3),
        ("3--2", 5),
        ("3-+2", 1),
        ("1,234,567.5", 1234567.5),
        ("$5,000 * 20%", 1000),
        ("50%", 0.5),
        ("5 x 3", 15),
        ("5×3", 15),
        ("6÷4", 1.5),
        ("7//2", 3),
        ("2^3^2", 512),
        ("2**-1", 0.5),
        ("-2^2", -4),
        ("8 − 3", 5),
        ("12 hours", 12),
        ("£3.50", 3.5),
        ("9 sq. ft.", 9),
    ],
)
def test_an_expression_has_the_value_of_arithmetic(expression: str, expected: float) -> None:
    assert value(expression) == pytest.approx(expected)


@pytest.mark.parametrize(
    "expression",
    [
        *("", " ", "+", "2+", "*2", "(2", "2)", "1/0", "1//0", "hours", "5 hours 3", "2 3"),
        *("1,23", "1,2345", "9**9**9**9", "(-8)^.5", "__import__('os')", "5;3", "1e5+"),
        *("(" * 40 + "1" + ")" * 40, "1^" * 40 + "1", "9" * 401, "9" * 399),
    ],
)
def test_anything_else_has_no_value(expression: str) -> None:
    with pytest.raises(NoValue):
        value(expression)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("48/2=24", True),
        ("48/2=25", False),
        ("1/3=0.333", True),
        ("1/3=0.33", False),
        ("2000/3=666.6", True),
        ("2000/3=665", False),
        ("1/4=25/100=.25", True),
        ("1/4=26/100=.25", False),
        ("25/100=25%", True),
        ("24", False),
        ("=24", False),
        ("24=", False),
        ("a=a", False),
        ("", False),
        ("1" * 500 + "=1", False),
    ],
)
def test_an_annotation_holds_where_all_sides_are_equal(annotation: str, expected: bool) -> None:
    assert holds(annotation) is expected


def test_annotations_are_found_on_one_line() -> None:
    assert written_in("a <<1+1=2>>2 and <<3=3>>3, << and\n>> <<a<b>>") == ["1+1=2", "3=3"]
    assert written_in("none") == []


def test_every_annotation_of_gsm8k_is_evaluated() -> None:
    written = [
        each
        for split in ("train", "test")
        for record in real_records("gsm8k", split)
        for each in written_in(record["answer"])
    ]
    assert len(written) == 27_998
    assert [each for each in written if not holds(each)] == []


@given(st.text(alphabet="0123456789.,+-*/()%=x $a^", max_size=60))
def test_any_text_holds_or_does_not(text: str) -> None:
    assert holds(text) in (True, False)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6), st.data())
def test_values_are_those_of_python(numbers: list[int], data: st.DataObject) -> None:
    text = str(numbers[0])
    for number in numbers[1:]:
        text += data.draw(st.sampled_from(["+", "-", "*"])) + str(number)
    assert value(text) == pytest.approx(eval(text), abs=1e-9)
