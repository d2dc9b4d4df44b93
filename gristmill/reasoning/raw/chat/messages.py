"""A row to its messages: roles, thoughts, what is trained on, and what refuses a conversation.

See also `recipe.py`: what a person says of the rows; `trees.py`: rows that are messages of trees.
Source: `docs/formats/chat.md#messages`, `docs/formats/chat.md#refusals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput
from gristmill.reasoning.raw.chat.recipe import ALIASES, TURNS, Chat
from gristmill.reasoning.raw.flatten import CURES, Unfit, canonical, flattened, text
from gristmill.reasoning.raw.forms.rules import Rules
from gristmill.reasoning.raw.forms.templates import Get, Row
from gristmill.reasoning.raw.forms.values import Names, column, read_of
from gristmill.untrusted.json_text import load_json

PROMPT, REASONING, FINAL = "0", "1", "2"
"""Span codes: not trained on, thought, answer."""
THINK: Final = ("<think>", "</think>")
"""The tags of thoughts that recipes know without a key."""
_GUESSED: Final = (("role", "content"), ("from", "value"))
_TOOLS: Final = ("tool_calls", "function_call", "tools", "functions")
"""Keys of a message, or columns of a row, by which tools are used."""
_BROKEN: Final = ("turns", "question", "answer")
_CURE: Final = 'broken = "drop" in corpus.toml leaves such conversations out'
CHAT_CURES: Final[Mapping[str, str]] = {**CURES, **dict.fromkeys(_BROKEN, _CURE)}
"""What helps against a reason of a refused conversation, where its rule does not say it."""
_SHOWN: Final = 40
_NOWHERE: Final = Path("messages")
_CHANNELS: Final[Mapping[str, str]] = {"analysis": REASONING, "final": FINAL}


class Message(NamedTuple):
    """One message. role: user, assistant and so on. span: its code. channel: of an assistant."""

    role: str
    content: str
    span: str
    channel: str | None = None


class Talk(NamedTuple):
    """A conversation. ignored: keys of its messages that nothing reads, once a message."""

    messages: Sequence[Message]
    ignored: Sequence[str]

    @property
    def json(self) -> str:
        """As the column `messages_json` has it. Raises Unfit for a lone surrogate."""
        items = [
            {"role": each.role, "content": each.content}
            if each.channel is None
            else {"role": each.role, "content": each.content, "channel": each.channel}
            for each in self.messages
        ]
        try:
            return orjson.dumps({"messages": items}).decode()
        except orjson.JSONEncodeError as error:
            raise Unfit("surrogate", "a text holds a surrogate without its pair") from error

    @property
    def spans(self) -> str:
        """A code for each message."""
        return "".join([each.span for each in self.messages])


class Messages:
    """Reads the rows of a recipe.

    columns: that it reads of a row.

    Raises ValueError, naming the key, for a value that is wrong.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat, self._names = chat, Names()
        self._roles = {**ALIASES, **chat.roles}
        tags: Mapping[str, Sequence[str]] = {"tags": THINK, "none": ()}
        self._tags = tags.get(str(chat.thinking), chat.thinking)
        # SYNTH takes a text of white space alone for a text.
        self._bare = _as_it_is if chat.is_synth else str.strip
        self._items = self._source()
        self._system = None if chat.system is None else self._value("system", chat.system)
        self._tool_column = "" if chat.is_synth else "tools"
        own = {self._tool_column, *chat.kept}
        self.columns = self._names.columns | own | Rules(chat.corpus, None).columns
        if chat.tree is not None:
            self.columns |= {*chat.tree.values(), *chat.keys.values(), "role", "text"}

    def read(self, row: Row) -> Talk:
        """The conversation of a row. Raises Unfit for one that is refused or left out."""
        if _is_filled(row.get(self._tool_column)):
            raise self._tools("tools")
        return self.talk(self._items(row), None if self._system is None else self._system(row))

    def talk(self, items: Iterable[Any], system: str | None = None) -> Talk:
        """The conversation of messages as a row has them. system: of the row; default none."""
        try:
            return self._talk(items, system)
        except Unfit as unfit:
            if self._chat.broken == "drop" and unfit.reason in _BROKEN:
                raise Unfit(f"drop:{unfit.reason}", unfit.rule) from unfit
            raise

    def _talk(self, items: Iterable[Any], system: str | None) -> Talk:
        messages: list[Message] = []
        ignored: list[str] = []
        if system is not None and system.strip():
            messages.append(Message("system", system, PROMPT))
        for item in items:
            messages += self._message(item, ignored)
        _check_turns(messages, self._bare)
        return Talk(self._trained(messages), ignored)

    def _value(self, key: str, value: Any) -> Callable[[Row], str]:
        """What reads a text of a row. A text with a brace is a template."""
        if isinstance(value, str) and "{" in value:
            value = {"template": value}
        try:
            get = read_of(value, self._names)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
        read = _exact if self._chat.is_synth else text
        return lambda row: read(get(row))

    def _source(self) -> Callable[[Row], Iterable[Any]]:
        """What reads the messages of a row, not yet checked."""
        chat = self._chat
        if chat.tree is not None:
            return lambda row: ()
        if chat.messages is not None:
            get = column(chat.messages, self._names)
            return lambda row: self._listed(get(row))
        if chat.turns:
            texts = {
                name: self._value(f"turns.{name}", chat.turns[name])
                for name in TURNS
                if name in chat.turns
            }
            needed = _needed(chat) if chat.is_synth else {}

            def turn(row: Row) -> Iterator[_Own]:
                found = {name: get(row) for name, get in texts.items()}
                for name, column_name in needed.items():
                    if not found[name]:
                        rule = f"its {column_name} is null or empty"
                        raise Unfit(f"keep:{column_name}", rule)
                return _turn(found)

            return turn
        gets = [
            self._either(key, value)
            for key, value in (("prompt", chat.prompt), ("completion", chat.completion))
        ]

        def both(row: Row) -> Iterator[Any]:
            for get, role in zip(gets, ("user", "assistant"), strict=True):
                value = get(row)
                is_list = isinstance(value, list)
                yield from value if is_list else [_Own(role, text(value))]

        return both

    def _listed(self, value: Any) -> list[Any]:
        """The list of messages of the column of a row."""
        if value in (None, "", []) and self._chat.broken == "drop":
            raise Unfit("drop:messages", f"its {self._chat.messages} is empty")
        return _list(value, self._chat.messages or "")

    def _either(self, key: str, value: Any) -> Get:
        """What reads a text or a list of messages."""
        if isinstance(value, str) and "{" not in value:
            return column(value, self._names)
        return self._value(key, value)

    def _message(self, item: Any, ignored: list[str]) -> Iterator[Message]:
        if isinstance(item, _Own):
            yield from self._said(item.role, item.content, item.thought, 1)
            return
        if not isinstance(item, Mapping):
            raise Unfit("messages", f"a message is {_kind(item)}, not an object with role and text")
        role_key, text_key = self._keys(item)
        keys = self._chat.keys
        used = {role_key, text_key, *keys.values()}
        name = item.get(role_key)
        role = self._roles.get(name) if isinstance(name, str) else None
        if role is None:
            said = str(name)[:_SHOWN]
            rule = f'a message has the role {said!r}: write roles = {{ "{said}" = "user" }}'
            raise Unfit("role", f"{rule}, or what it is instead")
        if role == "tool":
            raise self._tools(f"a message of {name}")
        for key, value in item.items():
            if key not in used and value not in (None, "", [], {}, False):
                if key in _TOOLS:
                    if _is_filled(value):
                        raise self._tools(key)
                    continue
                if self._chat.unknown_keys == "refuse":
                    raise Unfit(
                        "messages",
                        f"a message has the key {key[:_SHOWN]!r}, which nothing reads: name it in "
                        '`keys`, or set unknown_keys = "count"',
                    )
                ignored.append(key[:_SHOWN])
        thought = text(item.get(keys["thinking"])) if "thinking" in keys else ""
        weight = _weight(item.get(keys["weight"])) if "weight" in keys else 1
        yield from self._said(role, _content(item.get(text_key)), thought, weight)

    def _keys(self, item: Mapping[str, Any]) -> tuple[str, str]:
        """The keys of role and text: those of the recipe, else the guessed pair that is there."""
        keys = self._chat.keys
        for role, content in _GUESSED:
            found = keys.get("role", role), keys.get("content", content)
            if found[0] in item and found[1] in item:
                return found
        names = ", ".join([str(key)[:_SHOWN] for key in item][:8])
        rule = f"a message has the keys {names}: write keys = {{ role = .., content = .. }}"
        raise Unfit("messages", rule)

    def _said(self, role: str, content: str, thought: str, weight: int) -> Iterator[Message]:
        """The message, and the thought before it as a message of its own."""
        if role != "assistant":
            yield Message(role, content, PROMPT)
            return
        thought, content = _divided(content, thought, self._tags)
        if not self._bare(content):
            raise Unfit("answer", "an answer is empty")
        if self._bare(thought):
            yield Message(role, thought, REASONING if weight else PROMPT, "analysis")
        yield Message(role, content, FINAL if weight else PROMPT, "final")

    def _trained(self, messages: list[Message]) -> Sequence[Message]:
        train = self._chat.train
        if train == "assistant":
            return messages
        if train == "all":
            return [each._replace(span=_CHANNELS[each.channel or "final"]) for each in messages]
        last = max(at for at, each in enumerate(messages) if each.role == "user")
        return [each._replace(span=PROMPT) for each in messages[:last]] + messages[last:]

    def _tools(self, what: str) -> Unfit:
        rule = f"uses tools ({what}), which are not read"
        if self._chat.tools == "drop":
            return Unfit("drop:tools", rule)
        return Unfit("tools", f'{rule}: set tools = "drop" to leave such conversations out')


class _Own(NamedTuple):
    """A message that the recipe makes of columns."""

    role: str
    content: str
    thought: str = ""


def _turn(texts: Mapping[str, str]) -> Iterator[_Own]:
    for role in ("system", "developer"):
        if texts.get(role, "").strip():
            yield _Own(role, texts[role])
    yield _Own("user", texts["user"])
    yield _Own("assistant", texts["assistant"], texts.get("thinking", ""))


def _needed(chat: Chat) -> Mapping[str, str]:
    """The turns without which SYNTH leaves a row out, each with what its rule says of it."""
    values = {name: chat.turns.get(name) for name in ("user", "thinking", "assistant")}
    return {
        name: value if isinstance(value, str) else name
        for name, value in values.items()
        if value is not None
    }


def _divided(content: str, thought: str, tags: Sequence[str]) -> tuple[str, str]:
    """The thought and the rest of an answer. thought: of a key; tags: of `thinking`, or none."""
    if not tags:
        return thought, content
    (opens, closes), around = tags[:2], tags[2:]
    begins = content.lstrip().startswith(opens)
    # A template that writes the first tag itself leaves answers with the second alone.
    is_lone = content.count(closes) == 1 and opens not in content and not thought
    if not (begins or is_lone):
        return thought, content
    if thought:
        raise Unfit("thinking", f"has a thought in a key, and a second one in {opens}")
    before, closed, after = content.lstrip().removeprefix(opens).partition(closes)
    if not closed:
        raise Unfit("thinking", f"an answer has {opens} without {closes}")
    after = after.strip()
    if around and after.startswith(around[0]):
        after = after.removeprefix(around[0]).removesuffix(around[1]).strip()
    return before.strip(), after


def _as_it_is(text: str) -> str:
    return text


def _exact(value: Any) -> str:
    """A JSON value as a text; one that is a text stays as it is."""
    return value if isinstance(value, str) else text(value)


def _is_filled(value: Any) -> bool:
    """Whether a value says something: an empty list or object may be written as a text."""
    return bool(value.strip(" []{}") not in ("", "null") if isinstance(value, str) else value)


def _list(value: Any, name: str) -> list[Any]:
    """The list of messages of a column. Raises Unfit for a value that holds none."""
    try:
        value = message_list(value)
    except BadInput as error:
        raise Unfit("messages", f"its {name} is a text that is no JSON list") from error
    if not isinstance(value, list) or not value:
        what = "an empty list" if value == [] else _kind(value)
        rule = f"its {name} is {what}, not a list of messages"
        raise Unfit("messages", rule if value else f"{rule}: {_CURE}")
    return value


def message_list(value: Any) -> Any:
    """The list that a value is, in JSON or below `messages`, or of an object with a list a key.

    value: of a column. Returns any other value as it is, None for another object. Raises BadInput
    for a text that is no JSON.
    """
    if isinstance(value, str):
        value = load_json(value.encode("utf-8", "surrogatepass"), _NOWHERE)
    if not isinstance(value, Mapping):
        return value
    held = [*value.values()]
    if "messages" in value or not all(isinstance(each, list) for each in held):
        return value.get("messages")
    if len({len(each) for each in held}) != 1:
        return None
    return [dict(zip(value, each, strict=True)) for each in zip(*held, strict=True)]


def _content(value: Any) -> str:
    """The text of a message, which may be in parts. Raises Unfit for a part that is no text."""
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, list) and value:
        found = [part.get("text") if isinstance(part, Mapping) else part for part in value]
        parts = [part for part in found if isinstance(part, str)]
        if len(parts) == len(found):
            return canonical("".join(parts))
        raise Unfit("messages", "a message has a part that is no text, as a picture")
    if isinstance(value, Mapping):
        raise Unfit("messages", "the text of a message is an object")
    return flattened(value) or ""


def _weight(value: Any) -> int:
    if value is None:
        return 1
    if value in (0, 1):
        return int(value)
    raise Unfit("weight", f"a message has the weight {str(value)[:_SHOWN]}: it must be 0 or 1")


def _check_turns(messages: Sequence[Message], bare: Callable[[str], str]) -> None:
    """Raise Unfit unless users and assistants take turns, and an assistant is the last.

    bare: gives of a question what must not be empty.
    """
    heads = [each.role for each in messages if each.channel != "analysis"]
    while heads and heads[0] in ("system", "developer"):
        if heads.count(heads[0]) > 1:
            raise Unfit("turns", f"has two {heads[0]} messages")
        heads.pop(0)
    for number, role in enumerate(heads):
        wanted = ("user", "assistant")[number % 2]
        if role != wanted:
            before = heads[number - 1] if number else "nothing"
            article = "an" if role == "assistant" else "a"
            rule = f"{article} {role} speaks after {before}: users and assistants must take turns"
            raise Unfit("turns", rule)
    if len(heads) < 2 or len(heads) % 2:
        raise Unfit("turns", "its last message is not an assistant's")
    if any(each.role == "user" and not bare(each.content) for each in messages):
        raise Unfit("question", "a question is empty")


def _kind(value: Any) -> str:
    names = {type(None): "null", str: "a text", list: "a list", dict: "an object", bool: "a bool"}
    return names.get(type(value), "a number")
