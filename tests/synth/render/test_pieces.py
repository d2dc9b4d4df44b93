"""The built-in templates, piece by piece, and a document for each answer."""

from gristmill.synth.render.pieces import (
    Turn,
    by_turns,
    chatgpt_plain,
    chatml,
    turns_of,
)

MESSAGES = [
    {"role": "system", "content": "be"},
    {"role": "user", "content": " hi "},
    {"role": "assistant", "content": "hm", "channel": "analysis"},
    {"role": "assistant", "content": "yes", "channel": "final"},
    {"role": "user", "content": "so"},
    {"role": "assistant", "content": "no", "channel": "final"},
]


def spans(pieces: list[tuple[str, int, int]]) -> list[tuple[str, int]]:
    """Texts that follow each other with one span, together."""
    found: list[tuple[str, int]] = []
    for text, span, _ in pieces:
        if found and found[-1][1] == span:
            found[-1] = found[-1][0] + text, span
        else:
            found.append((text, span))
    return found


def test_turns_hold_a_thought_with_its_answer() -> None:
    assert turns_of(MESSAGES, "001200") == [
        Turn("system", "be", 0),
        Turn("user", " hi ", 0),
        Turn("assistant", "yes", 2, "hm", 1),
        Turn("user", "so", 0),
        Turn("assistant", "no", 0),
    ]


def test_chatml_trains_on_answers_and_their_ends() -> None:
    assert spans(chatml(turns_of(MESSAGES, "001202"))) == [
        (
            "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n hi <|im_end|>\n"
            "<|im_start|>assistant\n",
            0,
        ),
        ("<think>\nhm\n</think>\n\n", 1),
        ("yes<|im_end|>", 2),
        ("\n<|im_start|>user\nso<|im_end|>\n<|im_start|>assistant\n", 0),
        ("no<|im_end|>", 2),
        ("\n", 0),
    ]


def test_the_plain_template_begins_with_its_system_message_and_strips_texts() -> None:
    turns = turns_of(MESSAGES, "001202")
    assert spans(chatgpt_plain(turns)) == [
        (
            "<|start|>system<|message|>be<|end|><|start|>user<|message|>hi<|end|><|start|>assistant",
            0,
        ),
        ("<|channel|>analysis<|message|>hm<|end|>", 1),
        ("<|start|>assistant<|channel|>final<|message|>yes<|end|>", 2),
        ("<|start|>user<|message|>so<|end|><|start|>assistant", 0),
        ("<|channel|>final<|message|>no<|return|>", 2),
    ]
    begin = chatgpt_plain(turns[1:])[0].text
    assert begin == (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\n\nReasoning: high\n\n# Valid channels: analysis, commentary, "
        "final. Channel must be included for every message.<|end|>"
    )


def test_each_answer_that_is_trained_on_gets_a_document() -> None:
    turns = turns_of(MESSAGES, "001202")
    first, second = by_turns(turns)
    assert first == turns[:3]
    assert [turn.span for turn in second] == [0, 0, 0, 0, 2]
    assert second[2] == Turn("assistant", "yes", 0, "hm", 0)
    assert list(by_turns(turns_of(MESSAGES, "000000"))) == []
