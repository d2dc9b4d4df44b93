"""What becomes of each column: a recipe reads it, it is a fact of its row, or nothing reads it.

Nothing here goes by a column's name, so that a column is never left out without a word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from gristmill.corpora.raw.chat.messages import Messages
from gristmill.corpora.raw.chat.recipe import chat_of_table
from gristmill.corpora.raw.corpus_file import checked
from gristmill.corpora.raw.reader import columns_of
from gristmill.look.columns import EMPTY, TEXT, TEXTS, Columns, value_at
from gristmill.look.proposal import Part, Proposal, toml
from gristmill.look.roles import LONG
from gristmill.printable import cut

_MOST: Final = 12
_EXAMPLE: Final = 40
_LEAST: Final = 3
_FEW: Final = 4
_FACTS: Final = (
    ("address", re.compile(r"[a-z][a-z0-9+.-]{1,10}://\S+|[\w.-]*/\S*\.\w{1,8}", re.IGNORECASE)),
    ("time", re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:.*)?")),
    ("hash", re.compile(r"(?=.*\d)(?:[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")),
    (
        "licence",
        re.compile(r"(?:mit|apache|cc-?by|cc0|bsd|l?gpl|mpl|odc|isc)[\w.+ -]{0,20}", re.I),
    ),
)
"""What texts are that say something of a row, and the form that each of them has."""
_ID: Final = re.compile(r"(?=.*\d)[\w.:/#-]{1,80}")
_VERDICTS: Final = (
    *({"0", "1"}, {"no", "yes"}, {"false", "true"}, {"bad", "good"}),
    *({"incorrect", "correct"}, {"wrong", "right"}, {"fail", "pass"}),
)
"""The values of columns that say whether a row is right; the second is."""
_RIGHT: Final = ("1", "yes", "true", "good", "correct", "right", "pass")


def columns_read(made: Proposal) -> frozenset[str]:
    """The columns that a recipe reads, and the places in them; none without a recipe."""
    if not made.text:
        return frozenset()
    raw = tomllib.loads(made.text)
    if raw.get("kind") == "chat":
        return frozenset(Messages(chat_of_table(raw)).columns)
    return columns_of(checked(raw, raw["name"]))


def account_notes(made: Proposal, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the columns that a recipe does not read: facts of rows, and the others by an example.

    made: with a recipe. parts: rows that were looked at.
    """
    read = columns_read(made)
    unread: dict[str, str] = {}
    facts: dict[str, str] = {}
    for part in parts:
        for name in _unread(part.columns, read):
            values = [each for row in part.sample if _is_filled(each := value_at(row, name))]
            fact = fact_of(name, values, part.sample)
            (facts if fact else unread).setdefault(name, fact or _example(part, name))
            if verdict := _verdict(values):
                said, right = verdict
                keep = f"keep = [{{ column = {toml(name)}, equals = {toml(right)} }}]"
                yield f"{name} has two values, {said}: if it says which rows are right, {keep}"
    for said, found in (("not read", unread), ("facts of the rows, not read", facts)):
        if found:
            named = [f"{name} ({what})" for name, what in list(found.items())[:_MOST]]
            more = f" and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
            long = next((n for n in found if said == "not read" and _is_long(parts, n)), "")
            cure = f'write question = {{ template = "{{{long}}}\\n\\n.." }}'
            cure = f"; if a question needs one, {cure}" if long and _asks(made) else ""
            yield f"{said}: {', '.join(named)}{more}{cure}"


def fact_of(name: str, values: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """What the values of a column say of their rows: an id, a time, a length; empty for a content.

    rows: of which a text may have that length.
    """
    if all(isinstance(each, str) for each in values):
        for what, form in _FACTS:
            if values and all(form.fullmatch(each) for each in values):
                return what
        is_one = len({*values}) == len(values) >= _LEAST
        return "id" if is_one and all(map(_ID.fullmatch, values)) else ""
    if not all(type(each) is int for each in values) or len(values) < _LEAST:
        return ""
    steps = {after - before for before, after in pairwise(values)}
    if steps == {1}:
        return "number of the row"
    if all(8e8 < each < 4e9 or 8e11 < each < 4e12 for each in values):
        return "time"
    return "length" if len({*values}) > 1 and _is_length(name, rows) else ""


def _is_long(parts: Sequence[Part], name: str) -> bool:
    """Whether a column has long texts."""
    columns = [part.columns.by_name[name] for part in parts if name in part.columns.by_name]
    return any(column.kind in (TEXT, TEXTS) and column.mean >= LONG for column in columns)


def _asks(made: Proposal) -> bool:
    """Whether a recipe makes records with a question."""
    return "question = " in made.text


def _is_length(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a number is that of the characters or words of another column, in each row."""
    others = {
        key for row in rows[:1] for key, value in row.items() if isinstance(value, str | list)
    }
    measures = (len, lambda value: len(value.split()) if isinstance(value, str) else -1)
    return any(
        all(measure(row.get(other) or "") == value_at(row, name) for row in rows)
        for other in others
        for measure in measures
    )


def _unread(columns: Columns, read: Collection[str]) -> Iterator[str]:
    """Yield the columns, or the places in a column that is read in part, which nothing reads."""
    inner = {each for each in read if "." in each}
    for name, column in columns.by_name.items():
        above = name.rpartition(".")[0]
        is_read = name in read or any(each.startswith(f"{name}.") for each in inner)
        is_inside = above and not any(each.startswith(f"{above}.") for each in inner)
        if column.kind != EMPTY and not is_read and not is_inside:
            yield name


def _verdict(values: Sequence[Any]) -> tuple[str, Any] | None:
    """The two values of a column of verdicts with their numbers, and the right one; else None."""
    said = [str(each).strip().lower() for each in values]
    if (known := {*said}) not in _VERDICTS or not all(isinstance(e, str | int) for e in values):
        return None
    right = next(each for each in _RIGHT if each in known)
    return ", ".join(f"{each} ({said.count(each):,})" for each in sorted(known)), next(
        value for value, word in zip(values, said, strict=True) if word == right
    )


def _example(part: Part, name: str) -> str:
    """The first value of a column; of a few that come again and again, each."""
    column = part.columns.by_name[name]
    is_few = len(column.values) <= _FEW and 2 * len(column.values) < column.filled
    is_few = is_few and column.values.total() == column.filled
    values = [*column.values] if is_few else [column.example]
    return f"as {', '.join(toml(cut(' '.join(each.split()), _EXAMPLE)) for each in values)}"


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})
