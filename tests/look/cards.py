"""Datasets by the names and types of their columns, with made-up values; what a look should find.

Each line of `cards.txt` is a dataset: form, question, answer, thought, messages, columns. Where
several are right they stand with `/` between; `*` is any.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gristmill.corpora.account import counted
from gristmill.look.proposal import Part
from gristmill.look.roles import meant

ROWS: Final = 24
_WORDS: Final = ("two", "trains", "apples", "speed", "hours", "each", "then", "total", "given")


@dataclass(frozen=True)
class Card:
    """A dataset. right: what is right of each role; rows: made up."""

    line: str
    right: dict[str, list[str]]
    rows: list[dict[str, Any]]


def cards() -> Iterator[Card]:
    """The datasets of `cards.txt`."""
    for line in Path(__file__).with_name("cards.txt").read_text().splitlines():
        *right, columns = line.split(" | ")
        roles = ("form", "question", "answer", "cot", "messages")
        says = {role: said.split("/") for role, said in zip(roles, right, strict=True)}
        made = [_row(columns.split("; "), number) for number in range(ROWS)]
        for row in made:  # the thought of a column whose name says nothing ends with the answer
            for name in says["cot"]:
                if isinstance(row.get(name), str) and isinstance(row.get(says["answer"][0]), str):
                    row[name] += f" {row[says['answer'][0]]}"
        yield Card(line, says, made)


def part(rows: Sequence[Mapping[str, Any]]) -> Part:
    """Rows, and what their columns mean."""
    columns = counted(rows)
    return Part(meant(columns, rows), ["a.jsonl"], columns, rows)


@cache
def text(length: int, number: int) -> str:
    """A text of a length that differs by its number."""
    words = [_WORDS[(number * 7 + place * (place + number)) % len(_WORDS)] for place in range(200)]
    return f"{number} {' '.join(words)}"[:length]


def _row(columns: list[str], number: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in columns:
        path, _, kind = column.rpartition(": ")
        *outer, name = path.split("/")
        inner = row
        for each in outer:
            inner = inner.setdefault(each, {})
        inner[name] = _value(kind, number)
    return row


def _value(kind: str, number: int) -> Any:
    asked, said = text(110, number), text(400, number + 50)
    if kind in ("role/content", "from/value"):
        role, key = kind.split("/")
        names = ("user", "assistant") if role == "role" else ("human", "gpt")
        return [{role: names[0], key: asked}, {role: names[1], key: said}]
    if kind.startswith("one "):
        return [{"role": kind.split()[1], "content": asked}]
    values = {
        "asked": asked,
        "said": said,
        "long": text(900, number + 90),
        "word": ("web", "code", "math")[number % 3] if number % 2 else str(number * 37),
        "id": f"{number * 7919:016x}",
        "number": number,
        "truth": bool(number % 2),
        "empty": None,
        "objects": [{"step": 1, "text": said}],
    }
    return [values[kind[:-1]]] * 2 if kind not in values else values[kind]
