"""Audits of evaluation sets: files, limits, columns. Source: `docs/formats/reasoning.md#leaks`."""

from __future__ import annotations

from typing import Final

from gristmill.families import Column

ROWS: Final = "leaks.jsonl"
SUMMARY: Final = "summary.json"
MOST: Final = 1_000
"""Leaks that an audit lists."""
MOST_TEXT: Final = 600
"""Characters of a text that an audit shows."""
SIDES: Final = {"": "text", "question_": "question"}
"""What the columns of a text begin with, and of which text they are."""
COLUMNS: Final = (
    Column("share", "number", "of the question's own runs that stand in the text, to 1"),
    Column("changed", "boolean", "whether names and numbers are left out of these runs"),
    *(
        Column(f"{prefix}{name}", kind, f"{words} the {side}")
        for prefix, side in SIDES.items()
        for name, kind, words in (
            ("place", "string", "artifact or drop of"),
            ("file", "string", "file in it of"),
            ("row", "integer", "row of that file, from 1, of"),
            ("column", "string", "column of"),
            ("text", "string", "a part of"),
            ("marks", "array of [int, int]", "characters of it that both share, of"),
        )
    ),
)
