"""Conversations for the tests, and the hashes of files on disk."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gristmill.synth.show import Message


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    """A message whose content is one text; `more` adds keys."""
    return {"role": role, "content": [{"type": "text", "text": text}]} | more


def conversation(query: str, reasoning: str, answer: str) -> list[dict[str, Any]]:
    """The user message and both assistant messages of a row, without system message."""
    return [
        message("user", query),
        message("assistant", reasoning, channel="analysis"),
        message("assistant", answer, channel="final"),
    ]


def as_json(messages: list[Any]) -> str:
    """The `messages_json` of a row with these messages."""
    return json.dumps({"messages": messages})


def hashes(root: Path) -> dict[str, str]:
    """sha256 of every file below `root`, by relative path."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def plain(messages: Sequence[Message]) -> str:
    """The text of shown messages."""
    return "".join(token.text for message in messages for token in message.tokens)
