"""The list of messages of a column. Source: `docs/formats/chat.md#lists-of-messages`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.reasoning.raw.chat.contents import texts_of
from gristmill.reasoning.raw.chat.recipe import TURNS
from gristmill.reasoning.raw.flatten import Unfit, text
from gristmill.untrusted.json_text import load_json

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
        return [(_TURN[at % 2], text(each)) for at, each in enumerate(found)]
    if all(map(_is_pair, found)) and any(each[0] in roles for each in found):
        return [(each[0], text(each[1])) for each in found]
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
