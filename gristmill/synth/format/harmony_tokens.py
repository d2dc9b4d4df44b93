"""The control tokens of Harmony and the numbers that all SYNTH artifacts share.

How text becomes tokens stands in `rendering.py` and `plain.py`.
Source: `docs/formats/synth.md#constants`.
"""

from __future__ import annotations

import re
from typing import Final

ENDOFTEXT: Final = 199999
"""EOD: closes every document; the last of these ids that is no Harmony marker."""
RETURN: Final = 200002
CONSTRAIN: Final = 200003
CHANNEL: Final = 200005
START: Final = 200006
END: Final = 200007
MESSAGE: Final = 200008
CALL: Final = 200012

BODY_LIMIT: Final = 199998
"""Tokens of ordinary text are below this id; all others are control tokens."""
PADDED_VOCABULARY: Final = 201088

ROLES: Final = ("system", "developer", "user", "assistant")
CHANNELS: Final = ("analysis", "final")

PROMPT, REASONING, FINAL = 0, 1, 2
"""Span ids: not supervised, assistant analysis, assistant final."""
SPANS: Final = ("prompt", "reasoning", "final")

ROLE_WORDS: Final = {"system": 17360, "developer": 77944, "user": 1428, "assistant": 173781}
CHANNEL_WORDS: Final = {"analysis": 35644, "final": 17196}
"""Each word of a header is one ordinary token."""

NAMES: Final = {
    199998: "<|startoftext|>",
    ENDOFTEXT: "<|endoftext|>",
    RETURN: "<|return|>",
    CONSTRAIN: "<|constrain|>",
    CHANNEL: "<|channel|>",
    START: "<|start|>",
    END: "<|end|>",
    MESSAGE: "<|message|>",
    CALL: "<|call|>",
    200018: "<|endofprompt|>",
}
"""Every other id from 200000 to 201087 is `<|reserved_N|>`."""

TEXT: Final = re.compile(
    "|".join(
        [
            *map(re.escape, NAMES.values()),
            # 200000 to 201087, but for those that have a name of their own.
            rf"<\|reserved_(?!{'|'.join(map(str, NAMES))})"
            r"20(?:0\d{3}|10[0-7]\d|108[0-7])\|>",
        ]
    )
)
"""Control-token text inside a body, where it stays ordinary text."""


def name(token: int) -> str:
    """How a control token is written."""
    return NAMES.get(token, f"<|reserved_{token}|>")
