"""The text of a recipe. Source: `docs/corpora.md`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.settings.fields import toml_value

Table = dict[str, Any]
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MOST_LEFT: Final = 100


def recipe_text(head: Table, forms: Sequence[Table], notes: Sequence[str]) -> str:
    """A recipe as its file has it. notes: its first lines."""
    lines = [f"# {note}" for note in dict.fromkeys(notes)]
    lines += [f"{key} = {toml(value)}" for key, value in head.items()]
    for form in forms:
        lines += ["", "[[form]]"] if len(forms) > 1 else []
        lines += [f"{_key(key)} = {toml(value)}" for key, value in form.items()]
    return "\n".join(lines) + "\n"


def head_of(
    begin: Table,
    licence: tuple[str, str],
    files: Mapping[str, Sequence[str]],
    leave: Iterator[str],
    notes: list[str],
) -> Table:
    """What a recipe of any kind begins with. begin: its first values. Others as of `proposal`."""
    head = dict(begin)
    if licence[0]:
        head["licence"] = {"id": licence[0]}
        notes.append(f"The licence is what {licence[1]} says: read its terms.")
    if files:
        head["files"] = {split: g[0] if len(g) == 1 else [*g] for split, g in files.items()}
    if left := [*leave][:_MOST_LEFT]:
        head["leave"] = left
    return head


def toml(value: object) -> str:
    """A value as TOML in one line, tables included."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return toml_value(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml(key)
