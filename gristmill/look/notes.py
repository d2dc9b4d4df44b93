"""What to know of columns before their rows are built: verdicts, splits, what nothing reads.

No column that a recipe does not read is left out by its name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from gristmill.corpora.account import Head
from gristmill.corpora.raw.heads import columns_of_recipe
from gristmill.inbox.columns import column_lines
from gristmill.look.chats import SYSTEMS
from gristmill.look.columns import (
    CHOSEN,
    LIST,
    MESSAGES,
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
    CHAT,
    INSTRUCT,
    PLAIN,
    PREFERENCE,
    PYTHON,
    QA,
    STEPWISE,
    is_content,
    words,
)
from gristmill.look.splits import takes

_LAST: Final = re.compile(r".*(?:[0-9]|[ _-][A-Ha-h])")
_CONTROL: Final = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]>|\[/INST\]|<\w{1,20}_\d{1,3}>(?=User|Assistant|Human|System)"
)
_FEW: Final = 0.1
_LABEL: Final = re.compile(r"^[ *#]*[^\W\d_]{1,20}:", re.MULTILINE)
"""Begins a line that may be what somebody says."""
_SAME: Final = 0.8
_ONE: Final = re.compile(r"\W?[0-9A-Za-z]\W?")
_MOST_NAMED: Final = 8
_PAIRS: Final = ("AB", "ab", "01", "12")
_NOTHING: Final = {"nan", "null", "none", "n/a", "<na>"}
_MEDIA: Final = {"image", "picture", "video", "audio", "image_path"}
_LABELS: Final = {"label", "preference", "preferred", "winner", "choice"}
_RATINGS: Final = {"score", "rating", "reward"}
_ANSWERS: Final = {"response", "text", "answer", "completion", "output", "content"}
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
        if column.name.lower() in ("license", "licence"):
            said = ", ".join(
                f"{value} ({count:,})" for value, count in column.values.most_common(5)
            )
            notes.append(f"rows have a licence of their own, {column.name}: {said}")
    if part.guess.form in (STEPWISE, PYTHON, PREFERENCE):
        notes.append(_CURES[part.guess.form])
    return [
        *notes,
        *_of_talks(part),
        *_several(part),
        *_better(part),
        *_rated(part),
        *_marked(part),
        *of_corpus(part),
    ]


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


def _several(part: Part) -> list[str]:
    """A note on columns that differ from that of the answer in a number or letter at the end."""
    columns, notes = part.columns.by_name, []
    for name in (part.guess.messages, part.guess.answer):
        if name is None or name in part.guess.letters or _LAST.fullmatch(name) is None:
            continue
        is_like = [n for n in columns if n[:-1] == name[:-1]]
        alike = [n for n in is_like if columns[n].kind == columns[name].kind]
        if len(alike) > 1:
            rule = f"{name} alone is read, whichever is the better one"
            notes.append(f"{' and '.join(alike)}: {rule}")
    return notes


def _nothing(column: Column) -> list[str]:
    """A note on texts that stand for no value, as another program writes them."""
    found = {value: count for value, count in column.values.items() if value.lower() in _NOTHING}
    if column.kind != TEXT or not found:
        return []
    said = ", ".join(f"{value} ({count:,})" for value, count in found.items())
    return [f"{column.name}: texts that may stand for nothing, and stay texts: {said}: write null"]


def _of_talks(part: Part) -> list[str]:
    """Notes on what a recipe of conversations leaves beside them: pictures, and other talks."""
    columns, name = part.columns.by_name, part.guess.messages
    if part.guess.form != CHAT or name is None:
        return []
    media = [n for n, each in columns.items() if {*words(n)[-1:]} & _MEDIA and each.filled]
    notes = [f"{', '.join(media)}: not text, and not read; the texts are"] if media else []
    own = columns[name].filled
    for other, each in columns.items():
        is_apart = each.kind == MESSAGES and other != name and "." not in other and own
        if is_apart and own + each.filled <= part.columns.rows:
            said = f"rows have messages in {name} or in {other}: {name} alone is read"
            notes.append(f"{said}: write both into one column")
    return notes


def _better(part: Part) -> list[str]:
    """A note on two columns of answers of which a label says the better one."""
    columns = part.columns.by_name
    texts = [name for name, column in columns.items() if column.kind == TEXT]
    pairs = [(a, b) for a in texts for b in texts if a[:-1] == b[:-1] and a[-1:] + b[-1:] in _PAIRS]
    labels = [name for name in columns if {*words(name)[-1:]} & _LABELS]
    found = [name for name in labels if {*columns[name].values} in ({"0", "1"}, {"1"}, {"0"})]
    if not pairs or not found or part.guess.columns & {*sum(pairs, ())}:
        return []  # they are read
    # The longest ones: ids have such names, too.
    first, second = max(pairs, key=lambda pair: columns[pair[0]].mean)
    label, others = found[0], [name for name in texts if name not in (first, second)]
    asked = max(others, key=lambda name: columns[name].mean, default="..")
    answer = {"choice": label, "of": [second, first]}
    cure = f"question = {toml(asked)} and answer = {toml(answer)} take {first} where it is 1"
    rule = f"{first} and {second}: two answers, of which {label} says the better one"
    return [f"{rule}: {cure}; turn the names in `of` round where it is the other one"]


def _rated(part: Part) -> list[str]:
    """A note on lists of answers with a rating each, of which a recipe reads one by its place."""
    notes = []
    for name, column in part.columns.by_name.items():
        if column.kind != OBJECTS or name in part.guess.columns or "." in name:
            continue
        items = [each for row in part.sample for each in row.get(name) or ()]
        keys = [key for key in items[0] if all(key in each for each in items)] if items else []
        answers = [k for k in keys if words(k)[-1:] and words(k)[-1] in _ANSWERS]
        ratings = [k for k in keys if {*words(k)[-1:]} & _RATINGS]
        best = next((k for k in ratings if "overall" in words(k)), "".join(ratings[:1]))
        if answers and best:
            take = f'.response = (."{name}" | max_by(."{best}")."{answers[0]}")'
            rule = f"{name}: several answers a row, {answers[0]}, with a rating each, {best}"
            cure = f"write the best one into a column, as `jq -c '{take}'` does of JSON lines"
            notes.append(f'{rule}: {cure}; answer = "{name}.0.{answers[0]}" reads the first one')
    return notes


def _marked(part: Part) -> list[str]:
    """Notes on lists that have 1 at the place of the right choice, which no recipe reads."""
    notes = []
    for name, column in part.columns.by_name.items():
        at, _, last = name.rpartition(".")
        choices = f"{at}.choices"
        if column.kind == LIST and last == "labels" and choices in part.columns.by_name:
            path = ".".join(["", *map(toml, at.split("."))])
            take = f".answer = {path}.choices[{path}.labels | index(1)]"
            rule = f"{name}: has 1 at the place of the right one of {choices}"
            notes.append(f"{rule}: `jq -c '{take}'` writes it into a column of JSON lines")
    return notes


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
    """A note on texts that the recipe does not read; it names choices where answers need some."""
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
    values = part.columns.by_name[part.guess.answer].values
    names_one = bool(values) and all(_ONE.fullmatch(value) for value in values)
    has_choices = part.guess.choices or part.guess.letters
    lists = [name for name in unread if part.columns.by_name[name].kind != TEXT]
    if names_one and not has_choices and (lists or len(unread) > 1):
        of = toml(lists[0] if lists else unread[:_MOST_NAMED])
        choice = f"{{ choice = {toml(part.guess.answer)}, of = {of} }}"
        return [f"answers are single letters or digits: if they name a choice, write {choice}"]
    return []


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
