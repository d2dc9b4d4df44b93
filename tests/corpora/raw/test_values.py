"""Which generation of a problem is its chain of thought."""

from typing import Any

import pytest

from gristmill.corpora.raw.texts import ClassName, Unfit
from gristmill.corpora.raw.values import Names, read_of, thought
from tests.corpora.raw.test_reader import read


def _cot(generations: Any, complete: Any, verified: Any, judged: Any, solution: Any = "s") -> Any:
    record = read(
        "openr1_math_220k",
        {
            "problem": "p",
            "answer": "a",
            "solution": solution,
            "generations": generations,
            "is_reasoning_complete": complete,
            "correctness_math_verify": verified,
            "correctness_llama": judged,
        },
    )
    assert (record.question, record.answer, record.extras) == ("p", "a", (None,))
    assert (record.shape, record.steps) == ("public", None)
    return record.cot


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ("<think>\na\n</think>\nb", "a"),
        ("a</think>b", "a"),
        ("x<think>a</think>b", "a"),
        ("<think>a</think>b</think>c", "a"),
        ("<think> </think>\nb\n", "b"),
        ("<think></think> ", None),
        ("<think>a", None),
        ("a", None),
        ("", None),
    ],
)
def test_the_thought_of_a_generation(generation, expected):
    assert thought(generation) == expected


@pytest.mark.parametrize(
    ("complete", "verified", "judged", "expected"),
    [
        ([True, True], [True, True], None, "0"),
        ([False, True], [True, True], None, "1"),
        ([True, True], [False, True], [True, True], "1"),
        ([True, True], [False, False], [False, True], "1"),
        ([True, True], [None, None], [True, True], "0"),
        ([False, False], [True, True], [True, True], "s"),
        ([True, True], [False, False], None, "s"),
        ([True], [False, True], [], "s"),
        (None, [True, True], [True, True], "s"),
        ([1, "true"], [True, True], None, "s"),
    ],
)
def test_the_first_verified_generation_is_taken(complete, verified, judged, expected):
    generations = [f"<think>{number}</think>" for number in range(2)]
    assert _cot(generations, complete, verified, judged) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("a\nThe answer is: 3", ("a", "3")),
        ("a\n\nThe answer is:3\n", ("a", "3")),
        ("The answer is: 1\nb\nThe answer is: 2", ("The answer is: 1\nb", "2")),
        ("a\nThe answer is: \\begin{x}\n1\n\\end{x}", ("a", "\\begin{x}\n1\n\\end{x}")),
        ("The answer is: 3", (None, "3")),
        ("So The answer is: 3", ("So The answer is: 3", "")),
        ("a\nThe answer is:", ("a", "")),
        ("", ("", "")),
    ],
)
def test_the_last_line_with_a_mark_divides(response, expected):
    cuts = [{"column": "a", key: "The answer is:"} for key in ("before_line", "after_line")]
    assert tuple(read_of(cut, Names())({"a": response}) for cut in cuts) == expected


def value(spec: object, **row: object) -> object:
    """What a value reads of a row."""
    return read_of(spec, Names())(row)  # type: ignore[arg-type]


def refused(spec: object, **row: object) -> str:
    """Why a value of a row is refused."""
    with pytest.raises(Unfit) as raised:
        value(spec, **row)
    return raised.value.rule


def test_a_path_leads_into_lists_and_the_name_or_number_of_a_class_is_a_place():
    row: dict[str, object] = {"a": {"b": ["x", "y"]}}
    assert read_of("a.b.1", Names())(row) == "y"
    assert read_of("a.b.2", Names())(row) is None and read_of("a.c.d", Names())(row) is None
    assert read_of("a.b", Names())({**row, "a.b": 3}) == 3
    with pytest.raises(Unfit, match="generations"):
        _cot("text", [True], [True], [True])
    rule, pair = {"choice": "c", "of": "o", "labels": ["1", "2"], "by": "place"}, ["2", "1"]
    assert value(rule, c="1", o=pair) == "2" and value({**rule, "by": "text"}, c="1", o=pair) == "1"
    for names in (["1", "2"], ["x", "y"]):
        said = ClassName(1, names[1])
        assert value({**rule, "labels": [["0", "1"], names][0]}, c=said, o=["a", "b"]) == "b"
        assert value({**rule, "labels": names}, c=said, o=["a", "b"]) == "b"
        assert value({"choice": "c", "of": "o"}, c=said, o=["a", "b"]) == "b"
    with pytest.raises(Unfit, match="c is '-1', none of 2 choices"):
        value({"choice": "c", "of": "o"}, c=ClassName(-1, None), o=pair)


def test_a_choice_is_known_by_its_labels_and_an_empty_one_keeps_its_place():
    rule = {"choice": "c", "of": "o", "labels": "l"}
    texts, numbers = ["2", "3", "4"], ["1", "2", "3"]
    assert value(rule, c="2", o=texts, l=numbers) == "3"
    assert value(rule, c="4", o=texts, l=numbers) == "4"
    assert value({**rule, "labels": numbers}, c=3, o=texts) == "4"
    for labels in (None, ["x"]):  # neither a letter nor a number counts beside labels
        with pytest.raises(Unfit, match="c is '0', none of 3 choices"):
            value(rule, c=0, o=texts, l=labels)
    with pytest.raises(ValueError, match="`labels` must be a list"):
        value({**rule, "labels": [1]}, c=1, o=texts)
    choices = ["A) x", "", None, "D) y"]
    for said in (3, "3", "D", "y"):
        assert value({"choice": "c", "of": "o", "as": "both"}, c=said, o=choices) == "D) y"
    for rule in ({"of": "o"}, {"of": "o", "labels": ["1", "", "", "4"]}):
        with pytest.raises(Unfit, match="c is '', none of 4 choices"):
            value({"choice": "c", **rule}, c="", o=choices)
    for said in (1, "1", "B"):
        with pytest.raises(Unfit, match="an empty choice"):
            value({"choice": "c", "of": "o", "as": "both"}, c=said, o=choices)


@pytest.mark.parametrize("said", ["(B)", "B.", "B)", "b", "(b)", "B) sea", "sea"])
def test_a_choice_may_have_its_letter_with_marks_or_be_whole(said):
    rule = {"choice": "c", "of": "o", "as": "both"}
    assert value(rule, c=said, o=["A) oak", "B) sea"]) == "B) sea"
    with pytest.raises(Unfit, match="none of 1 choices"):
        value(rule, c=said, o=["A) oak"])


TWO_READINGS: dict[str, tuple[Any, list[Any], dict[str, str]]] = {
    "a letter": ("b", ["b", "c"], {"letter": "c", "text": "b"}),
    "a capital letter": ("B", ["B", "A"], {"letter": "A", "text": "B"}),
    "a number in a text": ("1", ["4", "2", "1"], {"place": "2", "text": "1"}),
    "a number": (1, [4, 2, 1], {"place": "2", "text": "1"}),
    "a number of 28 choices": ("27", [*"x" * 26, "y", "z"], {"place": "z", "letter": "y"}),
    "a class": (ClassName(0, "b"), ["a", "b"], {"place": "a", "text": "b"}),
}


@pytest.mark.parametrize(("said", "of", "readings"), TWO_READINGS.values(), ids=TWO_READINGS)
def test_a_value_that_names_two_choices_is_refused_by_default(said, of, readings):
    for by in ("place", "letter", "text"):
        rule = {"choice": "c", "of": "o", "by": by}
        if by in readings:
            assert value(rule, c=said, o=of) == readings[by]
        else:
            assert f"none of {len(of)} choices by {by}" in refused(rule, c=said, o=of)
    named = " and ".join(f"{text!r} by {by}" for by, text in readings.items())
    cure = " or ".join(f'by = "{by}"' for by in readings)
    said_of = refused({"choice": "c", "of": "o"}, c=said, o=of)
    assert f"the choice {named}: write {cure} beside choice = 'c'" in said_of


def test_two_readings_of_a_choice_are_no_question_and_a_map_refuses_what_it_has_not():
    for said in ("B", "1", 1):
        for choices in (["A", "B"], ["0", "1"]):
            if str(said) in choices:
                assert value({"choice": "c", "of": "o"}, c=said, o=choices) == str(said)
    spec = {"column": "a", "map": {"true": "yes", "0": "no"}}
    assert value(spec, a=True) == "yes" and value(spec, a=0) == "no" and value(spec) is None
    with pytest.raises(Unfit, match="a is '2', which `map` has not"):
        value(spec, a=2)
    assert value({**spec, "else": "?"}, a=2) == "?"


@pytest.mark.parametrize(
    ("first", "then", "rule"),
    [
        ("B", "1", "c is '1', a choice by place, and 'B' in a row before, one by letter"),
        ("1", "sea", 'one by place: write by = "text" or by = "place" beside choice = \'c\''),
        ("oak", "2", "a choice by place, and 'oak' in a row before, one by text"),
        ("B", "sea", ""),
        ("0", "1", ""),
    ],
)
def test_places_and_other_names_of_choices_are_no_one_column(first, then, rule):
    read, choices = read_of({"choice": "c", "of": "o"}, Names()), ["oak", "sea", "sky"]
    assert read({"c": first, "o": choices})
    if not rule:
        assert read({"c": then, "o": choices})
        return
    with pytest.raises(Unfit) as raised:
        read({"c": then, "o": choices})
    assert rule in raised.value.rule
    assert read({"c": first, "o": choices})


@pytest.mark.parametrize("said", [3, "3"])
def test_the_number_of_choices_is_refused_with_the_labels_to_write(said):
    with pytest.raises(
        Unfit, match=r'none of 3 choices: where the first one is 1, say labels = \["1"'
    ):
        value({"choice": "c", "of": "o"}, c=said, o=["x", "y", "z"])


@pytest.mark.parametrize("said", ["True", "TRUE", "true", True])
def test_a_truth_value_in_a_table_is_its_word(said):
    spec = {"column": "a", "map": {"true": "yes", "false": "no"}}
    assert value(spec, a=said) == "yes" and value(spec, a="False") == "no"
    with pytest.raises(Unfit, match="a is 'tRUE', which"):
        value(spec, a="tRUE")
    assert value({**spec, "map": {"True": "1", "true": "2"}}, a="True") == "1"


def test_a_class_and_a_choice_are_a_name_a_number_or_a_text():
    one, none = ClassName(1, "pos"), ClassName(-1, None)
    assert value({"template": "It is {a}."}, a=one) == "It is pos." and value("a", a=one) == 1
    for table in ({"pos": "yes"}, {"1": "yes"}, {"pos": "yes", "1": "yes"}):
        assert value({"column": "a", "map": table}, a=one) == "yes"
    assert value({"column": "a", "map": {"-1": "?"}}, a=none) == "?"
    with pytest.raises(Unfit, match="a is 1, the class 'pos': `map` has both, differing"):
        value({"column": "a", "map": {"pos": "yes", "1": "no"}}, a=one)
    for made in ({"column": "a", "map": {}}, {"column": "a", "map": {"x": "y"}}):
        with pytest.raises(Unfit, match="a is '-1', which `map` has not"):
            value(made, a=none)
    choices = ["A)21", "B) 3"]
    for said in (1, "B", "3", "1"):
        assert value({"choice": "c", "of": "o", "as": "both"}, c=said, o=choices) == "B) 3"
    assert value({"choice": "c", "of": "o", "as": "letter"}, c=0, o=choices) == "A"
    for wrong in (2, -1, "C", True):
        with pytest.raises(Unfit, match="none of 2 choices"):
            value({"choice": "c", "of": "o"}, c=wrong, o=choices)


def test_lists_are_joined_texts_cut_and_parts_that_name_themselves_refused():
    spec = {"join": "a", "item": "({letter}) {text}"}
    assert value(spec, a=["x", {"text": "y"}]) == ["(A) x", "(B) y"]
    assert value({"join": "a", "by": ", "}, a=["x", "", 3]) == "x, 3"
    assert value({"first": ["a", "b"]}, a="", b="c") == "c"
    cut = {"column": "a", "after": "|", "which": "last"}
    assert value(cut, a="x|y| z ") == "z" and value(cut, a="x") == ""
    assert value({"column": "a", "before": "|"}, a=" x |y|z") == "x"
    boxed = {"column": "a", "between": ["\\boxed{", "}"], "which": "last", "braces": True}
    assert value(boxed, a="\\boxed{1} \\boxed{\\frac{1}{2}}.") == "\\frac{1}{2}"
    assert value(boxed, a="\\boxed{1") == ""
    assert value({"think": "a"}, a="<think>t</think>s") == "t"
    names = Names(parts={"a": {"template": "{b}"}, "b": {"template": "{a}"}})
    with pytest.raises(ValueError, match="the part 'a' names itself"):
        read_of({"template": "{a}"}, names)
    parts = {f"p{n}": {"template": f"{{p{n + 1}}}{{p{n + 1}}}"} for n in range(60)}
    with pytest.raises(ValueError, match="name parts more than 200 times"):
        read_of({"template": "{p0}"}, Names(parts))
    few = {"a": {"template": "{b}{b}"}, "b": "x"}
    assert read_of({"template": "{a}{a}"}, Names(few))({"x": "1"}) == "1111"


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"colum": "a"}, "did you mean column"),
        ({"column": "a", "befor": "x"}, "did you mean before"),
        ({"column": "a", "before": "x", "after": "y"}, "has both `before` and `after`: leave one"),
        ({"column": "a", "before": ""}, "`before` must be a text that is not empty"),
        ({"template": "{a"}, "a brace without a name"),
        ({"template": "{a}" * 65}, "names more than 64 columns"),
        ({"pick": "a"}, "`where` must be a list of lists"),
        ({"choice": "a", "of": "b", "by": "number"}, "`by` must be place, letter or text"),
        ({"choice": "a", "of": "b", "by": "letter", "labels": "c"}, "has both `labels` and by"),
        (".".join("a" * 17), "more than 16 steps"),
        (3, "must be the name of a column"),
    ],
)
def test_a_wrong_value_names_what_is_wrong(spec, rule):
    with pytest.raises(ValueError, match=rule):
        value(spec)
