"""Conversations that are no list of messages with roles get a recipe that reads them."""

import json
import tomllib
from typing import Any

import pytest

from gristmill.corpora.raw.chat.messages import Messages, chat_of
from gristmill.look.finding import look, write
from gristmill.look.report import lines
from tests.look.test_chats import looked, put

ASKED, SAID = "What is it, and who has it?", "It is a plum, and Mira has it."
READ = [("user", ASKED), ("assistant", SAID)]
HUMAN = f"\n\nHuman: {ASKED}\n\nAssistant:"
FOUND = {"messages": "m"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I think."}]}
PLAIN = {"role": "assistant", "content": SAID}
GAVE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"m": [[ASKED, SAID]], "n": 1}, FOUND),
        ({"messages": [["human", ASKED], ["ai", SAID]]}, {"roles": {"ai": "assistant"}}),
        ({"data": [ASKED, SAID]}, {"messages": "data"}),
        (
            {"conversation": [{"human": ASKED, "assistant": SAID}]},
            {"keys": {"user": "human", "assistant": "assistant"}},
        ),
        (
            {"conversation": [{"system": "", "input": ASKED, "output": SAID}]},
            {"keys": {"system": "system", "user": "input", "assistant": "output"}},
        ),
        ({"text": HUMAN + SAID}, {"messages": "text"}),
        ({"chosen": HUMAN + SAID, "rejected": HUMAN}, {"messages": "chosen"}),
        (
            {"prompt": HUMAN, "chosen": f" {SAID}", "rejected": " No."},
            {"messages": "{prompt}{chosen}"},
        ),
        ({"prompt": HUMAN, "response": SAID}, {"messages": "{prompt}{response}"}),
        (
            {
                "conversations": [{"from": "human", "value": ASKED}],
                "chosen": {"from": "gpt", "value": SAID},
                "rejected": {"from": "gpt", "value": "No."},
            },
            {"prompt": "conversations", "completion": "chosen"},
        ),
        (
            {
                "prompt": [{"role": "user", "content": ASKED}],
                "chosen": [{"role": "assistant", "content": SAID}],
                "rejected": [{"role": "assistant", "content": "No."}],
            },
            {"prompt": "prompt", "completion": "chosen"},
        ),
        (
            {
                "input": {"messages": [{"role": "user", "content": ASKED}]},
                "preferred_output": [{"role": "assistant", "content": SAID}],
                "non_preferred_output": [{"role": "assistant", "content": "No."}],
            },
            {"prompt": "input", "completion": "preferred_output"},
        ),
        (
            {"dialog": [{"speaker": "user", "text": ASKED}, {"speaker": "bot", "text": SAID}]},
            {"keys": {"role": "speaker", "content": "text"}, "roles": {"bot": "assistant"}},
        ),
        (
            {
                "contents": [
                    {"role": "user", "parts": [{"text": ASKED}]},
                    {"role": "model", "parts": [{"text": SAID}]},
                ]
            },
            {"messages": "contents", "roles": {"model": "assistant"}},
        ),
        (
            {"instruction": ASKED, "input": "", "output": SAID, "history": [[ASKED, SAID]]},
            {"turns": {"history": "history", "user": "instruction", "assistant": "output"}},
        ),
        (
            {
                "chat": {
                    "turn_1": {
                        "Human": f"<|Human|>: {ASKED}<eoh>\n",
                        "MOSS": f"<|MOSS|>: {SAID}<eom>",
                    }
                }
            },
            {
                "messages": "chat",
                "keys": {"user": "Human", "assistant": "MOSS"},
                "marks": {"control": ["<|Human|>:", "<eoh>", "<|MOSS|>:", "<eom>"]},
            },
        ),
        ({"input": [{"role": "user", "content": ASKED}, THOUGHT, GAVE]}, {"messages": "input"}),
        (
            {"input": [{"role": "user", "content": ASKED}], "output": [THOUGHT, GAVE]},
            {"prompt": "input", "completion": "output"},
        ),
        (
            {"messages": [json.dumps({"role": "user", "content": ASKED}), json.dumps(PLAIN)]},
            {"messages": "messages"},
        ),
        ({"input": ASKED, "output": [THOUGHT, GAVE]}, {"prompt": "input", "completion": "output"}),
    ],
)
def test_every_form_of_a_conversation_gets_a_recipe_that_reads_it(tmp_path, row, expected):
    drop = tmp_path / "mine"
    found = looked(drop, [row] * 8)
    assert (found.proposal.inbox, found.proposal.good) == ("chat", 8), found.proposal.refused
    table = tomllib.loads(found.proposal.text)
    assert {key: table.get(key) for key in expected} == expected
    write(found)
    talk = Messages(chat_of(drop)).read(row)
    said = [(each.role, each.content) for each in talk.messages if each.channel != "analysis"]
    assert said[-2:] == READ


@pytest.mark.parametrize(
    "row",
    [
        {"context": ASKED, "history": [1, 2], "question": ASKED, "answer": SAID},
        {"names": ["Mira", "Ada"], "question": ASKED, "answer": SAID},
        {"dialogue": f"User: {ASKED}\nAssistant: {SAID}", "summary": "They speak of a plum."},
        {"instruction": ASKED, "output": SAID, "history": []},
    ],
)
def test_other_rows_stay_questions_with_answers(tmp_path, row):
    assert looked(tmp_path / "mine", [row] * 8).proposal.inbox == "reasoning"


def test_an_instruction_has_its_input_in_a_question_behind_turns(tmp_path):
    row = {"instruction": ASKED, "input": "A hint.", "output": SAID, "system": "Be kind."}
    found = looked(tmp_path / "mine", [{**row, "history": [["a", "b"]], "k": n} for n in range(8)])
    table = tomllib.loads(found.proposal.text)
    assert table["turns"]["user"] == "{instruction}\n\n{input}"
    assert table["turns"]["system"] == "system"
    assert "which nothing reads" not in "\n".join(lines(found))


def test_a_system_prompt_is_read_without_its_mark_or_out_of_its_parts(tmp_path):
    chat = f"USER: {ASKED}\n\n\nASSISTANT: {SAID}"
    found = looked(tmp_path / "mine", [{"system": "SYSTEM: Be kind.", "chat": chat}] * 8)
    table = tomllib.loads(found.proposal.text)
    assert table["system"] == {"column": "system", "after": "SYSTEM:"}
    write(found)
    talk = Messages(chat_of(tmp_path / "mine")).read({"system": "SYSTEM: Be kind.", "chat": chat})
    assert talk.messages[0].content == "Be kind."
    parts = [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"text": SAID}]},
    ]
    row = {"systemInstruction": {"parts": [{"text": "Be kind."}]}, "contents": parts}
    found = looked(tmp_path / "parts", [row] * 8)
    assert tomllib.loads(found.proposal.text)["system"] == "systemInstruction"
    assert found.proposal.good == 8


def test_text_of_turns_that_a_function_answers_leaves_tools_out(tmp_path):
    chat = f"USER: {ASKED}\n\n\nASSISTANT: {SAID}\n\n\n"
    call = f"{chat}FUNCTION RESPONSE: 1\n\n\nASSISTANT: {SAID}"
    found = looked(tmp_path / "mine", [{"chat": call}] * 2 + [{"chat": chat}] * 6)
    table = tomllib.loads(found.proposal.text)
    assert table["tools"] == "drop"
    assert (found.proposal.good, found.proposal.left_out.total()) == (6, 2)


def test_calls_without_a_role_leave_their_conversations_out(tmp_path):
    asked, call = {"role": "user", "content": ASKED}, {"type": "function_call", "name": "f"}
    rows = [{"input": [asked, *([call] if n < 2 else []), GAVE], "k": n} for n in range(8)]
    found = looked(tmp_path / "mine", rows)
    assert tomllib.loads(found.proposal.text)["tools"] == "drop"
    assert (found.proposal.good, found.proposal.left_out.total()) == (6, 2)


def test_a_tree_of_nodes_gets_a_recipe_that_reads_its_branch(tmp_path):
    texts = [("user", ASKED), ("assistant", "No."), ("assistant", SAID)]
    nodes: dict[str, Any] = {"r": {"parent": None, "message": None}}
    for number, (role, text) in enumerate(texts):
        parent = "0" if number == 2 else str(number - 1) if number else "r"
        content = {"content_type": "text", "parts": [text]}
        nodes[str(number)] = {
            "parent": parent,
            "message": {"author": {"role": role}, "content": content},
        }
    # More nodes than columns are looked at.
    nodes |= {f"x{number}": {"parent": "r", "message": None} for number in range(600)}
    row = {"title": "t", "mapping": nodes, "current_node": "2", "moderation_results": []}
    found = looked(tmp_path / "mine", [row, row])
    table = tomllib.loads(found.proposal.text)
    assert (table["messages"], table["branch"]) == ("mapping", "current_node")
    assert len(found.columns.by_name) == 4
    write(found)
    talk = Messages(chat_of(tmp_path / "mine")).read(row)
    assert [(each.role, each.content) for each in talk.messages] == READ


def test_a_token_that_ends_answers_stands_around_them(tmp_path):
    said = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": f"{SAID}</s>"}]
    put(tmp_path / "mine", [{"messages": said}] * 8)
    assert tomllib.loads(look(tmp_path / "mine").proposal.text)["marks"] == {"control": ["</s>"]}


def test_texts_in_turn_without_a_last_answer_are_left_out(tmp_path):
    rows = [{"dialog": [ASKED, SAID, ASKED][: 2 + n % 2], "k": n} for n in range(8)]
    found = looked(tmp_path / "mine", rows)
    assert tomllib.loads(found.proposal.text)["broken"] == "drop"
    assert (found.proposal.good, found.proposal.left_out.total()) == (4, 4)
    put(tmp_path / "odd", [{"dialog": [ASKED, SAID, ASKED], "k": n} for n in range(8)])
    assert look(tmp_path / "odd").proposal.text == ""
    few = [{"dialog": [ASKED, SAID, ASKED][: 2 if n < 3 else 3], "k": n} for n in range(8)]
    assert looked(tmp_path / "few", few).proposal.text == ""


def test_marks_that_are_not_known_are_noted_in_plain_text(tmp_path):
    text = f"<|turn|>one {ASKED}<|turn|>two {SAID}"
    put(tmp_path / "mine", [{"text": text}] * 8)
    note = "text: texts with <|turn|>, which stays text: if they are conversations, a recipe with"
    assert note in "\n".join(look(tmp_path / "mine").notes)
    lines_of = f"Benutzer: {ASKED}\nAssistent: {SAID}"
    put(tmp_path / "words", [{"text": lines_of}] * 8)
    note = "text: texts with Assistent: and Benutzer:, which stays text"
    said = "\n".join(look(tmp_path / "words").notes)
    assert (
        note in said or note.replace("Assistent: and Benutzer", "Benutzer: and Assistent") in said
    )
    put(tmp_path / "one", [{"text": f"Titel: {ASKED}\n{SAID}"}] * 8)
    assert "stays text" not in "\n".join(look(tmp_path / "one").notes)
    rows = [{"text": ASKED + SAID if n else text, "k": n} for n in range(11)]
    assert "stays text" not in "\n".join(looked(tmp_path / "other", rows).notes)


def test_guesses_that_a_person_should_look_at_are_said_in_the_recipe(tmp_path):
    put(tmp_path / "texts", [{"data": [ASKED, SAID], "k": n} for n in range(8)])
    assert "# The texts of data take turns: the first one is a user's." in (
        look(tmp_path / "texts").proposal.text
    )
    asked = f"USER: {ASKED}\nASSISTANT: {SAID}</s>"
    put(tmp_path / "plain", [{"text": asked}] * 8)
    assert "`control` has texts" not in look(tmp_path / "plain").proposal.text
    put(tmp_path / "more", [{"text": f"Be kind.\n{asked}"}] * 8)
    assert "# `control` has texts before the first mark" in look(tmp_path / "more").proposal.text
