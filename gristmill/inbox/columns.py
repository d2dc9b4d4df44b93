"""What becomes of each column of a drop, and the lines that say it.

Whoever reads the rows of a drop makes the states, as `gristmill/corpora/account.py` does; `look`,
`drop`, `materialize`, `ls --account`, records and events show these lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gristmill.printable import cut, printable

READ, FACT, IGNORED, UNREAD = "read", "fact", "ignored", "unread"
"""The states of a column."""
_MOST: Final = 12
_LONGEST: Final = 80
_SAID: Final = {
    READ: "read",
    UNREAD: "not read",
    FACT: "facts of the rows, not read",
    IGNORED: "ignored, as the recipe says",
}


@dataclass(frozen=True)
class ColumnState:
    """What becomes of one column.

    name: of the column, of a place `a.b` in it, or `a[].b` for a key of its messages.
    state: `read`, `fact`, `ignored` or `unread`.
    what: the key of the recipe that reads it, the fact that it is, or an example; empty where no
        row that was looked at has a value.
    rows: in how many rows it is that nothing reads, as a build counts; 0 (default): nobody did.
    values: of a column that may divide or judge the rows, its values with their numbers; default
        none. keep: the rule of a recipe that takes the rows that are right, or of one split.
    is_split: whether these values say the split of a row, and not whether the row is right.
    """

    name: str
    state: str
    what: str = ""
    rows: int = 0
    values: str = ""
    keep: str = ""
    is_split: bool = False

    def __str__(self) -> str:
        counted = f"in {self.rows:,} row{'' if self.rows == 1 else 's'}" if self.rows else ""
        said = self.what or counted
        name = printable(cut(self.name, _LONGEST)) or "a column without a name"
        return f"{name} ({said})" if said and self.state != IGNORED else name


def column_lines(states: Sequence[ColumnState]) -> list[str]:
    """One line for each state, then one for each column that may divide or judge the rows."""
    rules = [each for each in states if each.keep]
    tests = [each.keep.removeprefix("keep = [").removesuffix("]") for each in rules]
    every = [f"several of these in one recipe: keep = [{', '.join(tests)}]"]
    lines = []
    for state, said in _SAID.items():
        if found := [each for each in states if each.state == state]:
            more = f" and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
            lines.append(f"{said}: {', '.join(map(str, found[:_MOST]))}{more}")
    return [*lines, *map(_rule, rules), *(every if len(rules) > 1 else [])]


def _rule(column: ColumnState) -> str:
    name = printable(cut(column.name, _LONGEST))
    if column.is_split:
        said = f"rows name their split in {name}: {column.values}, and would be mixed"
        return f"{said}: write a file for each, or take one by {column.keep}"
    said = f"{name} has two values, {column.values}: if it says which rows are right"
    return f"{said}, {column.keep}"
