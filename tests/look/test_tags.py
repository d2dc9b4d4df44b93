"""Tags around thoughts are found by their words, whatever their brackets."""

import pytest

from gristmill.look.tags import around_of, ends_of, tags_of


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("<think>a</think>b", ("<think>", "</think>")),
        ("\n<reasoning>\na\n</reasoning>\nb", ("<reasoning>", "</reasoning>")),
        ("<think>a</think> <answer>b</answer>\n", ("<think>", "</think>", "<answer>", "</answer>")),
        ("[THINK]a[/THINK]b", ("[THINK]", "[/THINK]")),
        ("<|thinking|>a<|/thinking|>b", ("<|thinking|>", "<|/thinking|>")),
        (
            "<|begin_of_thought|>\n\na<|end_of_thought|>\n\n<|begin_of_work|>b<|end_of_work|>",
            ("<|begin_of_thought|>", "<|end_of_thought|>", "<|begin_of_work|>", "<|end_of_work|>"),
        ),
        (
            "<|start_of_thinking|>a<|end_of_thinking|>b",
            ("<|start_of_thinking|>", "<|end_of_thinking|>"),
        ),
        ("<p>a</p>b", None),
        ("<think>a", None),
        ("see <think>a</think>b", None),
        ("<think>a</think><answer>b</answer> and more", ("<think>", "</think>")),
        ("", None),
    ],
)
def test_the_tags_of_a_text_are_those_that_it_begins_with(text, tags):
    found = tags_of([text])
    assert (found and found.tags) == tags
    assert found is None or found.share == 1


def test_the_share_counts_texts_without_a_thought():
    found = tags_of(["<think>a</think>b", "c", "<thought>a</thought>b", "<think>a</think>b"])
    assert found is not None
    assert found == (("<think>", "</think>"), 0.5)
    assert tags_of([]) is None


def test_tags_around_answers_alone_are_those_of_eight_in_ten():
    around = "<answer>a</answer>\n"
    assert around_of([around] * 8 + ["b"] * 2) == ("<answer>", "</answer>")
    assert around_of([around] * 7 + ["b"] * 3) is None
    assert around_of(["[SOLUTION]a[/SOLUTION]"]) == ("[SOLUTION]", "[/SOLUTION]")
    for other in ("<p>a</p>", "<answer>a", "<answer>a</answer> b", "<think>a</think>"):
        assert around_of([other]) is None
    assert around_of([]) is None


def test_tokens_around_texts_are_those_of_eight_in_ten():
    assert ends_of(["<|Human|>: a<eoh>\n"] * 8 + ["a"] * 2) == ["<|Human|>:", "<eoh>"]
    assert ends_of(["<s>a</s>"] * 7 + ["a"] * 3) == []
    for other in ("a <|im_end|> b", "<p>a</p>", "<b>", "<|im start|> |>", ""):
        assert ends_of([other]) == []
    assert ends_of([]) == []
