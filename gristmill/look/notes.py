"""What to know of columns before their rows are built: verdicts, splits, what nothing reads.

No column that a recipe does not read is left out by its name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from gristmill.corpora.raw.chat.messages import Messages
from gristmill.corpora.raw.chat.recipe import chat_of_table
from gristmill.corpora.raw.corpus_file import checked
from gristmill.corpora.raw.drops import SPLIT_WORDS
from gristmill.corpora.raw.reader import columns_of
from gristmill.look.chats import SYSTEMS
from gristmill.look.columns import (
    CHOSEN,
    EMPTY,
    LIST,
    OBJECTS,
    TEXT,
    TEXTS,
    Column,
    Columns,
    value_at,
)
from gristmill.look.proposal import Part, Proposal, toml
from gristmill.look.roles import (
    INSTRUCT,
    LONG,
    PLAIN,
    PREFERENCE,
    PYTHON,
    QA,
    STEPWISE,
    is_content,
    words,
)
from gristmill.printable import cut

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
        if any(_splits_of(column.name, each) for each in files):
            notes += _split_notes(column)
        if column.name in part.guess.columns:
            notes += _nothing(column)
    if part.guess.form in (STEPWISE, PYTHON, PREFERENCE):
        notes.append(_CURES[part.guess.form])
    return [*notes, *of_corpus(part)]


def of_corpus(part: Part) -> list[str]:
    """Notes on what a recipe of a corpus leaves, where one of conversations does not."""
    return [*_control_texts(part), *_unread_system(part), *_unread_texts(part)]


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
    ]
    answer = part.columns.by_name[part.guess.answer]
    names_one = bool(answer.values) and all(map(_ONE.fullmatch, answer.values))
    if not names_one or part.guess.choices or part.guess.letters:
        return []
    lists = [name for name in unread if part.columns.by_name[name].kind != TEXT]
    if lists or len(unread) > 1:
        of = toml(lists[0] if lists else unread[:_MOST_NAMED])
        choice = f"{{ choice = {toml(answer.name)}, of = {of} }}"
        return [f"answers are single letters or digits: if they name a choice, write {choice}"]
    if answer.values.total() < answer.filled or 3 * len(answer.values) > answer.filled:
        return []
    said = sorted(answer.values)
    names = toml({"column": answer.name, "map": dict.fromkeys(said, "..")})
    return [f"answers are {', '.join(said)} alone: if they stand for words, write answer = {names}"]


def _splits_of(name: str, columns: Columns) -> bool:
    """Whether rows of one file name several splits in a column."""
    column = columns.by_name.get(name)
    known = column.values if column else ()
    return len({SPLIT_WORDS.get(value.lower()) for value in known} - {None}) > 1


def _split_notes(column: Column) -> list[str]:
    """A note on a column that says the split of each row, which would be mixed."""
    known = {value for value in column.values if value.lower() in SPLIT_WORDS}
    found = sorted(known, key=lambda value: (SPLIT_WORDS[value.lower()] != "train", value))
    named = words(column.name)[-1:]
    if named not in (["split"], ["subset"], ["partition"], ["set"]) or len(found) < 2:
        return []
    keep = f"keep = [{{ column = {toml(column.name)}, equals = {toml(found[0])} }}]"
    said = f"rows name their split in {column.name}: {', '.join(found)}"
    return [f"{said}, and would be mixed: write a file for each, or take one by {keep}"]


_MOST: Final = 12
_EXAMPLE: Final = 40
_LEAST: Final = 3
_MOST_VALUES: Final = 4
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
_TWO_VALUES: Final = (
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
    if (known := {*said}) not in _TWO_VALUES or not all(isinstance(e, str | int) for e in values):
        return None
    right = next(each for each in _RIGHT if each in known)
    return ", ".join(f"{each} ({said.count(each):,})" for each in sorted(known)), next(
        value for value, word in zip(values, said, strict=True) if word == right
    )


def _example(part: Part, name: str) -> str:
    """The first value of a column; of a few that come again and again, each."""
    column = part.columns.by_name[name]
    is_few = len(column.values) <= _MOST_VALUES and 2 * len(column.values) < column.filled
    is_few = is_few and column.values.total() == column.filled
    values = [*column.values] if is_few else [column.example]
    return f"as {', '.join(toml(cut(' '.join(each.split()), _EXAMPLE)) for each in values)}"


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})
