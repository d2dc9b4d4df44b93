"""Conversations that are no list of messages with roles: pairs, turns, texts, one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL
from gristmill.look.columns import (
    CHOSEN,
    LIST,
    OBJECT,
    OBJECTS,
    SPEAKERS,
    TEXT,
    TEXTS,
    Column,
    talk_of,
    value_at,
)
from gristmill.look.proposal import Part, texts_of
from gristmill.look.roles import ASKED, INSTRUCT, PLAIN, PREFERENCE, QA, UNKNOWN, words
from gristmill.look.tags import ends_of
from gristmill.look.transcripts import marks_of

_TALKS: Final = {
    *("conversation", "dialogue", "dialog", "chat", "message", "turn", "utterance", "data"),
}
_HISTORIES: Final = ("history", "chat_history", "conversation_history")
_TURNS: Final = (
    *(("human", "assistant"), ("user", "assistant"), ("human", "gpt"), ("human", "bot")),
    *(("user", "bot"), ("user", "model"), ("prompt", "response"), ("instruction", "output")),
    *(
        ("input", "output"),
        ("question", "answer"),
        ("query", "response"),
        ("q", "a"),
        ("human", "moss"),
    ),
)
"""Keys of questions and answers in objects that are whole turns."""


def other_talk(part: Part) -> dict[str, Any] | None:
    """What a recipe says of rows that are conversations in another form; None for other rows."""
    guess, columns = part.guess, part.columns.by_name
    if guess.form in (QA, INSTRUCT) and guess.question and guess.answer:
        before = next((n for n in _HISTORIES if n in columns and _is_pairs(part, n)), None)
        if before is None or columns[guess.answer].kind != TEXT:
            return _continued(part)
        both = f"{{{guess.question}}}\n\n{{{guess.context}}}"
        asked = both if guess.context else guess.question
        turns = {"history": before, "user": asked, "assistant": guess.answer}
        system = part.columns.first(("system", "system_prompt"))
        return {"turns": {**({"system": system} if system else {}), **turns}}
    if guess.form == PREFERENCE:
        return _continued(part)
    if guess.form not in (PLAIN, UNKNOWN, ASKED):
        return None
    for name, column in columns.items():
        if found := _listed(part, name, column):
            return found
    for name, column in columns.items():
        if column.kind == TEXT and (found := _marked(name, texts_of(part, name))):
            return found
    return None


def _listed(part: Part, name: str, column: Column) -> dict[str, Any] | None:
    """What a recipe says of a column of lists that are no messages with roles."""
    if column.kind == LIST and _is_pairs(part, name):
        talks = (talk_of(value_at(row, name)) or () for row in part.sample)
        firsts = {str(item[0]) for talk in talks for item in talk}
        said = {each: SPEAKERS[each.lower()] for each in sorted(firsts) if each.lower() in SPEAKERS}
        roles = {each: role for each, role in said.items() if each not in ALIASES}
        return {"messages": name, **({"roles": roles} if roles else {})}
    is_named = bool(_TALKS.intersection(words(name)[-1:]))
    values = (talk_of(value_at(row, name)) for row in part.sample)
    found = [value for value in values if isinstance(value, list)]
    if not is_named or not found:
        return None
    if column.kind == TEXTS:
        # Those whose last question has no answer break turns, and are left out.
        even = sum(len(value) > 1 and len(value) % 2 == 0 for value in found)
        return {"messages": name} if 2 * even >= len(found) else None
    if column.kind in (OBJECTS, OBJECT):
        return _whole_turns(name, [item for value in found for item in value])
    return None


def _whole_turns(name: str, items: Sequence[Any]) -> dict[str, Any] | None:
    """What a recipe says of objects that are a question and its answer; None for others."""
    shared = set[str].intersection(*({*item} for item in items)) if items else set()
    lower = {key.lower(): key for key in sorted(shared)}
    for user, assistant in _TURNS:
        if {user, assistant} <= {*lower}:
            keys = {"user": lower[user], "assistant": lower[assistant]}
            has_system = any("system" in item for item in items)
            said = [str(item[key]) for item in items for key in keys.values()]
            of_speakers = (ends_of(said[at::2]) for at in range(2))
            control = list(dict.fromkeys(each for ends in of_speakers for each in ends))
            return {
                "messages": name,
                "keys": {**({"system": "system"} if has_system else {}), **keys},
                **({"marks": {CONTROL: control}} if control else {}),
            }
    return None


def _is_pairs(part: Part, name: str) -> bool:
    """Whether the lists of a column hold pairs of texts."""
    values = [value for row in part.sample if (value := talk_of(value_at(row, name)))]
    return bool(values) and all(
        isinstance(value, list) and all(_is_pair(item) for item in value) for value in values
    )


def _is_pair(item: object) -> bool:
    is_two = isinstance(item, list) and len(item) == 2
    return is_two and all(isinstance(each, str) for each in item)  # type: ignore[attr-defined]


def _continued(part: Part) -> dict[str, Any] | None:
    """What a recipe says of a text of turns, which ends where that of an answer begins."""
    columns, question = part.columns.by_name, part.guess.question
    chosen = part.columns.first(CHOSEN)
    answer = chosen or part.guess.answer
    if answer is None or columns[answer].kind != TEXT:
        return None
    if {*"{}"}.intersection(answer + (question or "")):
        return None
    if question is None or marks_of(texts_of(part, question), is_open=True) is None:
        # The answer of a preference may repeat the question.
        return _marked(answer, texts_of(part, answer)) if chosen or question is None else None
    pairs = ((value_at(row, question), value_at(row, answer)) for row in part.sample)
    whole = [asked + said for asked, said in pairs if type(asked) is type(said) is str]
    return _marked(f"{{{question}}}{{{answer}}}", whole)


def _marked(messages: str, texts: Sequence[str]) -> dict[str, Any] | None:
    """What a recipe says of a column, or of a template, whose texts have marks."""
    marks = marks_of(texts)
    return {"messages": messages, "marks": marks} if marks else None
