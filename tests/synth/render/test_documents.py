"""The fast renderer against openai-harmony, over every kind of message that it renders."""

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.synth.builders.harmony import developer_message, system_message
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import documents, harmony
from gristmill.synth.render.documents import BadRow, Renderer
from gristmill.vocabularies import encode
from gristmill.vocabularies.pinned import O200K
from tests.synth.conversations import as_json, conversation, message
from tests.synth.render.strategies import conversations, texts


@pytest.mark.slow
@given(st.lists(conversations, max_size=3))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_kind_of_message_has_the_tokens_of_openai_harmony(vocabulary, batch):
    """Compare tokens, spans and refusals of several conversations that are assembled together."""
    renderer, encoding = Renderer(vocabulary), harmony.encoding(vocabulary)
    taken, expected = [], []
    for messages in batch:
        try:
            oracle = harmony.render(messages, encoding)
        except harmony.CONVERSATION_ERRORS:
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


def test_the_conversation_of_a_default_row_needs_no_openai_harmony(vocabulary, monkeypatch):
    config = HarmonyConfig()
    messages = [system_message(config), developer_message(config), *conversation("q", "a", "f")]
    expected = harmony.render(messages, harmony.encoding(vocabulary))
    renderer = Renderer(vocabulary)
    monkeypatch.setattr(harmony, "render", None)
    made = documents.assemble([renderer.read(as_json(messages))], vocabulary)
    assert made.tokens.tolist() == list(expected.tokens)


@given(texts)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ordinary_bpe_makes_no_control_token(vocabulary, text):
    (view,) = encode.encoder(O200K, vocabulary).encode([text]).ids
    tokens = np.frombuffer(view, dtype=np.int32)
    assert tokens.tolist() == harmony.encoding(vocabulary).encode(
        text, allowed_special=set(), disallowed_special=()
    )
    assert tokens.tolist() == encode.encoding(vocabulary).encode_ordinary(text)
    assert not (tokens >= harmony_tokens.BODY_LIMIT).any()


def test_control_text_is_ordinary_text_and_keys_of_fixed_messages_are_named(vocabulary):
    read = Renderer(vocabulary).read(
        as_json(conversation("<|end|> and <|endx|>", "<|reserved_200999|>", "x<|start|>"))
    )
    assert read.control_texts == 3
    made = documents.assemble([read], vocabulary)
    assert (made.tokens == harmony_tokens.END).sum() == 2  # of the user and the reasoning
    assert (made.tokens == harmony_tokens.START).sum() == 3
    # The renderer remembers these messages, and what it found in them.
    system = system_message(HarmonyConfig())
    system["content"][0]["persona"] = "a pirate"
    renderer = Renderer(vocabulary)
    for _ in range(3):
        read = renderer.read(as_json([{**system, "note": "x"}, *conversation("q", "a", "f")]))
        assert read.shape.unknown_keys == ("note", "content.persona")
    assert renderer.read(as_json(conversation("q", "a", "f"))).shape.unknown_keys == ()


def test_control_text_is_counted_in_identities_instructions_and_tools(vocabulary):
    """Both renderers count identities, instructions and tools."""
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
    turns = conversation("<|message|>", "a", "f")
    renderer, encoding = Renderer(vocabulary), harmony.encoding(vocabulary)
    for prompts, count in (([one], 3), ([one, two], 4), ([three], 3), ([], 1)):
        messages = [*prompts, *turns]
        assert harmony.render(messages, encoding).control_texts == count
        for _ in range(2):  # the second time from memory
            read = renderer.read(as_json(messages))
            assert read.control_texts == count
        made = documents.assemble([read], vocabulary)
        assert (made.tokens == harmony_tokens.START).sum() == len(messages)
        assert not (made.tokens == harmony_tokens.CALL).any()


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
        (as_json(conversation("\ud800", "a", "f")), "invalid conversation JSON"),
        (
            as_json(
                [
                    {
                        "role": "system",
                        "content": [{"type": "system_content", "reasoning_effort": 1}],
                    },
                    *conversation("q", "a", "f"),
                ]
            ),
            "reasoning_effort",
        ),
    ],
)
def test_a_bad_row_is_refused_with_its_rule(vocabulary, text, rule):
    with pytest.raises(BadRow, match=rule.replace(".", r"\.")):
        Renderer(vocabulary).read(text)


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({"thinking": "so"}, ("thinking",)),
        (
            {"tool_calls": [{"name": "f"}], "reasoning_content": "so"},
            ("reasoning_content", "tool_calls"),
        ),
        ({"thinking": None, "tool_calls": [], "name": "", "weight": 0}, ("weight",)),
        ({"name": "bob", "recipient": "all", "content_type": "json"}, ()),
        ({"content": [{"type": "text", "text": "a", "thinking": "so"}]}, ("content.thinking",)),
        ({"k\x1b" + "n" * 99: 1}, (f"k\ufffd{'n' * 58}… and 41 more characters",)),
    ],
)
def test_keys_that_are_not_rendered_are_named(vocabulary, more, keys):
    """The tokens are those of the same conversation without them."""
    messages = conversation("q", "a", "f")
    messages[2] |= more
    read = Renderer(vocabulary).read(as_json([*messages, message("user", "again")]))
    assert tuple(sorted(read.shape.unknown_keys)) == keys
    known = {"role", "content", "channel", "name", "recipient", "content_type"}
    messages[2] = {key: value for key, value in messages[2].items() if key in known}
    plain = harmony.render([*messages, message("user", "again")], harmony.encoding(vocabulary))
    made = documents.assemble([read], vocabulary)
    assert made.tokens.tolist() == list(plain.tokens)


PIECES = ['"', "\\", '\\"}]}, {"role": "', '"}], "channel": "', '"role": "x", ', "]}", " ", ""]


@given(st.lists(st.tuples(st.integers(0, 900), st.sampled_from(PIECES), st.integers(0, 9))))
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_json_as_our_code_writes_it_is_strict_and_read_as_it_is(vocabulary, changes):
    renderer, text = (
        Renderer(vocabulary),
        as_json(
            [system_message(HarmonyConfig()), *conversation('q"}]}, {', "a\\", "\u00e9\n") * 2]
        ),
    )
    assert [renderer.read(text).is_strict for _ in range(2)] == [False, True]
    for place, piece, gone in changes:
        text = text[:place] + piece + text[place + gone :]
    try:
        read = renderer.read(text)
    except BadRow:
        return
    if read.is_strict:
        value = harmony.strict_json(text)
        assert read.bodies == [m["content"][0]["text"] for m in value["messages"][1:]]
        assert [*value] == ["messages"]


def test_a_renderer_remembers_a_limited_number_of_messages(vocabulary, monkeypatch):
    monkeypatch.setattr(documents, "_REMEMBERED", 8)
    renderer, encoding = Renderer(vocabulary), harmony.encoding(vocabulary)
    for number in range(30):
        messages = [
            {
                "role": "system",
                "content": [{"type": "system_content", "model_identity": f"number {number}"}],
            },
            *conversation("q", "a", "f"),
        ]
        made = documents.assemble([renderer.read(json.dumps({"messages": messages}))], vocabulary)
        assert made.tokens.tolist() == list(harmony.render(messages, encoding).tokens)
    assert len(renderer._kinds) <= 16


def test_the_beginning_of_one_conversation_does_not_change_the_next(vocabulary):
    """The renderer remembers the beginning of the last conversation."""
    encoding, renderer = harmony.encoding(vocabulary), Renderer(vocabulary)
    one = [system_message(HarmonyConfig()), developer_message(HarmonyConfig())]
    other = [system_message(HarmonyConfig(reasoning_effort="low"))]
    turns = conversation("q", "a", "f")
    batch = [
        [*one, *turns],
        [*one, *turns],
        [*other, *turns],
        [*one, *turns, *turns],
        [*turns, *one, *turns],
        [*one, message("user", "x", name="bob"), *turns],
        [message("system", "text"), *turns],
        [message("system", "text"), *turns],
        [{"role": "system", "content": "text"}, *turns],
        [{"role": "system", "content": "text"}, *turns],
        [*one, *turns],
    ]
    for messages in batch:
        made = documents.assemble([renderer.read(as_json(messages))], vocabulary)
        expected = harmony.render(messages, encoding)
        assert made.tokens.tolist() == list(expected.tokens)
        assert made.runs.tolist() == [*expected.lengths, 1]
    # JSON in which the last of two equal keys counts, and text that is not JSON.
    head = as_json([*one, *turns]).removesuffix("]}")
    twice = head + '], "messages": [' + as_json(turns).removeprefix('{"messages": [')
    made = documents.assemble([renderer.read(twice)], vocabulary)
    assert made.tokens.tolist() == list(harmony.render(turns, encoding).tokens)
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
def test_values_before_the_messages_do_not_change_the_tokens(vocabulary, before):
    """Also if they look like the beginning of the messages."""
    turns = conversation("q", "a", "f")
    text = as_json(turns).replace("{", f"{{{before}, ", 1)
    assert json.loads(text)["messages"] == turns
    renderer = Renderer(vocabulary)
    for _ in range(2):
        made = documents.assemble([renderer.read(text)], vocabulary)
        expected = harmony.render(turns, harmony.encoding(vocabulary))
        assert made.tokens.tolist() == list(expected.tokens)


KEYS = ["a", "b", "", "\\", '"', "k: ", "é", "x\\"]
TEXTS = st.sampled_from(["", '"', '\\":', '": ', " :", '" :', "x", "é:", "\\", "\n:"])


def written(value: Any, style: int) -> str:
    """JSON of a value whose objects are lists of pairs, in one of several styles."""
    colon = [":", ": ", " : ", "\t:", ": "][style]
    if isinstance(value, dict):
        pairs = value["pairs"]
        inside = ",".join(f"{json.dumps(k)}{colon}{written(v, style)}" for k, v in pairs)
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item, style) for item in value) + "]"
    return json.dumps(value, ensure_ascii=style == 0)


VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.none() | st.integers(-5, 5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=4).map(
            lambda pairs: {"pairs": pairs}
        )
    ),
    max_leaves=8,
)


def repeats(text: str) -> bool:
    """Whether an object of a text has a key twice."""
    found = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        found.append(len({name for name, _ in pairs}) < len(pairs))

    json.loads(text, object_pairs_hook=members)
    return any(found)


@given(st.lists(st.tuples(VALUES, st.integers(0, 4)), min_size=1, max_size=5))
@settings(deadline=None)
def test_every_text_that_repeats_a_key_is_refused(drawn):
    texts = [written(value, style) for value, style in drawn]
    rules = harmony.column_rules("x", [None, *texts])
    for index, text in enumerate(texts, 1):
        if repeats(text):
            assert "x: the key " in rules[index]
            with pytest.raises(ValueError, match="is twice in one object: remove one of them"):
                harmony.strict_json(text)
        else:
            assert index not in rules
            assert harmony.strict_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"a": NaN}', "NaN is not JSON: write null or a number"),
        ("[-Infinity]", "-Infinity is not JSON: write null or a number"),
        ('{"a": {"b\\u0007": 1, "b\\u0007": 2}}', "the key 'b\ufffd' is twice in one object"),
        ('{"a": 1} {}', "Extra data"),
        ('{"a": 1,}', "double quotes"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_rule(text, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        harmony.strict_json(text)
