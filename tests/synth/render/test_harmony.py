"""The fast path against openai-harmony, over every kind of message it renders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.synth.build.harmony import developer_message, system_message
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import documents, templates
from gristmill.synth.render import harmony as rendering
from gristmill.synth.render.templates import BadRow, Renderer
from gristmill.vocabularies import encode
from tests.synth.conversations import as_json, message
from tests.synth.conversations import plain as plain_messages

CONTROL = [harmony_tokens.name(token) for token in (199999, 200002, 200005, 200006, 200007, 200008)]
texts = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            [
                *CONTROL,
                "<|reserved_200100|>",
                "<|reserved_209999|>",
                "<|",
                "|>",
                "\x00",
                "\r\n",
                "  \n",
                "😀",
            ]
        ),
    ),
    max_size=5,
).map("".join)
words = st.text("abcXYZ09_.", min_size=1, max_size=8)
content = st.one_of(
    texts,
    texts.map(lambda text: [{"type": "text", "text": text}]),
    st.lists(texts, max_size=3).map(lambda ts: [{"type": "text", "text": t} for t in ts]),
)


def namespace(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Tools that a system or developer content declares under `name`."""
    tool = st.fixed_dictionaries(
        {
            "name": words,
            "description": texts,
            "parameters": st.none()
            | st.just({"type": "object", "properties": {"q": {"type": "string"}}}),
        }
    )
    space = st.fixed_dictionaries(
        {
            "name": st.just(name),
            "description": st.none() | texts,
            "tools": st.lists(tool, min_size=1, max_size=2),
        }
    )
    return st.fixed_dictionaries({name: space})


def among_texts(item: dict[str, Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Contents of one message: `item`, mostly alone, else with texts before or after it."""
    text = texts.map(lambda text: {"type": "text", "text": text})
    return st.one_of(
        st.just([item]),
        st.just([item]),
        st.tuples(st.lists(text, max_size=2), st.lists(text, max_size=2)).map(
            lambda around: [*around[0], item, *around[1]]
        ),
    )


system = st.fixed_dictionaries(
    {"type": st.just("system_content")},
    optional={
        "model_identity": texts,
        "reasoning_effort": st.sampled_from(["Low", "Medium", "High"]),
        "conversation_start_date": words,
        "knowledge_cutoff": words,
        "channel_config": st.fixed_dictionaries(
            {
                "valid_channels": st.lists(words, min_size=1, max_size=3),
                "channel_required": st.booleans(),
            }
        ),
        "tools": namespace("browser"),
    },
)
developer = st.fixed_dictionaries(
    {"type": st.just("developer_content")},
    optional={"instructions": texts, "tools": namespace("functions")},
)
extras = {
    "name": words,
    "recipient": st.sampled_from(["all", "functions.f", "browser"]),
    "content_type": st.sampled_from(["json", "<|constrain|>json", "code"]),
}
prompts = st.one_of(
    st.fixed_dictionaries({"role": st.just("system"), "content": system.flatmap(among_texts)}),
    st.fixed_dictionaries(
        {"role": st.just("developer"), "content": developer.flatmap(among_texts)}
    ),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user"]), "content": content},
        optional=extras | {"channel": st.sampled_from(["analysis", "final", "commentary"])},
    ),
)
answers = st.fixed_dictionaries(
    {
        "role": st.just("assistant"),
        "content": content,
        "channel": st.sampled_from(["analysis", "final"]),
    },
    optional=extras,
)
conversations = st.lists(st.one_of(prompts, answers), max_size=5)


@given(st.lists(conversations, max_size=3))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_kind_of_message_is_as_openai_harmony_has_it(
    vocabulary: Path, batch: list[list[dict[str, Any]]]
) -> None:
    """Tokens, spans and refusals, of several conversations assembled together."""
    renderer, harmony = Renderer(vocabulary), rendering.encoding(vocabulary)
    taken, expected = [], []
    for messages in batch:
        try:
            oracle = rendering.render(messages, harmony)
        except templates._ERRORS:
            with pytest.raises(BadRow):
                renderer.read(as_json(messages))
            continue
        taken.append(renderer.read(as_json(messages)))
        expected.append(oracle)
        assert taken[-1].control_texts == oracle.control_texts
    made = documents.assemble(taken, vocabulary)
    assert made.tokens.tolist() == [token for one in expected for token in one.tokens]
    assert made.lengths.tolist() == [len(one.tokens) for one in expected]
    span: list[int] = []
    for one in expected:
        span += [*np.repeat([*one.spans, 0], [*one.lengths, 1]).tolist()[1:], 0]
    assert made.span.tolist() == span
    assert made.runs.tolist() == [n for one in expected for n in [*one.lengths, 1]]


def test_the_plain_conversation_takes_the_fast_path(
    vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = HarmonyConfig()
    messages = [system_message(config), developer_message(config), *plain_messages("q", "a", "f")]
    expected = rendering.render(messages, rendering.encoding(vocabulary))
    renderer = Renderer(vocabulary)
    monkeypatch.setattr(rendering, "render", None)
    made = documents.assemble([renderer.read(as_json(messages))], vocabulary)
    assert made.tokens.tolist() == list(expected.tokens)


@given(texts)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bpe_makes_no_control_token(vocabulary: Path, text: str) -> None:
    (view,) = encode.encode([text], encode.encoding(vocabulary))
    tokens = np.frombuffer(view, dtype=np.int32)
    assert tokens.tolist() == rendering.encoding(vocabulary).encode(
        text, allowed_special=set(), disallowed_special=()
    )
    assert tokens.tolist() == encode.encoding(vocabulary).encode_ordinary(text)
    assert not (tokens >= harmony_tokens.BODY_LIMIT).any()


def test_control_text_is_counted_and_stays_text(vocabulary: Path) -> None:
    read = Renderer(vocabulary).read(
        as_json(plain_messages("<|end|> and <|endx|>", "<|reserved_200999|>", "x<|start|>"))
    )
    assert read.control_texts == 3
    made = documents.assemble([read], vocabulary)
    assert (made.tokens == harmony_tokens.END).sum() == 2  # of the user and the reasoning
    assert (made.tokens == harmony_tokens.START).sum() == 3


def test_control_text_is_counted_in_every_content(vocabulary: Path) -> None:
    """Identities, instructions and tools are bodies, on the fast path and off it."""
    identity = {"type": "system_content", "model_identity": "<|start|>I<|end|>"}
    instructions = {"type": "developer_content", "instructions": "say <|call|> and <|calls|>"}
    tool = {"name": "f", "description": "a <|return|>", "parameters": None}
    space = {"name": "functions", "description": "<|channel|>", "tools": [tool]}
    tools = {"type": "developer_content", "tools": {"functions": space}}
    one, two, three = (
        {"role": role, "content": [content]}
        for role, content in (
            ("system", identity),
            ("developer", instructions),
            ("developer", tools),
        )
    )
    turns = plain_messages("<|message|>", "a", "f")
    renderer, harmony = Renderer(vocabulary), rendering.encoding(vocabulary)
    for prompts, expected in (([one], 3), ([one, two], 4), ([three], 3), ([], 1)):
        messages = [*prompts, *turns]
        assert rendering.render(messages, harmony).control_texts == expected
        for _ in range(2):  # the second time by what is remembered
            read = renderer.read(as_json(messages))
            assert read.control_texts == expected
        made = documents.assemble([read], vocabulary)
        assert (made.tokens == harmony_tokens.START).sum() == len(messages)
        assert not (made.tokens == harmony_tokens.CALL).any()


def test_control_texts_are_those_of_the_vocabulary() -> None:
    for token in range(199_900, 210_000):
        there = token in harmony_tokens.NAMES or 200_000 <= token < harmony_tokens.PADDED_VOCABULARY
        written = f"<|reserved_{token}|>"
        assert bool(harmony_tokens.TEXT.fullmatch(written)) == (
            there and token not in harmony_tokens.NAMES
        )
        if there:
            assert harmony_tokens.TEXT.findall(f"x{harmony_tokens.name(token)}y") == [
                harmony_tokens.name(token)
            ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"messages": 3}', "messages_json must contain a list field 'messages'."),
        ("[]", "messages_json must contain a list field 'messages'."),
        ("{", "JSONDecodeError"),
        (as_json([]), "No messages to render."),
        (as_json([message("tool", "x")]), "Unsupported role: tool"),
        (as_json([message("user", "x")]), "No assistant messages found"),
        (
            as_json([message("user", "x"), message("assistant", "y")]),
            "Assistant message missing/invalid channel: None",
        ),
        (as_json(plain_messages("\ud800", "a", "f")), "invalid conversation JSON"),
        (
            as_json(
                [
                    {
                        "role": "system",
                        "content": [{"type": "system_content", "reasoning_effort": 1}],
                    },
                    *plain_messages("q", "a", "f"),
                ]
            ),
            "reasoning_effort",
        ),
    ],
)
def test_bad_rows_are_refused_with_their_rule(vocabulary: Path, text: str, rule: str) -> None:
    with pytest.raises(BadRow, match=rule.replace(".", r"\.")):
        Renderer(vocabulary).read(text)


def test_what_a_renderer_remembers_is_bounded(
    vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "_REMEMBERED", 8)
    renderer, harmony = Renderer(vocabulary), rendering.encoding(vocabulary)
    for number in range(30):
        messages = [
            {
                "role": "system",
                "content": [{"type": "system_content", "model_identity": f"number {number}"}],
            },
            *plain_messages("q", "a", "f"),
        ]
        made = documents.assemble([renderer.read(json.dumps({"messages": messages}))], vocabulary)
        assert made.tokens.tolist() == list(rendering.render(messages, harmony).tokens)
    assert len(renderer._kinds) <= 16


def test_conversations_that_begin_alike_and_those_that_do_not(vocabulary: Path) -> None:
    """What is remembered of the last conversation's beginning must not leak into the next."""
    harmony, renderer = rendering.encoding(vocabulary), Renderer(vocabulary)
    one = [system_message(HarmonyConfig()), developer_message(HarmonyConfig())]
    other = [system_message(HarmonyConfig(reasoning_effort="low"))]
    turns = plain_messages("q", "a", "f")
    batch = [
        [*one, *turns],
        [*one, *turns],
        [*other, *turns],
        [*one, *turns, *turns],
        [*turns, *one, *turns],
        [*one, message("user", "x", name="bob"), *turns],
        [message("system", "text"), *turns],
        [message("system", "text"), *turns],
        [*one, *turns],
    ]
    for messages in batch:
        made = documents.assemble([renderer.read(as_json(messages))], vocabulary)
        expected = rendering.render(messages, harmony)
        assert made.tokens.tolist() == list(expected.tokens)
        assert made.runs.tolist() == [*expected.lengths, 1]
    # Valid JSON whose last key wins, and JSON that is not valid.
    head = as_json([*one, *turns]).removesuffix("]}")
    twice = head + '], "messages": [' + as_json(turns).removeprefix('{"messages": [')
    made = documents.assemble([renderer.read(twice)], vocabulary)
    assert made.tokens.tolist() == list(rendering.render(turns, harmony).tokens)
    for text in (head, head + ", ]}", head + "]]}", as_json(one).removesuffix("]}") + ", ]}"):
        with pytest.raises(BadRow, match="JSONDecodeError"):
            renderer.read(text)


@pytest.mark.parametrize(
    "before",
    [
        '"x": [1, {"role": "user"}]',
        '"messages": 1, "x": [2, {"role": "user"}]',
        '"messages": ["a"], "x": [2, {"role": "user"}]',
        '"messages": [{"content": []}, {"role": "user"}]',
    ],
)
def test_what_stands_before_the_messages_does_not_matter(vocabulary: Path, before: str) -> None:
    """Nor does it where it looks like the beginning of the messages."""
    turns = plain_messages("q", "a", "f")
    text = as_json(turns).replace("{", f"{{{before}, ", 1)
    assert json.loads(text)["messages"] == turns
    renderer = Renderer(vocabulary)
    for _ in range(2):
        made = documents.assemble([renderer.read(text)], vocabulary)
        expected = rendering.render(turns, rendering.encoding(vocabulary))
        assert made.tokens.tolist() == list(expected.tokens)
