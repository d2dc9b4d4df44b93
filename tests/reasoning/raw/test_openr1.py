"""Which generation of a problem is its chain of thought."""

from __future__ import annotations

from typing import Any

import pytest

from gristmill.reasoning.raw.flatten import Unfit
from gristmill.reasoning.raw.openr1 import thought
from tests.reasoning.raw.test_readers import read


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
def test_the_thought_of_a_generation(generation: str, expected: str | None) -> None:
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
def test_the_first_verified_generation_is_taken(
    complete: Any, verified: Any, judged: Any, expected: str
) -> None:
    generations = [f"<think>{number}</think>" for number in range(2)]
    assert _cot(generations, complete, verified, judged) == expected


def test_an_incomplete_thought_is_passed_over() -> None:
    yes = [True, True]
    assert _cot(["<think>0", "<think>1</think>"], yes, yes, yes) == "1"
    assert _cot(["<think>0", "<think>1"], yes, yes, yes) == "s"


@pytest.mark.parametrize("solution", [None, "", " \n"])
def test_without_generation_and_solution_there_is_no_chain(solution: Any) -> None:
    assert _cot([], [], [], [], solution) is None
    assert _cot(None, None, None, None, solution) is None


def test_generations_that_are_no_list_are_refused() -> None:
    with pytest.raises(Unfit, match="generations"):
        _cot("text", [True], [True], [True])
