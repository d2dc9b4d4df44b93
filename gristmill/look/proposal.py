"""The recipes that a look proposes, and what they read of the rows that were looked at."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gristmill.corpora.account import value_at
from gristmill.corpora.corpus import CORPORA, NAME, Corpus
from gristmill.corpora.raw.chat.lists import Trees
from gristmill.corpora.raw.chat.messages import CHAT_CURES, THINK, Messages, Talk
from gristmill.corpora.raw.chat.recipe import Chat, chat_of_table
from gristmill.corpora.raw.corpus_file import checked
from gristmill.corpora.raw.reader import Reader, emptiness, with_columns
from gristmill.corpora.raw.rules import Rules
from gristmill.corpora.raw.texts import Unfit, is_left_out
from gristmill.corpora.raw.transforms import letter
from gristmill.corpora.raw.values import way_of
from gristmill.look.columns import CHOSEN, NUMBER, OBJECTS, TEXT, TEXTS, TRUTH, TRUTHS, Columns
from gristmill.look.roles import CHAT, INSTRUCT, PLAIN, PREFERENCE, Guess
from gristmill.look.splits import literal
from gristmill.look.transcripts import tags_of
from gristmill.printable import cut
from gristmill.settings.fields import toml_value

Table = dict[str, Any]
_MARKS: Final = ("The answer is:", "####")
_OPEN, _CLOSE = THINK
_MOST: Final = 0.8
_ENDS: Final = 0.9
_LINE: Final = 80
"""Characters of the answer behind a mark."""
_SEVERAL: Final = 3
_PART_BYTES: Final = 10**9
_SHOWN: Final = 40
_MOST_LEFT: Final = 100
_NAMED: Final = 3
_NUMBER: Final = re.compile("[0-9]{1,9}")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN: Final = re.compile(r"<[|｜][^<>|｜\n]{1,40}[|｜]>")
_FACTS: Final = {"type", "id", "uuid", "status", "name", "timestamp", "created_at", "create_time"}
"""Keys of messages that say what a message is, and nothing of its text."""


@dataclass(frozen=True)
class Part:
    """Rows with the same columns, and what these mean.

    headerless: what a recipe says of tables without a header; empty where they have one.
    """

    guess: Guess
    files: Sequence[str]
    columns: Columns
    sample: Sequence[Mapping[str, Any]]
    headerless: Mapping[str, Any] = field(default_factory=dict)

    def values(self, name: str | None) -> list[Any]:
        """The values of a column in the rows that were looked at."""
        return [value_at(row, name) for row in self.sample] if name else []

    def texts(self, name: str | None) -> list[str]:
        """Those of them that are texts."""
        return [value for value in self.values(name) if isinstance(value, str)]


@dataclass
class Proposal:
    """A recipe.

    refused: of the others, how many broke which rule; left_out: those that the recipe leaves out.
    unread: in how many good rows what is not read. inbox: whose drops have such a recipe.
    """

    text: str = ""
    rows: int = 0
    good: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    inbox: str = "reasoning"


def name_of(folder: str) -> str:
    """The name of a folder as that of a corpus, which no built-in one has."""
    words = re.findall(r"[a-z0-9]+", folder.lower())
    made = "_".join(words)[:36].rstrip("_") or "corpus"
    return f"{made}_own" if made in CORPORA or NAME.fullmatch(made) is None else made


def proposal(
    name: str,
    parts: Sequence[Part],
    files: Mapping[str, Sequence[str]],
    licence: tuple[str, str],
    left: Sequence[str] = (),
    size: int = 0,
) -> Proposal:
    """The recipe for the parts of a folder that a recipe reads.

    name: of the corpus. files: globs by split. licence: identifier, and the file that says so; two
    empty texts where none does.
    left: data files that no form reads, which the recipe names in `leave`; default none.
    size: bytes of the files; default: few.
    """
    notes: list[str] = []
    read = [(part, form) for part in parts if (form := _form(part, notes))]
    if not read:
        return Proposal()
    head = head_of({"schema": 1, "name": name}, licence, files, map(literal, left), notes)
    if not licence[0]:
        notes.append('The licence is unknown: add licence = { id = "...", train = true }.')
    if size > _PART_BYTES:
        head["part_bytes"] = _PART_BYTES
    if bare := next((part for part in parts if part.headerless), None):
        ending = "*.tsv*" if ".tsv" in bare.files[0].lower() else "*.csv*"
        head["headerless"] = {"files": ending, **bare.headerless}
    forms = [form for _, form in read]
    return recipe(head, forms if len(forms) == 1 else _apart(read), notes, parts)


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


def is_readable(part: Part) -> bool:
    """Whether a recipe reads the rows."""
    return bool(_form(part, []))


def _form(part: Part, notes: list[str]) -> Table:
    """The values of a form; empty where no recipe reads the rows."""
    guess, columns = part.guess, part.columns.by_name
    if guess.form == PLAIN and guess.question:
        return {"texts": f"{{{guess.question}}}"}
    if guess.form == PREFERENCE and guess.question:
        chosen = next((name for name in columns if name in CHOSEN), None)
        notes.append("The answers that were not preferred are not read.")
        kind = columns[chosen].kind if chosen else ""
        return {"question": guess.question, "answer": chosen} if kind == TEXT else {}
    if not guess.question or not guess.answer:
        return {}
    if guess.form == CHAT:
        notes.append(f"The conversations of {guess.messages} are not read.")
    made = {"question": _asked(guess), **_answered(part, notes)}
    template = made["question"].get("template") if isinstance(made["question"], dict) else None
    # Letters that answers have name choices.
    is_objects = guess.choices and columns[guess.choices].kind == OBJECTS
    if template and guess.choices and (is_objects or _has_letters(part, made["answer"])):
        made["question"] = {"template": template.replace(f"{{{guess.choices}}}", "{lettered}")}
        made["parts"] = {"lettered": {"join": guess.choices, "item": "{letter}) {text}"}}
    return made


def _has_letters(part: Part, answer: Any) -> bool:
    """Whether answers are letters of choices that have none themselves."""
    if isinstance(answer, dict) and answer.get("as") == "both":
        lists = part.values(part.guess.choices)
        firsts = [str(found[0]).strip() for found in lists if isinstance(found, list) and found]
        return not any(re.match(r"\(?A[).]", first) for first in firsts)
    return "join" in answer


def _asked(guess: Guess) -> Any:
    """The question, with its context before it and its choices behind it."""
    assert guess.question is not None
    names = [guess.context, guess.question, guess.choices]
    if guess.form == INSTRUCT:  # its input is what the instruction speaks of, and follows it
        names = [guess.question, guess.context, guess.choices]
    lines = [f"{{{name}}}" for name in names if name]
    if guess.letters:
        lettered = (f"{letter(n)}) {{{name}}}" for n, name in enumerate(guess.letters))
        lines.append("\n".join(lettered))
    names += guess.letters
    if len(lines) == 1 or any("{" in name or "}" in name for name in names if name):
        return guess.question
    return {"template": "\n\n".join(lines)}


def _answered(part: Part, notes: list[str]) -> Table:
    """The answer and the thought."""
    guess, columns = part.guess, part.columns.by_name
    answer, cot = guess.answer, guess.cot
    assert answer is not None
    made: Table = {"answer": answer}
    column = columns[answer]
    is_list = guess.choices and columns[guess.choices].kind in (TEXTS, OBJECTS)
    of = guess.choices if is_list else [*guess.letters]
    if of and column.kind in (TEXT, NUMBER):
        label = f"{of.rpartition('.')[0]}.label" if isinstance(of, str) else ""
        is_labelled = label in columns and columns[label].kind == TEXTS
        labels = {"labels": label} if is_labelled else _numbered(part, answer, of, notes)
        made["answer"] = {"choice": answer, "of": of, "as": _as(part, answer, cot), **labels}
    elif column.kind == TRUTH:
        made["answer"] = {"column": answer, "map": {"true": "yes", "false": "no"}}
    elif column.kind == TEXTS:
        made["answer"] = _first_of(part, answer, notes)
    if guess.firsts:
        return made | {"cot": {"first": list(guess.firsts)}}
    if cot is not None:
        return made | {"cot": _thought(part, cot)}
    return made | _cut(part, answer) if made["answer"] == answer else made


def _first_of(part: Part, answer: str, notes: list[str]) -> Any:
    """The first of a list of answers; all of them where they name choices."""
    lists = (found for found in part.values(answer) if isinstance(found, list))
    several = sum(len({*map(str, found)}) > 1 for found in lists)
    every = {"join": answer, "by": ", "}
    if part.guess.choices or part.guess.letters:
        return every
    said = f", though {several:,} rows have several: answer = {toml(every)} reads all"
    notes.append(f"The first one of {answer} is read{said if several else ''}.")
    return f"{answer}.0"


def _thought(part: Part, cot: str) -> Any:
    """The thought of a column, without what marks it; of several, the first that is right."""
    column = part.columns.by_name[cot]
    if column.kind == TEXT:
        if _share(part, cot, _CLOSE) >= _MOST:
            return {"think": cot}
        found = tags_of(part.texts(cot))
        is_cut = found is not None and found.share >= _MOST
        return {"column": cot, "between": list(found.tags[:2])} if found and is_cut else cot
    texts = [str(each) for v in part.values(cot) if isinstance(v, list) for each in v]
    if column.kind != TEXTS or sum(_CLOSE in text for text in texts) < _MOST * len(texts):
        return cot
    verdicts = [
        name
        for name, other in part.columns.by_name.items()
        if other.kind == TRUTHS and other.filled == column.filled
    ]
    if not verdicts:
        return {"think": f"{cot}.0"}
    return {"pick": cot, "where": [verdicts], "think": True}


def _numbered(part: Part, answer: str, of: str | list[str], notes: list[str]) -> Table:
    """What says how an answer names a choice, by what fits every row; a note where two ways do.

    Places count from 0, or by labels from 1; a text that is a number may be that of a choice.
    """
    pairs = []
    for row in part.sample:
        value = value_at(row, answer)
        found = value_at(row, of) if isinstance(of, str) else [value_at(row, each) for each in of]
        if value in (None, "") or isinstance(value, bool) or not isinstance(found, list):
            continue
        pairs.append((str(value).strip(), [str(each).strip() for each in found]))
    by = {"by": way} if (way := way_of(pairs)) else {}
    if not pairs or not all(_NUMBER.fullmatch(text) for text, _ in pairs):
        return by  # letters or texts
    labels = [str(place) for place in range(1, max(len(texts) for _, texts in pairs) + 1)]
    starts = [s for s in (0, 1) if all(0 <= int(t) - s < len(texts) for t, texts in pairs)]
    is_text = all(text in texts for text, texts in pairs)
    if is_text and any(texts[int(t) - s] != t for s in starts for t, texts in pairs):
        ways = f'by = "place" from 0, labels = {toml(labels)} from 1, or by = "text"'
        notes.append(f"{answer} may be the places or the texts of choices: write {ways}.")
        return {}
    if starts == [0, 1]:
        cure = 'From 1: add labels = ["1", "2", ..].'
        notes.append(f"{answer} counts from 0: no row has a 0. {cure}")
    return {"labels": labels} if starts == [1] else by


def _as(part: Part, answer: str, cot: str | None) -> str:
    """How the right choice is written: with its letter where thoughts end in letters, too."""
    letters = [
        re.search(rf"\b{value}\b[\s.)]*$", thought) is not None
        for row in part.sample
        if isinstance(value := value_at(row, answer), str)
        and re.fullmatch("[A-Z]", value)
        and isinstance(thought := value_at(row, cot) if cot else None, str)
    ]
    return "both" if letters and sum(letters) / len(letters) >= 0.5 else "text"


def _cut(part: Part, answer: str) -> Table:
    """The answer divided at a mark that most rows have."""

    def by(cot: Any = answer, **way: Any) -> Table:
        return {"answer": {"column": answer, **way}, "cot": cot}

    found = tags_of(texts := part.texts(answer))
    if found is not None and found.share >= _MOST and found.tags != THINK:
        thought = {"column": answer, "between": list(found.tags[:2])}
        if len(found.tags) == len(THINK):
            return by(thought, after=found.tags[1], which="last")
        return by(thought, between=list(found.tags[2:]), which="last")
    if _share(part, answer, _CLOSE) >= _MOST:
        # Of an empty thought `think` takes what follows, which is the answer here.
        is_open = _share(part, answer, _OPEN) >= _MOST
        thought = {"column": answer, "between": [_OPEN, _CLOSE]} if is_open else {"think": answer}
        return by(thought, after=_CLOSE, which="last")
    for mark in _MARKS:
        if _ends_by(texts, f"\n{mark}"):
            return by({"column": answer, "before_line": mark}, after_line=mark)
    if _share(part, answer, box := "\\boxed{") >= _MOST:
        return by(between=[box, "}"], which="last", braces=True)
    return {}


def _ends_by(texts: Sequence[str], mark: str) -> bool:
    """Whether one short line stands behind the last mark, in nine of ten texts."""
    ends = [text.rpartition(mark)[2].strip() for text in texts if mark in text]
    return 0 < _ENDS * len(texts) <= sum(0 < len(end) <= _LINE and "\n" not in end for end in ends)


def _share(part: Part, name: str, mark: str) -> float:
    """The share of rows whose text in a column has a mark."""
    texts = part.texts(name)
    return sum(mark in text for text in texts) / max(len(texts), 1)


def _apart(read: Sequence[tuple[Part, Table]]) -> list[Table]:
    """Each form with the columns by which its rows differ from those of the other forms."""
    forms = []
    for number, (part, form) in enumerate(read, 1):
        own = [name for name in part.columns.by_name if "." not in name]
        others = {n for each, _ in read if each is not part for n in each.columns.by_name}
        used = {str(role).partition(".")[0] for role in vars(part.guess).values()}
        own.sort(key=lambda name: (name in others, name not in used))
        marks: Table = {"name": f"form_{number}", "when": own[:_NAMED]}
        if {*own} <= others:
            marks["unless"] = sorted(name for name in others - {*own} if "." not in name)[:_NAMED]
        forms.append(marks | form)
    return forms


def toml(value: object) -> str:
    """A value as TOML in one line, tables included."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return toml_value(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml(key)


def recipe(
    head: Table, forms: Sequence[Table], notes: Sequence[str], parts: Sequence[Part]
) -> Proposal:
    """A recipe, and what it reads of the rows that were looked at. notes: its first lines."""
    lines = [f"# {note}" for note in dict.fromkeys(notes)]
    lines += [f"{key} = {toml(value)}" for key, value in head.items()]
    for form in forms:
        lines += ["", "[[form]]"] if len(forms) > 1 else []
        lines += [f"{_key(key)} = {toml(value)}" for key, value in form.items()]
    inbox = head.get("kind", Proposal.inbox)
    try:
        (text := "\n".join(lines) + "\n").encode()  # a column's name may hold what no file can
        return replace(tried(read_recipe(text), parts), text=text, inbox=inbox)
    except ValueError as error:
        is_chat = inbox != Proposal.inbox
        return Proposal(text if is_chat else "", refused=Counter([str(error)]), inbox=inbox)


def read_recipe(text: str) -> Corpus | Chat:
    """What the text of a recipe says. Raises ValueError for a value that is wrong."""
    raw = tomllib.loads(text)
    return chat_of_table(raw) if raw.get("kind") == "chat" else checked(raw, raw["name"])


def tried(corpus: Corpus | Chat, parts: Sequence[Part]) -> Proposal:
    """What becomes of the rows that were looked at, by the laws of a build; without its text.

    Raises ValueError for a value of the corpus that is wrong.
    """
    made, answers = Proposal(), Counter[str]()
    read = _talks(corpus, made) if isinstance(corpus, Chat) else _records(corpus, made, answers)
    for place, row in enumerate((row for part in parts for row in part.sample), 1):
        made.rows += 1
        try:
            read(row, place)
            made.good += 1
        except Unfit as unfit:
            rule = unfit.rule
            if isinstance(corpus, Chat):
                cure = CHAT_CURES.get(unfit.reason, "")
            else:
                rule, cure = with_columns(unfit, corpus, row).rule, ""
                if unfit.reason == "question" and (name := corpus.question_column) in row:
                    keep = f"keep = [{{ column = {toml(name)}, present = true }}]"
                    cure = f"{keep} leaves such rows out"
            rule = f"{rule}: {cure}" if cure else rule
            (made.left_out if is_left_out(unfit.reason) else made.refused)[rule] += 1
    if len(answers) == 1 and made.good >= _SEVERAL and (answer := answers.most_common(1)[0][0]):
        made.unread[f"one and the same answer, {toml(cut(answer, _SHOWN))}"] = made.good
    made.unread += Counter()  # without what was not there
    return made


Read = Callable[[Mapping[str, Any], int], None]


def _records(corpus: Corpus, made: Proposal, answers: Counter[str]) -> Read:
    """What reads a row as a record, and counts what it gives."""
    reader, rules, is_empty = Reader(corpus), Rules(corpus, None), emptiness(corpus)

    def read(row: Mapping[str, Any], place: int) -> None:
        rules.check_row(row)
        if (record := reader.read(row, (0, place))) is not None:
            made.unread["no text, which are kept"] += is_empty(record)
            is_thought = bool(record.cot) and not record.answer.strip()
            made.unread["a thought and an empty answer, which are kept"] += is_thought
            rules.check(record, row)
            answers[record.answer] += 1

    return read


def _talks(chat: Chat, made: Proposal) -> Read:
    """What reads a row as a conversation, or as a message of a tree, and counts what it gives."""
    reader = Messages(chat)
    trees = None if chat.tree is None else Trees(chat)

    def read(row: Mapping[str, Any], place: int) -> None:
        if trees is not None:
            trees.add(row, (0, place))
            return
        talk = reader.read(row)
        _ = talk.json
        made.unread.update({*_unread(talk)})

    return read


def _unread(talk: Talk) -> Iterator[str]:
    """Yield what of a conversation is not read as it may be meant."""
    for key in talk.ignored:
        if key not in _FACTS:
            yield f"messages whose key {key} nothing reads: name it in `keys` if it is one of these"
    for each in talk.messages:
        if token := _TOKEN.search(each.content):
            yield f"{token[0]} in a message, which stays text: `marks` name what is none"
        if each.channel == "final" and any(tag in each.content for tag in THINK):
            yield f"{THINK[0]} or {THINK[1]} inside an answer, which stays text"
