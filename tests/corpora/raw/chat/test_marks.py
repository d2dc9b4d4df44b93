"""Marks, tags and tokens are found by the texts that have them."""

import pytest

from gristmill.corpora.raw.chat.marks import around_of, ends_of, marks_of, tags_of
from gristmill.corpora.raw.chat.recipe import Transcripts

CHATML = "<|im_start|>user\nhi {}<|im_end|>\n<|im_start|>assistant\nyes {}<|im_end|>\n"
LLAMA_3 = (
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi {}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nyes {}<|eot_id|>"
)


def by(user: object, assistant: object, *control: str, **system: str) -> dict[str, object]:
    """Marks as a recipe has them."""
    own = {"control": [*control]} if control else {}
    return {**system, "user": user, "assistant": assistant, **own}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Human: hi {}\n\nAssistant: yes {}", by("\nHuman:", "\n\nAssistant:")),
        ("\n\nHuman: hi {}\n\nAssistant: yes {}", by("\n\nHuman:", "\n\nAssistant:")),
        ("Q: hi {}\nA: yes {}", by("\nQ:", "\nA:")),
        ("Q: a\nA: b\n\nQ: c\nA: d\nQ: hi {}\nA: yes {}", by("\nQ:", "\nA:")),
        ("<human>: hi {}\n<bot>: yes {}", by("\n<human>:", "\n<bot>:")),
        ("### Human: hi {}### Assistant: yes {}", by("### Human:", "### Assistant:")),
        (
            "Do it.\n\n### Instruction:\nhi {}\n\n### Response:\nyes {}",
            by("### Instruction:", "### Response:", "Do it."),
        ),
        (
            "SYSTEM: be\nUSER: hi {}\nASSISTANT: yes {} <|endoftext|>",
            by("\nUSER:", "\nASSISTANT:", "<|endoftext|>", system="\nSYSTEM:"),
        ),
        (CHATML, by("<|im_start|>user", "<|im_start|>assistant", "<|im_end|>")),
        (
            LLAMA_3,
            by(
                "<|start_header_id|>user<|end_header_id|>",
                "<|start_header_id|>assistant<|end_header_id|>",
                "<|begin_of_text|>",
                "<|eot_id|>",
            ),
        ),
        (
            "<s>[INST] hi {} [/INST] yes {} </s>",
            by(["[INST]", "<</SYS>>"], "[/INST]", "<s>", "</s>"),
        ),
        (
            "<bos><start_of_turn>user\nhi {}<end_of_turn>\n<start_of_turn>model\nyes {}",
            by("<start_of_turn>user", "<start_of_turn>model", "<bos>", "<end_of_turn>"),
        ),
        (
            "Be kind. USER: hi {} ASSISTANT: yes {}</s>USER: hi b ASSISTANT: yes b</s>",
            by("USER:", "ASSISTANT:", "</s>", "Be kind."),
        ),
        (
            "<|im_start|>user<|im_sep|>hi {}<|im_end|><|im_start|>assistant<|im_sep|>yes {}",
            by("<|im_start|>user<|im_sep|>", "<|im_start|>assistant<|im_sep|>", "<|im_end|>"),
        ),
        (
            "<｜begin▁of▁sentence｜><｜User｜>hi {}<｜Assistant｜>yes {}<｜end▁of▁sentence｜>",
            by("<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ),
        (
            "A talk.\n[|Human|] hi b\n[|AI|] yes b\n[|Human|] hi {}\n[|AI|] yes {}\n[|Human|] ",
            by("[|Human|]", "[|AI|]", "A talk."),
        ),
        ("[Human]: hi {} <eoh> [MOSS]: yes {} <eoa>", by("[Human]:", "[MOSS]:", "<eoh>", "<eoa>")),
        (
            "<|Human|>: hi {}<eoh>\n<|MOSS|>: yes {}<eom>\n",
            by("<|Human|>:", "<|MOSS|>:", "<eoh>", "<eom>"),
        ),
        (
            "<|prompter|>hi {}<|endoftext|><|assistant|>yes {}<|endoftext|>",
            by("<|prompter|>", "<|assistant|>", "<|endoftext|>"),
        ),
        ("**Human:** hi {}\n\n**Assistant:** yes {}", by("\n**Human:**", "\n\n**Assistant:**")),
        ("**Q**: hi {}\n**A**: yes {}", by("\n**Q**:", "\n**A**:")),
        # A template that nobody has listed, and one whose answers have a channel each.
        (
            "<|turn|>user<|says|>hi {}<|over|><|turn|>assistant<|says|>yes {}<|over|>",
            by("<|turn|>user<|says|>", "<|turn|>assistant<|says|>", "<|over|>"),
        ),
        ("<|start|>user<|message|>hi {}<|start|>assistant<|channel|>final<|message|>yes {}", None),
        ("[Human] hi {} [AI] yes {}", None),
        ("User: hi {} Assistant: yes {}", None),
        ("User: hi User: {}\nAssistant: yes {}", by("\nUser:", "\nAssistant:")),
        ("hi {}: yes {}", None),
        ("A talk {} of none.\nHuman: hi {}\nAssistant: yes", None),
        ("Human: hi {}\nHuman: yes {}", None),
        ("Assistant: hi {}\nHuman: yes {}", None),
        ("Human: hi {} {}\nAssistant:", None),
    ],
)
def test_marks_are_those_that_divide_the_texts(text, marks):
    texts = [text.format(number, number) for number in range(5)]
    assert marks_of(texts) == marks
    for each in texts if marks is not None else ():
        assert marks is not None
        assert [said.split()[0] for _, said in Transcripts(marks).divided(each)][-2:] == [
            "hi",
            "yes",
        ]


def test_marks_are_those_of_eight_of_ten_texts_in_any_capitals():
    marked = ["Human: hi\nAssistant: yes"] * 8
    assert marks_of([*marked, "a", "b"])
    assert marks_of([*marked, "a", "b", "c"]) is None
    assert marks_of([]) is None
    # A text whose only message is an empty system has no message at all.
    chatml = [CHATML.format(1, 1)] * 8
    system = "<|im_start|>system\n<|im_end|>"
    found = marks_of([*chatml, f"{system}{chatml[0]}", system])
    assert found is not None
    assert found["system"] == "<|im_start|>system"
    talk = "Human: hi\nAssistant: yes"
    marks = marks_of([talk] * 8 + [talk.upper()] * 2)
    assert marks == by(["\nHuman:", "\nHUMAN:"], ["\nAssistant:", "\nASSISTANT:"])
    assert [*Transcripts(marks).divided(talk.upper())] == [("user", "HI"), ("assistant", "YES")]
    # Words of a text, and those of other speakers, are none.
    found = marks_of([f"{talk}, THE HUMAN: it\nBot: no\nHuman: hi\nAssistant: yes"] * 2)
    assert found == by("\nHuman:", "\nAssistant:")


def test_texts_before_the_first_mark_are_control_where_they_are_few_and_come_again():
    heads = [f"Talk {number}.\nHuman: hi\nAssistant: yes" for number in range(5)]
    assert marks_of(heads[:4] * 2) == by(
        "\nHuman:", "\nAssistant:", *(f"Talk {number}." for number in range(4))
    )
    assert marks_of(heads * 2) is None
    assert marks_of(heads[:4]) is None
    # The same text, once behind a blank.
    assert marks_of([heads[0], f" {heads[0]}"])


def test_shares_of_marks_count_texts_without_a_thought_and_answers_elsewhere():
    texts = ["Human: hi\n\nAssistant:"] * 3
    assert marks_of(texts, is_open=True) == by("\nHuman:", "\n\nAssistant:")
    assert marks_of([text + " yes" for text in texts], is_open=True) is None
    texts = ["<think>a</think>b", "c", "<thought>a</thought>b", "<think>a</think>b"]
    assert tags_of(texts, 0.5) == ("<think>", "</think>")
    assert tags_of(texts, 0.51) == tags_of([]) == ()


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
    assert tags_of([text]) == (tags or ())


def test_tags_and_tokens_around_texts_are_those_of_eight_in_ten():
    around = "<answer>a</answer>\n"
    assert around_of([around] * 8 + ["b"] * 2) == ("<answer>", "</answer>")
    assert around_of([around] * 7 + ["b"] * 3) is None
    assert around_of(["[SOLUTION]a[/SOLUTION]"]) == ("[SOLUTION]", "[/SOLUTION]")
    for other in ("<p>a</p>", "<answer>a", "<answer>a</answer> b", "<think>a</think>"):
        assert around_of([other]) is None
    assert around_of([]) is None
    assert ends_of(["<|Human|>: a<eoh>\n"] * 8 + ["a"] * 2) == ["<|Human|>:", "<eoh>"]
    assert ends_of(["<s>a</s>"] * 7 + ["a"] * 3) == []
    for other in ("a <|im_end|> b", "<p>a</p>", "<b>", "<|im start|> |>", ""):
        assert ends_of([other]) == []
    assert ends_of([]) == []
