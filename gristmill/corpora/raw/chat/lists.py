"""Lists of messages: what a message holds, branches of a tree of nodes, and trees of rows.

Source: `docs/formats/chat.md#messages`, `docs/formats/chat.md#branches`,
`docs/formats/chat.md#lists-of-messages`, `docs/formats/chat.md#trees`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.raw.chat.recipe import ALIASES, TURNS, Chat
from gristmill.corpora.raw.rules import MOST_BYTES, Place
from gristmill.corpora.raw.texts import Unfit, canonical, flattened
from gristmill.corpora.raw.texts import text as as_text
from gristmill.corpora.raw.transforms import Row
from gristmill.untrusted.json_text import load_json

_CALLS: Final = (
    *("functionCall", "functionResponse", "function_call", "function_response"),
    *("executableCode", "codeExecutionResult", "toolUse", "toolResult"),
)
"""Keys of a part that is a call of a tool, or what it gave."""
_CALL_WORDS: Final = ("tool", "function", "call")
_THOUGHT_WORDS: Final = ("thinking", "reasoning", "thought")
_OTHER_WORDS: Final = ("image", "audio", "video", "file")
"""Words in the type of a part, by which it is a call, a thought, or no text at all."""
_OTHERS: Final = (
    *("image", "image_url", "audio", "input_audio", "video", "video_url", "file"),
    *("inlineData", "inline_data", "fileData", "file_data"),
)
"""Keys of a part that is a picture, sound or file, which may have a text, too."""
_TEXTS: Final = ("text", "thinking", "reasoning", "thought", "refusal")


class Content(NamedTuple):
    """What a message says. thought: of its parts that are thoughts, joined; empty for none."""

    text: str
    thought: str = ""


def content_of(value: Any, tools: Callable[[str], Unfit]) -> Content:
    """What a message says: a text, a part, a list of parts, or an object with `parts`.

    Raises Unfit for a part that is no text, and for an object without parts.
    """
    if isinstance(value, str):
        return Content(canonical(value))
    if isinstance(value, Mapping):
        is_part = any(isinstance(value.get(key), str) for key in _TEXTS)
        if not is_part and not isinstance(value.get("parts"), list):
            raise Unfit("messages", "the text of a message is an object")
        value = value["parts"] if isinstance(value.get("parts"), list) else [value]
    if not isinstance(value, list) or not value:
        return Content(flattened(value) or "")
    texts: list[str] = []
    thoughts: list[str] = []
    for part in value:
        if call := call_of(part):
            raise tools(call)
        said, is_thought = _part(part)
        (thoughts if is_thought else texts).append(said)
    return Content(canonical("".join(texts)), canonical("".join(thoughts)))


def texts_of(value: Any) -> str:
    """The texts of a thought's parts, a blank line between them; empty for none.

    value: a text or a list of texts and of objects with a text. Raises Unfit for another part.
    """
    parts = value if isinstance(value, list) else [value]
    texts = (_part(_plain(each))[0] for each in parts if each is not None)
    return canonical("\n\n".join(text for each in texts if (text := each.strip())))


def _plain(part: Any) -> Any:
    """A part of a thought; the text of one of ChatGPT is below `content`."""
    said = part.get("content") if isinstance(part, Mapping) else None
    return said if isinstance(said, str) else part


def call_of(part: Any) -> str:
    """By what a part, or a message without a role, calls a tool or says what one gave; or empty."""
    if not isinstance(part, Mapping):
        return ""
    said = part.get("type")
    if isinstance(said, str) and any(word in said.lower() for word in _CALL_WORDS):
        return said
    return _filled(part, _CALLS)


def _part(part: Any) -> tuple[str, bool]:
    """The text of a part, and whether it is a thought. Raises Unfit for a part that is no text."""
    if isinstance(part, str):
        return part, False
    if isinstance(part, Mapping):
        said = part.get("type")
        kind = said.lower() if isinstance(said, str) else ""
        texts = [part[key] for key in _TEXTS if isinstance(part.get(key), str | list)]
        is_other = _filled(part, _OTHERS) or any(word in kind for word in _OTHER_WORDS)
        if texts and not is_other:
            found, *more = [each for each in texts if each] or [""]
            if more:
                raise Unfit("messages", "a part of a message has two texts")
            if isinstance(found, list):
                found = "".join([_part(each)[0] for each in found])
            is_thought = part.get("thought") is True
            return found, is_thought or any(word in kind for word in _THOUGHT_WORDS)
    raise Unfit("messages", "a message has a part that is no text, as a picture")


def _filled(part: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of keys that says something, or an empty text."""
    return next((key for key in keys if part.get(key) not in (None, "", [], {})), "")


def divided(content: str, thought: str, tags: Sequence[str]) -> tuple[str, str]:
    """The thought and the rest of an answer. thought: of a key; tags: of `thinking`, or none."""
    if not tags:
        return thought, content
    (opens, closes), around = tags[:2], tags[2:]
    begins = content.lstrip().startswith(opens)
    # A template that writes the first tag itself leaves answers with the second alone.
    is_lone = content.count(closes) == 1 and opens not in content and not thought
    if not (begins or is_lone):
        return thought, _without(content, around)
    if thought:
        raise Unfit("thinking", f"has a thought in a key, and a second one in {opens}")
    before, closed, after = content.lstrip().removeprefix(opens).partition(closes)
    if not closed:
        raise Unfit("thinking", f"an answer has {opens} without {closes}")
    return before.strip(), _without(after.strip(), around)


def _without(content: str, around: Sequence[str]) -> str:
    """An answer without the tags around it. around: two, or none."""
    bare = content.strip()
    if not around or not bare.startswith(around[0]):
        return content
    return bare.removeprefix(around[0]).removesuffix(around[1]).strip()


_SHOWN: Final = 40
_ALL: Final = "all"
"""Who an answer is for; one for another recipient calls a tool."""
_THOUGHTS, _CODE = "thoughts", "code"
_UNSAID: Final = ("reasoning_recap", "user_editable_context", "model_editable_context")
"""Kinds of content that nobody says in the conversation: how long a thought took, profiles."""


def is_nodes(value: object) -> bool:
    """Whether a value is an object of nodes, each with its parent and a message or null."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(node, dict) and {"message", "parent"} <= {*node} for node in value.values()
        )
    )


def branch_of(nodes: Any, last: Any, names: tuple[str, str]) -> list[Mapping[str, Any]]:
    """The messages from the root to a node, as a list of messages has them.

    nodes: of the row. last: the id of the last node. names: of both columns.
    """
    if not is_nodes(nodes):
        rule = "is no object of nodes with `message` and `parent`: leave `branch` out"
        raise Unfit("messages", f"its {names[0]} {rule}")
    path: list[Mapping[str, Any]] = []
    key = last
    while key is not None:
        node = nodes.get(key) if isinstance(key, str) else None
        if node is None:
            what = f"its {names[1]}, or a parent on the way, is {str(key)[:_SHOWN]!r}"
            raise Unfit("messages", f"{what}: no node of {names[0]} has this id")
        path.append(node)
        if len(path) > len(nodes):
            raise Unfit("messages", f"the nodes of its {names[0]} lead in a circle")
        key = node["parent"]
    return messages_of(reversed(path), names[0])


def messages_of(nodes: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The messages of nodes, as a list of messages has them. name: of their column."""
    messages = (node["message"] for node in nodes)
    return [said for each in messages if each is not None for said in _said(each, name)]


def _said(message: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield a message with role and content, or none for one that nobody says."""
    author = message.get("author") if isinstance(message, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(author, Mapping) or not isinstance(content, Mapping):
        raise Unfit("messages", f"a message of its {name} lacks `author` or `content`")
    kind, facts, role = content.get("content_type"), message.get("metadata"), author.get("role")
    is_hidden = isinstance(facts, Mapping) and facts.get("is_visually_hidden_from_conversation")
    if kind in _UNSAID or (is_hidden and role == "system"):
        return
    if role == "assistant" and (message.get("recipient") or _ALL) != _ALL:
        yield {"type": "function_call"}
    elif kind == _THOUGHTS:
        yield {"type": "reasoning", "content": content.get("thoughts")}
    elif role != "system" or any(content.get("parts") or ()):
        yield {"role": role, "content": content if "parts" in content else content.get("text")}


_NOWHERE: Final = Path("messages")
_TURN: Final = ("user", "assistant")
_NUMBERED: Final = re.compile(r"([^0-9]*)([0-9]{1,9})")
_REASONING: Final = "reasoning"
"""The type of an item that is a thought and no message, as the Responses API has it."""


def filled_list(value: Any, name: str, cure: str = "") -> list[Any]:
    """The list of messages of a column, with one at least."""
    given = value
    try:
        value = message_list(given)
    except BadInput as error:
        rule = f"its {name} is a text that is no JSON list"
        cure = "write `marks` of a conversation in one text"
        raise Unfit("messages", f"{rule}: {cure}") from error
    if not isinstance(value, list) or not value:
        what = "an empty list" if value == [] else kind_of(given if value is None else value)
        rule = f"its {name} is {what}, not a list of messages"
        is_empty = given is None or value == []
        raise Unfit("messages", f"{rule}: {cure}" if cure and is_empty else rule)
    return with_thoughts(value)


def with_thoughts(found: Sequence[Any]) -> list[Any]:
    """The items of a list, with a message of the channel `analysis` for those that are thoughts.

    Messages that are written as JSON are objects.

    found: of a thought, `content` has the whole text, and `summary` a short one. Thoughts in a
    row are one; of those that are empty there is none.
    """
    made: list[Any] = []
    for item in found if not found or isinstance(found[0], dict) else _parsed(found):
        if not isinstance(item, dict) or item.get("type") != _REASONING or item.get("role"):
            made.append(item)
        elif said := texts_of(item.get("content")) or texts_of(item.get("summary")):
            before = [made.pop()["content"]] if made and isinstance(made[-1], _Thought) else []
            made.append(_Thought(*before, said))
    return made


def _parsed(found: Sequence[Any]) -> Sequence[Any]:
    """The items of a list; the objects of texts that are all JSON of messages with a role."""
    if not all(isinstance(each, str) and each.lstrip()[:1] == "{" for each in found):
        return found
    try:
        objects = [load_json(each.encode("utf-8", "surrogatepass"), _NOWHERE) for each in found]
    except BadInput:
        return found
    are_all = all(
        {"role", "content"} <= {*each} or {"from", "value"} <= {*each} for each in objects
    )
    return objects if are_all else found


class _Thought(dict[str, Any]):
    """A thought as a message. texts: its parts."""

    def __init__(self, *texts: str) -> None:
        super().__init__(role="assistant", channel="analysis", content="\n\n".join(texts))


def message_list(value: Any) -> Any:
    """The list that a value is: in JSON, below `messages`, of an object with a list or turn a key.

    value: of a column. Returns any other value as it is, None for another object. Raises BadInput
    for a text that is no JSON.
    """
    if isinstance(value, str):
        value = load_json(value.encode("utf-8", "surrogatepass"), _NOWHERE)
    if not isinstance(value, Mapping):
        return value
    if (turns := _numbered(value)) is not None:
        return turns
    held = [*value.values()]
    if "messages" in value or not all(isinstance(each, list) for each in held):
        return value.get("messages")
    if len({len(each) for each in held}) != 1:
        return None
    return [dict(zip(value, each, strict=True)) for each in zip(*held, strict=True)]


def _numbered(value: Mapping[str, Any]) -> list[Any] | None:
    """The objects of an object in the order of the numbers of its keys, as `turn_1`; else None."""
    found = [(_NUMBERED.fullmatch(name), each) for name, each in value.items()]
    if not found or not all(match and isinstance(each, Mapping) for match, each in found):
        return None
    if len({match[1] for match, _ in found if match}) > 1:
        return None
    in_order = sorted((int(match[2]), at) for at, (match, _) in enumerate(found) if match)
    return [found[at][1] for _, at in in_order]


def named_pairs(found: Sequence[Any], roles: Collection[str]) -> list[tuple[str, Any]] | None:
    """Role and text of each item of a list of texts, or of pairs of a role and a text.

    found: of texts alone the first one is a user's, the next an assistant's. Pairs of which one
    names a role are no questions with answers. roles: that are known. Returns None for another
    list.
    """
    if all(isinstance(each, str) for each in found):
        return [(_TURN[at % 2], as_text(each)) for at, each in enumerate(found)]
    if all(map(_is_pair, found)) and any(each[0] in roles for each in found):
        return [(each[0], as_text(each[1])) for each in found]
    return None


def whole_turn(item: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """What a whole turn says, by the names of `turns`; None for an item that is none.

    item: of a list: a pair of question and answer, or an object. keys: of the recipe, which name
    those of the user and the assistant in such an object.
    """
    if _is_pair(item):
        return dict(zip(_TURN, item, strict=True))
    if "user" not in keys or not isinstance(item, Mapping) or keys["user"] not in item:
        return None
    return {name: item.get(keys[name]) for name in TURNS if name in keys}


def _is_pair(item: Any) -> bool:
    is_two = isinstance(item, list) and len(item) == 2
    return is_two and not any(isinstance(each, list | dict) for each in item)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {type(None): "null", str: "a text", list: "a list", dict: "an object", bool: "a bool"}
    return names.get(type(value), "a number")


_ROW_BYTES: Final = 500
_MOST_DEPTH: Final = 1000


class Trees:
    """The messages of the trees of a drop.

    chat: a recipe with `tree`. most_bytes: of their texts, at most.
    """

    def __init__(self, chat: Chat, most_bytes: int = MOST_BYTES) -> None:
        tree = chat.tree or {}
        self._id, self._parent, self._best = tree["id"], tree["parent"], tree.get("best")
        self._role, self._text = chat.keys.get("role", "role"), tree.get("text", "text")
        self._kept = (self._role, self._text, *chat.keys.values())
        self._roles = {**ALIASES, **chat.roles}
        self._left = most_bytes
        self._rows: dict[str, tuple[Place, Mapping[str, Any], float]] = {}
        self._children: dict[str | None, list[str]] = {}
        self.rows = 0

    def add(self, row: Row, place: Place) -> None:
        """Take a message.

        Raises Unfit for one without an id or with that of another, GristmillError where the
        messages of the drop are too large together.
        """
        key, parent = flattened(row.get(self._id)), flattened(row.get(self._parent))
        if not key:
            raise Unfit("messages", f"its {self._id} is empty")
        if key in self._rows:
            raise Unfit("messages", f"its {self._id} {key[:40]!r} is that of a row before it")
        # As `content`, so that a message of a tree is read as any other.
        item = {name: row.get(name) for name in self._kept}
        item["content"] = item.pop(self._text)
        self._left -= _ROW_BYTES + sum(len(str(value)) for value in item.values())
        if self._left < 0:
            raise GristmillError(
                f"the messages of the trees have more than {MOST_BYTES:,} bytes of text: divide "
                "the drop by trees"
            )
        self._rows[key] = place, item, self._rank(row)
        self._children.setdefault(parent or None, []).append(key)
        self.rows += 1

    def _rank(self, row: Row) -> float:
        value = None if self._best is None else row.get(self._best)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        return float("inf")

    def conversations(self) -> Iterator[tuple[Place, Sequence[Mapping[str, Any]]]]:
        """Yield the messages of each conversation, with the place of the last one, in file order.

        With `best`: of each tree the path that takes the best answer each time, the first of
        equal ones. Without it: every path from a root to a leaf. A path ends with the last
        assistant on it; paths that are equal then are one.
        """
        found: dict[Place, Sequence[Mapping[str, Any]]] = {}
        for whole in self._paths():
            path = [*whole]
            while path and not self._is_answer(path[-1]):
                path.pop()
            if path:
                place = self._rows[path[-1]][0]
                found.setdefault(place, [self._rows[key][1] for key in path])
        yield from sorted(found.items(), key=lambda each: each[0])

    def lost(self) -> list[Place]:
        """The places of messages that no root leads to: their parent is not there."""
        reached = {key for path in self._all_paths() for key in path}
        return sorted(place for key, (place, _, _) in self._rows.items() if key not in reached)

    def _is_answer(self, key: str) -> bool:
        return self._roles.get(str(self._rows[key][1].get(self._role))) == "assistant"

    def _paths(self) -> Iterator[list[str]]:
        if self._best is None:
            yield from self._all_paths()
            return
        for root in self._children.get(None, ()):
            path = [root]
            while children := self._children.get(path[-1]):
                path.append(min(children, key=lambda key: self._rows[key][2]))
                _check_depth(path)
            yield path

    def _all_paths(self) -> Iterator[list[str]]:
        waiting = [[root] for root in reversed(self._children.get(None, []))]
        while waiting:
            path = waiting.pop()
            _check_depth(path)
            children = self._children.get(path[-1], [])
            waiting += [[*path, child] for child in reversed(children)]
            if not children:
                yield path


def _check_depth(path: Sequence[str]) -> None:
    if len(path) > _MOST_DEPTH:
        raise GristmillError(f"a tree has more than {_MOST_DEPTH:,} messages below one another")
