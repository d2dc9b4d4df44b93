"""The text of a message, its thoughts and calls. Source: `docs/formats/chat.md#messages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gristmill.reasoning.raw.flatten import Unfit, canonical, flattened

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
