"""Rows to messages: forms, roles, thoughts, what is trained on, refusals."""

import tomllib
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.corpora.raw.chat.lists import Trees
from gristmill.corpora.raw.chat.messages import Messages, Talk
from gristmill.corpora.raw.chat.recipe import chat_of_table
from gristmill.corpora.raw.texts import Unfit
from tests.reasoning.drops import unfit

HEAD = {"schema": 1, "kind": "chat", "name": "mine"}
HI = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def read(row: dict[str, Any], **recipe: Any) -> Talk:
    """The conversation of a row."""
    given = recipe if set(recipe) & {"prompt", "turns"} else {"messages": "m", **recipe}
    return Messages(chat_of_table({**HEAD, **given})).read(row)


def said(talk: Talk) -> list[tuple[str, str, str]]:
    """Role or channel, text and span of each message."""
    return [(each.channel or each.role, each.content, each.span) for each in talk.messages]


TURNS = {"history": "h", "user": "u", "assistant": "a"}
PAIR = [("user", "hi", "0"), ("final", "hello", "2")]


@pytest.mark.parametrize(
    ("row", "recipe"),
    [
        ({"m": HI}, {}),
        ({"m": '[{"role": "user", "content": "hi"}, {"from": "gpt", "value": "hello"}]'}, {}),
        ({"m": {"messages": HI}}, {}),
        ({"a": {"b": HI}}, {"messages": "a.b"}),
        ({"m": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]}, {}),
        (
            {"m": [{"who": "Q", "said": "hi"}, {"who": "A", "said": "hello"}]},
            {"keys": {"role": "who", "content": "said"}, "roles": {"Q": "user", "A": "assistant"}},
        ),
        ({"p": "hi", "c": "hello"}, {"prompt": "p", "completion": "c"}),
        ({"p": HI[:1], "c": HI[1:]}, {"prompt": "p", "completion": "c"}),
        ({"p": HI[:1], "c": "hello"}, {"prompt": "p", "completion": {"column": "c"}}),
        ({"i": "hi", "x": "", "o": "hello"}, {"turns": {"user": "{i}\n\n{x}", "assistant": "o"}}),
        ({"m": [{**HI[0], "content": [{"type": "text", "text": "hi"}]}, HI[1]]}, {}),
        (
            {
                "m": [
                    {"role": "user", "parts": [{"text": "hi"}]},
                    {"role": "model", "parts": [{"text": "hello"}]},
                ]
            },
            {"roles": {"model": "assistant"}},
        ),
        ({"m": [["hi", "hello"]]}, {}),
        ({"m": ["hi", "hello"]}, {}),
        ({"m": [["human", "hi"], ["gpt", "hello"]]}, {}),
        ({"m": [{"q": "hi", "a": "hello"}]}, {"keys": {"user": "q", "assistant": "a"}}),
        ({"m": "Q: hi\r\nA: hello"}, {"marks": {"user": "Q:", "assistant": "A:"}}),
        (
            {"p": "Q: hi A:", "c": "hello"},
            {"messages": "{p} {c}", "marks": {"user": "Q:", "assistant": "A:"}},
        ),
        ({"p": HI[:1], "c": HI[1]}, {"prompt": "p", "completion": "c"}),
        ({"p": HI[:1], "c": {"from": "gpt", "value": "hello"}}, {"prompt": "p", "completion": "c"}),
        ({"p": {"messages": HI[:1], "n": 1}, "c": "hello"}, {"prompt": "p", "completion": "c"}),
        ({"u": "hi", "a": "hello", "h": []}, {"turns": TURNS}),
        ({"u": "hi", "a": "hello", "h": "[]"}, {"turns": TURNS}),
        ({"u": "hi", "a": "hello"}, {"turns": TURNS}),
    ],
)
def test_every_form_gives_the_same_conversation(row, recipe):
    assert said(read(row, **recipe)) == PAIR


def test_thoughts_come_from_tags_or_a_key_or_a_closing_tag_alone():
    tagged = {"m": [HI[0], {"role": "assistant", "content": "<think>a</think>b"}]}
    assert said(read(tagged, thinking="none"))[1:] == [("final", "<think>a</think>b", "2")]
    keyed = {"m": [HI[0], {**HI[1], "why": "a"}]}
    assert said(read(keyed, keys={"thinking": "why"}))[1:] == [
        ("analysis", "a", "1"),
        ("final", "hello", "2"),
    ]
    turn = {"turns": {"user": "u", "thinking": "t", "assistant": "a"}}
    assert read({"u": "hi", "t": "hm", "a": "hello"}, **turn).spans == "012"
    inside = {"m": [HI[0], {"role": "assistant", "content": "see <think>a</think>"}]}
    assert len(read(inside).messages) == 2
    closed = {"m": [HI[0], {"role": "assistant", "content": "a\n</think>\n\nb"}]}
    assert said(read(closed))[1:] == [("analysis", "a", "1"), ("final", "b", "2")]
    assert said(read(closed, thinking="none"))[1:] == [("final", "a\n</think>\n\nb", "2")]
    empty = {"m": [HI[0], {"role": "assistant", "content": "</think>b"}]}
    assert said(read(empty))[1:] == [("final", "b", "2")]
    for text in ("a</think>b<think>c</think>d", "a</think>b</think>c"):
        assert said(read({"m": [HI[0], {**HI[1], "content": text}]}))[1:] == [("final", text, "2")]
    keyed = {"m": [HI[0], {**HI[1], "content": "write </think>", "t": "a"}]}
    assert said(read(keyed, keys={"thinking": "t"}))[1][1:] == ("a", "1")
    asks = {"m": [{"role": "user", "content": "a</think>b"}, HI[1]]}
    assert said(read(asks))[0][1] == "a</think>b"


@pytest.mark.parametrize(
    ("tags", "text", "expected"),
    [
        (["<r>", "</r>"], "<r> a </r> b ", [("analysis", "a", "1"), ("final", "b", "2")]),
        (["<r>", "</r>"], "a</r>b", [("analysis", "a", "1"), ("final", "b", "2")]),
        (["<r>", "</r>"], "<think>a</think>b", [("final", "<think>a</think>b", "2")]),
        (
            ["<|t|>", "<|/t|>", "<|s|>", "<|/s|>"],
            "<|t|>\n\na\n\n<|/t|>\n\n<|s|>\n\nb\n\n<|/s|>",
            [("analysis", "a", "1"), ("final", "b", "2")],
        ),
        (
            ["<r>", "</r>", "<s>", "</s>"],
            "<r>a</r>b</s>",
            [("analysis", "a", "1"), ("final", "b</s>", "2")],
        ),
    ],
)
def test_a_recipe_names_the_tags_around_thought_and_answer(tags, text, expected):
    row = {"m": [HI[0], {"role": "assistant", "content": text}]}
    assert said(read(row, thinking=tags))[1:] == expected


def test_tags_that_do_not_close_and_lists_beside_marks_are_refused():
    row = {"m": [HI[0], {"role": "assistant", "content": "<r>a"}]}
    with pytest.raises(Unfit, match="an answer has <r> without </r>"):
        read(row, thinking=["<r>", "</r>"])
    with pytest.raises(Unfit, match="surrogate"):
        _ = read({"m": [HI[0], {**HI[1], "content": "\ud800"}]}).json
    row = {"m": [{**HI[0], "lang": "en", "name": None}, {**HI[1], "lang": "en"}]}
    assert read(row).ignored == ["lang", "lang"]
    with pytest.raises(Unfit, match="which nothing reads: name it in `keys`"):
        read(row, unknown_keys="refuse")
    with pytest.raises(Unfit, match="its m is a list, not a text: leave `marks` out"):
        read({"m": HI}, marks={"user": "Q:", "assistant": "A:"})
    turns = {"user": {"json": "u"}, "assistant": "a"}
    assert said(read({"u": OBJECT, "a": "x"}, turns=turns))[0][1] == '{"city":"Rome","year":1}'


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([HI[0], *HI], "turns"),
        ([HI[1], *HI], "turns"),
        ([*HI, HI[0]], "turns"),
        ([{**HI[0], "content": " "}, HI[1]], "question"),
        ([HI[0], {**HI[1], "content": None}], "answer"),
        ([], "messages"),
        (None, "messages"),
    ],
)
def test_broken_conversations_are_refused_or_left_out(messages, reason):
    with unfit(reason):
        read({"m": messages})
    with unfit(f"drop:{reason}"):
        read({"m": messages}, broken="drop")


@pytest.mark.parametrize(
    ("messages", "reason"),
    [([3], "messages"), (4, "messages"), ([{"role": "x", "content": "a"}], "role")],
)
def test_what_is_no_conversation_stays_refused_where_broken_ones_are_left_out(messages, reason):
    with unfit(reason):
        read({"m": messages}, broken="drop")


def test_weights_and_columns_say_what_is_trained_on():
    two = {"m": [*HI, HI[0], {**HI[1], "content": "<think>a</think>b"}]}
    assert read(two).spans == "02012"
    assert read(two, train="last").spans == "00012"
    assert read(two, train="all").spans == "22212"
    weighted = {"m": [HI[0], {**HI[1], "w": 0}, HI[0], {**HI[1], "w": 1.0}]}
    assert read(weighted, keys={"weight": "w"}).spans == "0002"
    row = {"m": [HI[0], HI[1], HI[0], {**HI[1], "content": "<think>a</think>b"}]}
    for mask in ([0, 0, 0, 1], "[0, 0, 0, 1]", [1, False, 1.0, True]):
        assert read(row | {"w": mask}, weights="w").spans == "00012"
    assert read(row | {"w": [0, 1, 0, 0]}, weights="w").spans == "02000"
    pairs = {"m": [["hi", "hello"], ["hi", "hello"]], "w": [0, 1]}
    assert read(pairs, weights="w").spans == "0002"


def test_systems_and_turns_may_have_parts_columns_and_lists():
    row = {"m": HI, "s": "be kind"}
    assert said(read(row, system="s"))[0] == ("system", "be kind", "0")
    assert said(read(row, system={"constant": "be brief"}))[0][1] == "be brief"
    assert said(read({"m": HI, "s": " "}, system="s")) == PAIR
    with pytest.raises(Unfit, match="has two system messages"):
        read({"m": [{"role": "system", "content": "x"}, *HI], "s": "y"}, system="s")
    row = {"m": HI, "s": {"role": "system", "parts": [{"text": "Be "}, {"text": "kind."}]}}
    assert said(read(row, system="s"))[0] == ("system", "Be kind.", "0")
    assert said(read({**row, "s": {"text": "Be kind."}}, system="s"))[0][1] == "Be kind."
    assert said(read({**row, "s": None}, system="s")) == PAIR
    turns = {"user": "u", "assistant": "a", "system": "s", "developer": {"constant": "do"}}
    row = {"u": "hi", "a": "hello", "s": "be kind"}
    heads = [("system", "be kind", "0"), ("developer", "do", "0")]
    assert said(read(row, turns=turns)) == [*heads, *PAIR]
    assert said(read({**row, "s": " "}, turns={**turns, "developer": "none"})) == PAIR
    row = {"m": {"from": ["human", "gpt"], "value": ["hi", "hello"]}}
    assert said(read(row)) == PAIR
    for held in ({"from": ["human"], "value": ["hi", "hello"]}, {"from": "human"}, {}):
        with pytest.raises(Unfit, match="its m is an object, not a list of messages"):
            read({"m": held})


@pytest.mark.parametrize(
    "row",
    [
        {"m": [HI[0], {**HI[1], "tool_calls": [{}]}]},
        {"m": [HI[0], {"role": "tool", "content": "4"}, HI[1]]},
        {"m": HI, "tools": [{"name": "f"}]},
    ],
)
def test_tools_are_refused_or_left_out(row):
    with unfit("tools", 'set tools = "drop"'):
        read(row)
    with unfit("drop:tools"):
        read(row, tools="drop")


@pytest.mark.parametrize(
    ("messages", "reason", "rule"),
    [
        (None, "messages", "its m is null, not a list of messages"),
        ([], "messages", "an empty list"),
        ("[{'role': 'user'}]", "messages", "a text that is no JSON list"),
        (["hi"], "turns", "its last message is not an assistant's"),
        ([*HI, "hi"], "messages", "a message is a text, not an object"),
        ([{"a": 1}], "messages", "has the keys a: write keys = { role = .., content = .. }"),
        (
            [{"role": "bot", "content": "x"}],
            "role",
            'write roles = { "bot" = .. }, one of system, developer',
        ),
        ([{"role": ["x"], "content": "x"}], "role", "has the role"),
        ([{**HI[0], "content": [{"type": "image"}]}, HI[1]], "messages", "no text, as a picture"),
        ([{**HI[0], "content": {"a": 1}}, HI[1]], "messages", "is an object"),
        ([HI[0], HI[0], HI[1]], "turns", "a user speaks after user: users and assistants must"),
        ([HI[1]], "turns", "an assistant speaks after nothing"),
        (HI[:1], "turns", "its last message is not an assistant's"),
        ([*HI, HI[0]], "turns", "its last message is not an assistant's"),
        ([*HI, {"role": "system", "content": "x"}], "turns", "a system speaks after assistant"),
        ([{**HI[0], "content": " "}, HI[1]], "question", "a question is empty"),
        ([HI[0], {**HI[1], "content": None}], "answer", "an answer is empty"),
        ([HI[0], {**HI[1], "content": "<think>a"}], "thinking", "<think> without </think>"),
        ([HI[0], {**HI[1], "w": 0.5}], "weight", "the weight 0.5: it must be 0 or 1"),
        (
            [HI[0], {**HI[1], "content": "<think>a</think>b", "t": "c"}],
            "thinking",
            "a second one in <think>",
        ),
    ],
)
def test_a_damaged_conversation_is_refused_with_its_rule(messages, reason, rule):
    with unfit(reason, rule):
        read({"m": messages}, keys={"thinking": "t", "weight": "w"})


ROWS = [
    ("q1", None, "prompter", 0),
    ("a1", "q1", "assistant", 1),
    ("a2", "q1", "assistant", 0),
    ("q2", "a2", "prompter", 0),
    ("a3", "q2", "assistant", 0),
    ("q3", "a1", "prompter", 0),
    ("lost", "gone", "assistant", 0),
    ("c1", "c2", "prompter", 0),
    ("c2", "c1", "assistant", 0),
]


def trees(best: str | None, rows: list[tuple[Any, ...]], **more: Any) -> Trees:
    """The trees of messages: id, parent, role and rank."""
    tree = {"id": "i", "parent": "p"} | ({} if best is None else {"best": best})
    raw = {"schema": 1, "kind": "chat", "name": "mine", "tree": tree}
    found = Trees(chat_of_table(raw), **more)
    for number, (name, parent, role, rank) in enumerate(rows, 1):
        row = {"i": name, "p": parent, "role": role, "text": name, "r": rank}
        found.add(row, (0, number))
    return found


def spoken(found: Trees) -> list[tuple[int, str]]:
    """Row of the last message, and the texts."""
    return [
        (place[1], " ".join(item["content"] for item in items))
        for place, items in found.conversations()
    ]


def test_answers_are_paths_and_trees_that_are_too_large_end_the_build():
    assert spoken(trees(None, ROWS)) == [(2, "q1 a1"), (5, "q1 a2 q2 a3")]
    assert spoken(trees("r", ROWS)) == [(5, "q1 a2 q2 a3")]
    worse = [(n, p, role, {"a2": 2}.get(n, rank)) for n, p, role, rank in ROWS]
    assert spoken(trees("r", worse)) == [(2, "q1 a1")]
    unranked = [(n, p, role, None) for n, p, role, _ in ROWS]
    assert spoken(trees("r", unranked)) == [(2, "q1 a1")]
    assert trees(None, ROWS).lost() == [(0, 7), (0, 8), (0, 9)]
    with pytest.raises(GristmillError, match="divide the drop by trees"):
        trees(None, ROWS, most_bytes=2000)
    deep = [(str(at), None if at == 0 else str(at - 1), "prompter", 0) for at in range(1001)]
    with pytest.raises(GristmillError, match="more than 1,000 messages below one another"):
        spoken(trees(None, deep))


@pytest.mark.parametrize(
    ("row", "rule"), [((None, None, "x", 0), "its i is empty"), (ROWS[0], "that of a row before")]
)
def test_a_message_without_an_id_of_its_own_is_refused(row, rule):
    with pytest.raises(Unfit, match=rule):
        trees(None, [ROWS[0], row])


def test_whole_turns_and_turns_before_stand_in_their_places():
    row = {"s": "Be kind.", "h": [["hi", "hello"]], "u": "a", "a": "b"}
    expected = [("system", "Be kind.", "0"), *PAIR, ("user", "a", "0"), ("final", "b", "2")]
    for history in (row["h"], '[["hi", "hello"]]', HI, ["hi", "hello"]):
        turns = {**TURNS, "system": "s"}
        assert said(read({**row, "h": history}, turns=turns)) == expected
    with pytest.raises(Unfit, match="its h is a text that is no JSON list"):
        read({**row, "h": "x"}, turns=TURNS)
    with pytest.raises(Unfit, match="a user speaks after user"):
        read({**row, "h": ["x"]}, turns=TURNS)
    keys = {"user": "q", "assistant": "a", "weight": "w"}
    parts: list[dict[str, Any]] = [{"text": "h"}, {"text": "i"}]
    talk = read({"m": [{"q": parts, "a": "hello", "w": 0}, ["a", "b"]]}, keys=keys)
    assert (said(talk)[0], talk.spans) == (PAIR[0], "0002")
    for turn, rule in (
        ({"q": [*parts, {"image": "x"}], "a": "b"}, "no text, as a picture"),
        ({"q": "a", "a": [{"text": "hm", "thought": True}]}, "has a thought in a part"),
        ({"q": "a", "a": "b", "w": 2}, "has the weight 2: it must be 0 or 1"),
    ):
        with pytest.raises(Unfit, match=rule):
            read({"m": [turn]}, keys=keys)


def test_channels_of_harmony_are_thought_and_answer():
    thought = {"role": "assistant", "channel": "analysis", "content": "hm"}
    final = {"role": "assistant", "channel": "final", "content": "hello"}
    talk = read({"m": [HI[0], thought, final]})
    assert said(talk) == [PAIR[0], ("analysis", "hm", "1"), PAIR[1]]
    assert talk.ignored == []
    parts = [{"type": "reasoning", "text": "h"}, {"type": "text", "text": "m"}]
    assert said(read({"m": [HI[0], {**thought, "content": parts}, final]})) == said(talk)
    assert said(read({"m": [HI[0], {**thought, "content": None}, final]})) == PAIR
    with pytest.raises(Unfit, match="a thought in a key, and a second one"):
        read({"m": [HI[0], {**thought, "t": "hm"}, final]}, keys={"thinking": "t"})
    keyed = {"keys": {"weight": "w"}}
    masked = read({"m": [HI[0], {**thought, "w": 0}, final]}, **keyed)
    assert masked.spans == "002"
    for messages in ([HI[0], thought], [HI[0], thought, *HI], [HI[0], thought, thought, final]):
        with pytest.raises(Unfit, match="a thought is not followed by its answer"):
            read({"m": messages})
    other = {"role": "assistant", "channel": "commentary", "content": "hello"}
    assert read({"m": [HI[0], other]}).ignored == ["channel"]
    said_before = {**other, "content": "I look."}
    whole = read({"m": [HI[0], thought, said_before, {**said_before, "content": "So:"}, final]})
    answer = ("final", "I look.\n\nSo:\n\nhello", "2")
    assert said(whole) == [PAIR[0], ("analysis", "hm", "1"), answer]
    with pytest.raises(Unfit, match="an assistant speaks after assistant"):
        read({"m": [HI[0], thought, said_before, thought, final]})


def test_tools_may_be_parts_and_tags_around_answers_go():
    marks = {"user": "Q:", "assistant": "A:", "tool": "T:"}
    rows: list[tuple[Any, dict[str, Any]]] = [
        ([HI[0], {"role": "assistant", "content": [{"type": "tool_use"}]}], {}),
        ([["user", "hi"], ["tool", "1"], ["assistant", "hello"]], {}),
        ([HI[0], {"type": "function_call", "name": "f"}, HI[1]], {}),
        ("Q: hi A: x T: 1 A: hello", {"marks": marks}),
    ]
    for value, recipe in rows:
        with unfit("tools"):
            read({"m": value}, **recipe)
        with unfit("drop:tools"):
            read({"m": value}, tools="drop", **recipe)
    tags = ["<think>", "</think>", "<answer>", "</answer>"]
    for more, spans in (({"t": "hm"}, "012"), ({}, "02")):
        row = {"m": [HI[0], {**HI[1], "content": " <answer> hello </answer>\n", **more}]}
        talk = read(row, thinking=tags, keys={"thinking": "t"})
        assert (said(talk)[-1], talk.spans) == (PAIR[1], spans)
    kept = {"m": [HI[0], {**HI[1], "content": "see <answer>x</answer>"}]}
    assert said(read(kept, thinking=tags))[-1][1] == "see <answer>x</answer>"


@pytest.mark.parametrize(
    "row",
    [
        {
            "m": [
                {"role": "user", "content": "<|a|>hi "},
                {"role": "assistant", "content": "hello<e>"},
            ]
        },
        {"m": [{"q": "<|a|> hi", "a": [{"type": "text", "text": "hello<e><e>\n"}]}]},
        {"m": [["<|a|>hi", "hello<e>"]]},
        {"m": ["<|a|>hi", "hello<e>"]},
    ],
)
def test_control_alone_stands_around_the_texts_of_a_list(row):
    keys = {"user": "q", "assistant": "a"}
    found = read(row, marks={"control": ["<|a|>", "<e>"]}, keys=keys)
    assert said(found) == said(read({"m": HI}))
    with pytest.raises(Unfit, match="an answer is empty"):
        read({"m": [["hi", "<e>"]]}, marks={"control": ["<e>"]})


def test_empty_texts_and_messages_without_a_role_are_refused_or_left_out():
    marks = {"marks": {"user": "Q:", "assistant": "A:"}}
    for value in ("", None):
        with pytest.raises(Unfit, match="has none of the marks"):
            read({"m": value}, **marks)
        with unfit("drop:messages"):
            read({"m": value}, broken="drop", **marks)
    call = {"role": None, "content": None, "type": "function_call"}
    with pytest.raises(Unfit, match="tools"):
        read({"m": [HI[0], call, HI[1]]})
    with pytest.raises(Unfit, match="a message has no role: write who says it"):
        read({"m": [HI[0], {"role": None, "content": "a"}]})


@pytest.mark.parametrize(
    ("role", "meant"),
    [
        ("asistant", '"assistant" }'),
        ("Assistant", '"assistant" }'),
        ("usr", '"user" }'),
        ("humans", '"user" }'),
        ("gpt4", '"assistant" }'),
        ("system_prompt", '"system" }'),
        ("assistnat", '"assistant" }'),
        ("narrator", ".. }, one of system, developer, user, assistant, tool"),
        ("", ".. }, one of system"),
    ],
)
def test_a_role_that_is_misspelt_gets_the_nearest_one_and_another_none(role, meant):
    with pytest.raises(Unfit) as raised:
        read({"m": [HI[0], {**HI[1], "role": role}]})
    assert f'write roles = {{ "{role}" = {meant}' in raised.value.rule
    if meant.endswith("}"):
        line = tomllib.loads(raised.value.rule.partition("write ")[2])
        assert read({"m": [HI[0], {**HI[1], "role": role}]}, **line) if "assis" in meant else line


@pytest.mark.parametrize(
    ("mask", "rule"),
    [
        ([0], "its w has 1 weights for 2 messages"),
        ([0, 1, 1], "its w has 3 weights for 2 messages"),
        ([0, 2], "its w has the weight 2: it must be 0 or 1"),
        ([0, None], "has the weight None"),
        (["0", "1"], "has the weight 0: it must be 0 or 1"),
        (None, "its w is null, not a list of weights"),
        ("0 1", "its w is a text that is no JSON list"),
        ({"a": 1}, "its w is null, not a list"),
    ],
)
def test_weights_that_do_not_fit_the_messages_are_refused(mask, rule):
    with unfit("weight", rule):
        read({"m": HI, "w": mask}, weights="w")


OBJECT = {"city": "Rome", "year": 1}


@pytest.mark.parametrize(
    ("row", "recipe", "of"),
    [
        ({"u": OBJECT, "a": "x"}, {"turns": {"user": "u", "assistant": "a"}}, "u"),
        ({"u": "x", "a": [OBJECT]}, {"turns": {"user": "{u}", "assistant": "{a}"}}, "a"),
        ({"p": "x", "c": OBJECT}, {"prompt": "p", "completion": "c"}, "assistant"),
        ({"p": "x", "c": {"text": OBJECT}}, {"prompt": "p", "completion": "c"}, "assistant"),
        ({"m": HI, "s": OBJECT}, {"system": "s"}, "system"),
        ({"m": [HI[0], {**HI[1], "t": OBJECT}]}, {"keys": {"thinking": "t"}}, "t"),
    ],
)
def test_an_object_is_the_text_of_no_message_until_the_recipe_says_json(row, recipe, of):
    with pytest.raises(Unfit) as raised:
        read(row, **recipe)
    rule = f"its {of} is an object with the keys city, year, and no text: read its JSON by"
    assert (raised.value.reason, rule in raised.value.rule) == ("value", True)
