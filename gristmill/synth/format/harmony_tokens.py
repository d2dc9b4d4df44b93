"""The control tokens of Harmony, and the numbers that all SYNTH artifacts share.

Source: `docs/formats/synth.md#control-tokens`.
"""

from __future__ import annotations

import re
from typing import Final

from gristmill.vocabularies.pinned import HARMONY_NAMES

ENDOFTEXT: Final = 199999
"""EOD: the last token of every document."""
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
"""Number of ids, the reserved ones included; every id is below it."""

ROLES: Final = ("system", "developer", "user", "assistant")
CHANNELS: Final = ("analysis", "final")

PROMPT, REASONING, FINAL = 0, 1, 2
"""Span codes: not supervised, assistant analysis, assistant final."""
SPANS: Final = ("prompt", "reasoning", "final")
"""Names of the span codes."""

ROLE_WORDS: Final = {"system": 17360, "developer": 77944, "user": 1428, "assistant": 173781}
CHANNEL_WORDS: Final = {"analysis": 35644, "final": 17196}
"""Each word of a header is one ordinary token. The key is the word, the value its id."""

NAMES: Final = HARMONY_NAMES
"""Every other id from 200000 to 201087 is `<|reserved_N|>`."""

TEXT: Final = re.compile(
    "|".join(
        [
            *map(re.escape, NAMES.values()),
            # 200000 to 201087, except the ids in NAMES.
            rf"<\|reserved_(?!{'|'.join(map(str, NAMES))})"
            r"20(?:0\d{3}|10[0-7]\d|108[0-7])\|>",
        ]
    )
)
"""Matches the text of a control token. In a body such text stays ordinary text."""


def name(token: int) -> str:
    """Return the text of a control token."""
    return NAMES.get(token, f"<|reserved_{token}|>")
