"""A conversation as openai-harmony renders it: the whole contract, one conversation at a time.

Everything that `plain.py` does not take comes here, and every error is raised
here, in the order of `docs/formats/synth.md#refusals`. No speed is sought.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.synth.format import harmony_tokens

if TYPE_CHECKING:
    from openai_harmony import HarmonyEncoding


@dataclass(frozen=True)
class Rendered:
    """One conversation as tokens, its EOD included.

    tokens: token ids, the last one 199999.
    lengths: tokens of each message in order, the EOD not counted.
    spans: span id of each message: 1 assistant analysis, 2 assistant final, else 0.
    control_texts: control-token texts found in its contents, where they are plain text.
    """

    tokens: Sequence[int]
    lengths: Sequence[int]
    spans: Sequence[int]
    control_texts: int


@lru_cache(maxsize=4)
def encoding(vocabulary: Path) -> HarmonyEncoding:
    """openai-harmony's encoding for the verified vocabulary file, loaded once a process."""
    from gristmill.vocabularies.load import load_harmony_file

    return load_harmony_file(vocabulary)


def parse(messages_json: str) -> list[Any]:
    """The `messages` of a Harmony row. ValueError where there is no such list."""
    messages = json.loads(messages_json)
    messages = messages.get("messages") if isinstance(messages, dict) else None
    if not isinstance(messages, list):
        raise ValueError("messages_json must contain a list field 'messages'.")
    return messages


def render(messages: Sequence[Any], harmony: HarmonyEncoding) -> Rendered:
    """Render a conversation for training, without dropping analysis messages.

    The last token of a last message that is assistant and `final` becomes
    <|return|>. Raises what the reference raises, in its order: ValueError for
    roles, channels, empty conversations and unknown contents, KeyError for a
    message without content, AttributeError for one that is no object, and
    openai-harmony's own errors. Nothing is repaired.
    """
    from openai_harmony import Conversation, Message, RenderConversationConfig

    for message in messages:
        role = message.get("role")
        if role not in harmony_tokens.ROLES:
            raise ValueError(f"Unsupported role: {role}")
    if not messages:
        raise ValueError("No messages to render.")
    if not any(message["role"] == "assistant" for message in messages):
        raise ValueError("No assistant messages found in conversation.")
    parsed = [Message.from_dict(message) for message in messages]
    whole = harmony.render_conversation_for_training(
        Conversation.from_messages(parsed), RenderConversationConfig(auto_drop_analysis=False)
    )
    tokens: list[int] = []
    lengths: list[int] = []
    spans: list[int] = []
    for message, harmony_message in zip(messages, parsed, strict=True):
        rendered = harmony.render(harmony_message)
        spans.append(span_of(message))
        lengths.append(len(rendered))
        tokens += rendered
    if messages[-1]["role"] == "assistant" and messages[-1].get("channel") == "final":
        tokens[-1] = harmony_tokens.RETURN
    if tokens != whole:
        raise ValueError("Message render does not match conversation render.")
    tokens.append(harmony_tokens.ENDOFTEXT)
    return Rendered(tokens, lengths, spans, control_texts(messages))


def span_of(message: Mapping[str, Any]) -> int:
    """Span id of a message. ValueError for an assistant channel that has none."""
    if message["role"] != "assistant":
        return harmony_tokens.PROMPT
    channel = message.get("channel")
    if channel not in harmony_tokens.CHANNELS:
        raise ValueError(f"Assistant message missing/invalid channel: {channel!r}")
    return harmony_tokens.REASONING if channel == "analysis" else harmony_tokens.FINAL


def control_texts(messages: Iterable[Any]) -> int:
    """How many control-token texts stand in the contents of the messages, in any string of them.

    Not in text alone: identities, instructions and what tools say are bodies too.
    """
    found = 0
    waiting = [message["content"] for message in messages]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found += len(harmony_tokens.TEXT.findall(value))
        elif isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
    return found
