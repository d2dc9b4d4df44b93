"""Settings that a command gives to one asset, as `--set seq_len=1024`.

See also `tables.py`, whose rules they are checked with. Source: docs/configuration.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import date, time
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.settings.fields import shown
from gristmill.settings.tables import Table

OPTION: Final = "--set"
"""The option, which errors name where those of a file name the file."""

_WORD: Final = re.compile(r"[^\s\"'\[\]{},#]*")


def given_values(table: Table, words: Sequence[str]) -> dict[str, Any]:
    """Returns the values of a table that are given on the command line, as the config holds them.

    table: the table that has the keys.
    words: each `field=value`. The value is written as in TOML; a text of one word, such as
        `packed46` or `2026-11-22`, needs no quotation marks.

    Raises BadInput for a word of another form, a field that is given twice, and as `Table.checked`.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BadInput(OPTION, f"{shown(word)}: write it as field=value")
        if name in values:
            raise BadInput(OPTION, f"{name} is given twice: give it once")
        values[name] = _value(name, text.strip())
    return table.checked(OPTION, values, in_root=False)


def _value(name: str, text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        found = {}
    # No field holds a date: the day of a report is a text.
    if found.keys() == {"value"} and not isinstance(found["value"], date | time):
        return found["value"]
    if _WORD.fullmatch(text):
        return text
    raise BadInput(
        OPTION,
        f"{name}: {shown(text)} is no value of TOML: write a number, true, false, a word, "
        """or between ' and ' a text "a b" or a list ["a", "b"]""",
    )
