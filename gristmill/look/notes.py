"""What to know of columns before their rows are built: verdicts, splits, what nothing reads.

No column that a recipe does not read is left out by its name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gristmill.corpora.account import Head
from gristmill.corpora.raw.heads import columns_of_recipe
from gristmill.inbox.columns import column_lines
from gristmill.look.chats import SYSTEMS
from gristmill.look.columns import (
    CHOSEN,
    LIST,
    OBJECTS,
    TEXT,
    TEXTS,
    Column,
    Columns,
    value_at,
)
from gristmill.look.proposal import Part, Proposal, toml
from gristmill.look.reading import FileLook
from gristmill.look.roles import (
    INSTRUCT,
    PLAIN,
    PREFERENCE,
    PYTHON,
    QA,
    STEPWISE,
    is_content,
    place_of,
)
from gristmill.look.splits import takes

_CONTROL: Final = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]>|\[/INST\]|<\w{1,20}_\d{1,3}>(?=User|Assistant|Human|System)"
)
_FEW: Final = 0.1
_LABEL: Final = re.compile(r"^[ *#]*[^\W\d_]{1,20}:", re.MULTILINE)
"""Begins a line that may be what somebody says."""
_SAME: Final = 0.8
_ONE: Final = re.compile(r"\W?[0-9A-Za-z]\W?")
_MOST_NAMED: Final = 8
_NOTHING: Final = {"nan", "null", "none", "n/a", "<na>"}
_CURES: Final = {
    STEPWISE: "completions with a label each: no recipe reads labels; write one row a question",
    PYTHON: "steps in nested objects need Python: write question, answer and cot a row",
    PREFERENCE: "pairs of answers for preferences: a recipe reads one answer a row",
}


def part_notes(part: Part, files: Sequence[Columns]) -> list[str]:
    """Notes on the columns of a part.

    part: rows with the same columns. files: the columns of each of its files.
    """
    notes = []
    if part.headerless:
        said = ", ".join(part.headerless["columns"])
        notes.append(f"no line of names: the columns are called {said}: see that they are these")
    for column in part.columns.by_name.values():
        if column.is_written > column.filled / 2:
            notes.append(
                f"{column.name}: lists or objects written as text, which stay texts: write them "
                "as JSON values, of Python's notation by json.dumps(ast.literal_eval(text))"
            )
        if column.name in part.guess.columns:
            notes += _nothing(column)
    if part.guess.form in (STEPWISE, PYTHON, PREFERENCE):
        notes.append(_CURES[part.guess.form])
    return [*notes, *of_corpus(part)]


def of_corpus(part: Part) -> list[str]:
    """Notes on what a recipe of a corpus leaves, where one of conversations does not."""
    return [*_control_texts(part), *_unread_system(part), *_unread_texts(part), *_repeated(part)]


def _control_texts(part: Part) -> list[str]:
    """A note on texts with tokens of a template or names of speakers, which stay texts."""
    name = part.guess.question
    if part.guess.form not in (PLAIN, QA, INSTRUCT) or name is None:
        return []
    texts = [text for row in part.sample if isinstance(text := value_at(row, name), str)]
    found = [mark[0] for text in texts if (mark := _CONTROL.search(text))]
    if len(found) < _FEW * len(texts) or not found:
        labels = Counter(each for text in texts for each in {*_LABEL.findall(text)})
        both = [each for each, count in labels.most_common(2) if count >= _SAME * len(texts)]
        found = [" and ".join(both)] if len(both) == 2 and len(texts) > 2 else []
    if not found or (part.guess.form != PLAIN and " and " in found[0]):
        return []
    rule = f"{name}: texts with {found[0]}, which stays text: if they are conversations"
    return [f'{rule}, a recipe with kind = "chat" and `marks` divides them']


def _nothing(column: Column) -> list[str]:
    """A note on texts that stand for no value, as another program writes them."""
    found = {value: count for value, count in column.values.items() if value.lower() in _NOTHING}
    if column.kind != TEXT or not found:
        return []
    said = ", ".join(f"{value} ({count:,})" for value, count in found.items())
    return [f"{column.name}: texts that may stand for nothing, and stay texts: {said}: write null"]


def _unread_system(part: Part) -> list[str]:
    """A note on a column of system prompts, which records of a corpus do not have."""
    guess, columns = part.guess, part.columns.by_name
    name = next((n for n in SYSTEMS if n in columns and columns[n].kind == TEXT), None)
    chosen = part.columns.first(CHOSEN) if guess.form == PREFERENCE else None
    answer = guess.answer or chosen
    is_pair = guess.form in (QA, INSTRUCT, PREFERENCE) and guess.question and answer
    if name is None or not is_pair or name in guess.columns:
        return []
    turns = {"system": name, "user": guess.question, "assistant": answer}
    cure = f'kind = "chat" and turns = {toml(turns)}'
    return [f"{name}: system prompts, which nothing reads: conversations have them, by {cure}"]


def _unread_texts(part: Part) -> list[str]:
    """A note on answers that are letters or digits: of choices that nothing reads, or of names."""
    guessed = part.guess.columns
    if part.guess.form not in (QA, INSTRUCT) or part.guess.answer is None:
        return []
    unread = [
        column.name
        for column in part.columns.by_name.values()
        if column.kind in (TEXT, TEXTS, OBJECTS, LIST)
        and column.name not in guessed
        and not any(name.startswith(f"{column.name}.") for name in guessed)
        and column.filled > part.columns.rows / 2
        and is_content(column.name)
        and column.name.strip()
    ]
    answer = part.columns.by_name[part.guess.answer]
    names_one = bool(answer.values) and all(map(_ONE.fullmatch, answer.values))
    if not names_one or part.guess.choices or part.guess.letters:
        return []
    values = [value_at(row, answer.name) for row in part.sample]
    texts = [name for name in unread if part.columns.by_name[name].kind == TEXT]
    lists = [name for name in unread if name not in texts and "." not in name]
    lists = [n for n in lists if _have_places(values, [value_at(row, n) for row in part.sample])]
    if lists or len(texts) > 1:
        of = toml(lists[0] if lists else texts[:_MOST_NAMED])
        choice = f"{{ choice = {toml(answer.name)}, of = {of} }}"
        return [f"answers are single letters or digits: if they name a choice, write {choice}"]
    if answer.values.total() < answer.filled or 3 * len(answer.values) > answer.filled:
        return []
    said = sorted(answer.values)
    names = toml({"column": answer.name, "map": dict.fromkeys(said, "..")})
    return [f"answers are {', '.join(said)} alone: if they stand for words, write answer = {names}"]


def _have_places(values: Sequence[Any], lists: Sequence[Any]) -> bool:
    """Whether each value is the number or letter of an item of its list."""
    return all(
        isinstance(items, list) and place_of(value, len(items)) is not None
        for value, items in zip(values, lists, strict=True)
    )


def _repeated(part: Part) -> list[str]:
    """A note on answers that are their questions with other marks or a few other words."""
    question, answer = part.guess.question, part.guess.answer
    if part.guess.form not in (QA, INSTRUCT) or question is None or answer is None:
        return []
    pairs = [(value_at(row, question), value_at(row, answer)) for row in part.sample]
    both = [(Counter(a.split()), Counter(b.split())) for a, b in pairs if type(a) is type(b) is str]
    alike = [min((a & b).total() / max(each.total(), 1) for each in (a, b)) for a, b in both]
    if not alike or sum(share >= _SAME for share in alike) < _SAME * len(alike):
        return []
    rule = f"{answer} repeats {question} but for a few words"
    return [f"{rule}: if they are marks of its steps, no recipe reads these"]


def account_notes(
    made: Proposal, files: Sequence[FileLook], splits: Mapping[str, Sequence[str]]
) -> list[str]:
    """What a recipe does with each column of the rows that were looked at.

    made: with a recipe. files: of which those that it leaves out do not count. splits: the names
    of files by split.
    """
    raw = tomllib.loads(made.text)
    split_of = {name: split for split, names in splits.items() for name in names}
    left = raw.get("leave", ())
    heads = [
        Head(split_of.get(file.name, ""), file.sample)
        for file in files
        if not any(takes(glob, file.name) for glob in left)
    ]
    return column_lines(columns_of_recipe(raw, heads))
