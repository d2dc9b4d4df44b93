"""What to know of columns before their rows are built: verdicts, splits, what nothing reads.

No column that a recipe does not read is left out by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from gristmill.look import roles
from gristmill.look.chats import SYSTEMS
from gristmill.look.columns import CHOSEN, LIST, OBJECTS, TEXT, TEXTS, Column
from gristmill.look.proposal import Part, toml

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
    roles.STEPWISE: (
        "completions with a label each: no recipe reads labels; write one row a question"
    ),
    roles.PYTHON: "steps in nested objects need Python: write question, answer and cot a row",
    roles.PREFERENCE: "pairs of answers for preferences: a recipe reads one answer a row",
}


def part_notes(part: Part) -> list[str]:
    """Notes on the columns of a part. part: rows with the same columns."""
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
        if column.name in part.guess.columns and column.kind == TEXT:
            notes += _nothing(column)
    if part.guess.form in _CURES:
        notes.append(_CURES[part.guess.form])
    return [*notes, *of_corpus(part)]


def of_corpus(part: Part) -> list[str]:
    """Notes on what a recipe of a corpus leaves, where one of conversations does not."""
    found = (_control_texts(part), _unread_system(part), _one_letter(part), _repeated(part))
    return [note for note in found if note]


def _control_texts(part: Part) -> str:
    """Whether texts have tokens of a template or names of speakers, which stay texts."""
    name = part.guess.question
    if part.guess.form not in (roles.PLAIN, roles.QA, roles.INSTRUCT) or name is None:
        return ""
    texts = part.texts(name)
    found = [mark[0] for text in texts if (mark := _CONTROL.search(text))]
    if len(found) < _FEW * len(texts) or not found:
        labels = Counter(each for text in texts for each in sorted({*_LABEL.findall(text)}))
        both = [each for each, count in labels.most_common(2) if count >= _SAME * len(texts)]
        found = [" and ".join(both)] if len(both) == 2 and len(texts) > 2 else []
    if not found or (part.guess.form != roles.PLAIN and " and " in found[0]):
        return ""
    rule = f"{name}: texts with {found[0]}, which stays text: if they are conversations"
    return f'{rule}, a recipe with kind = "chat" and `marks` divides them'


def _nothing(column: Column) -> list[str]:
    """A note on texts that stand for no value, as another program writes them."""
    found = {value: count for value, count in column.values.items() if value.lower() in _NOTHING}
    said = ", ".join(f"{value} ({count:,})" for value, count in found.items())
    rule = f"{column.name}: texts that may stand for nothing, and stay texts: {said}: write null"
    return [rule] if found else []


def _unread_system(part: Part) -> str:
    """Whether there is a column of system prompts, which records of a corpus do not have."""
    guess, columns = part.guess, part.columns.by_name
    name = next((n for n in SYSTEMS if n in columns and columns[n].kind == TEXT), None)
    answer = guess.answer or (
        part.columns.first(CHOSEN) if guess.form == roles.PREFERENCE else None
    )
    is_pair = (
        guess.form in (roles.QA, roles.INSTRUCT, roles.PREFERENCE) and guess.question and answer
    )
    if name is None or not is_pair or name in guess.columns:
        return ""
    turns = {"system": name, "user": guess.question, "assistant": answer}
    cure = f'kind = "chat" and turns = {toml(turns)}'
    return f"{name}: system prompts, which nothing reads: conversations have them, by {cure}"


def _one_letter(part: Part) -> str:
    """Whether answers are letters or digits: of choices that nothing reads, or of names."""
    guess, columns = part.guess, part.columns.by_name
    if (
        guess.form not in (roles.QA, roles.INSTRUCT)
        or guess.answer is None
        or guess.choices
        or guess.letters
    ):
        return ""
    answer = columns[guess.answer]
    if not answer.values or not all(map(_ONE.fullmatch, answer.values)):
        return ""
    unread = [
        name
        for name, column in columns.items()
        if column.kind in (TEXT, TEXTS, OBJECTS, LIST)
        and not any(f"{read}.".startswith(f"{name}.") for read in guess.columns)
        and column.filled > part.columns.rows / 2
        and roles.is_content(name)
        and name.strip()
    ]
    values = part.values(answer.name)
    texts = [name for name in unread if columns[name].kind == TEXT]
    lists = [
        name
        for name in unread
        if columns[name].kind != TEXT
        and "." not in name
        and all(
            isinstance(items, list) and roles.place_of(value, len(items)) is not None
            for value, items in zip(values, part.values(name), strict=True)
        )
    ]
    if lists or len(texts) > 1:
        of = toml(lists[0] if lists else texts[:_MOST_NAMED])
        choice = f"{{ choice = {toml(answer.name)}, of = {of} }}"
        return f"answers are single letters or digits: if they name a choice, write {choice}"
    if answer.values.total() < answer.filled or 3 * len(answer.values) > answer.filled:
        return ""
    said = sorted(answer.values)
    # A person fills it in: as it stands no recipe takes it.
    words = ", ".join(f"{toml(each)} = WORD" for each in said)
    names = f"{{ column = {toml(answer.name)}, map = {{ {words} }} }}"
    return f"answers are {', '.join(said)} alone: if they stand for words, write answer = {names}"


def _repeated(part: Part) -> str:
    """Whether answers are their questions with other marks or a few other words."""
    question, answer = part.guess.question, part.guess.answer
    if part.guess.form not in (roles.QA, roles.INSTRUCT) or question is None or answer is None:
        return ""
    pairs = zip(part.values(question), part.values(answer), strict=True)
    both = [(Counter(a.split()), Counter(b.split())) for a, b in pairs if type(a) is type(b) is str]
    alike = [min((a & b).total() / max(each.total(), 1) for each in (a, b)) for a, b in both]
    if not alike or sum(share >= _SAME for share in alike) < _SAME * len(alike):
        return ""
    rule = f"{answer} repeats {question} but for a few words"
    return f"{rule}: if they are marks of its steps, no recipe reads these"
