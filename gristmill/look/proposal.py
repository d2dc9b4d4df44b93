"""The recipes that a look proposes, and what they read of the rows that were looked at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from gristmill.corpora.account import value_at
from gristmill.corpora.corpus import CORPORA, NAME
from gristmill.corpora.raw.chat.marks import tags_of
from gristmill.corpora.raw.chat.messages import THINK
from gristmill.corpora.raw.texts import Unfit
from gristmill.corpora.raw.transforms import letter
from gristmill.corpora.raw.values import Names, read_of
from gristmill.corpora.trial import Trial, head_of, literal, read_recipe, recipe_text, toml, tried
from gristmill.look import roles
from gristmill.look.roles import CHOSEN, Column, Columns, Guess, said_of

Table = dict[str, Any]
_MARKS: Final = ("The answer is:", "####")
_CLOSE = THINK[1]
_MOST: Final = 0.8
_HALF: Final = 0.5
_SEVERAL: Final = 3
_ENDS: Final = 0.9
_LINE: Final = 80
"""Characters of the answer behind a mark."""
_PART_BYTES: Final = 10**9
_NAMED: Final = 3
_CHOOSING: Final = (roles.TEXT, roles.NUMBER)
_SIGNS: Final = re.compile(r"[\W_]*(?:(?:[A-J]+|[a-z]|[0-9]+)(?:[\W_]+|\Z))+")
"""Numbers, or letters as of ten choices: `1.0`, `A,C`, `AB`, `(b)`."""
_ANY: Final = ["\0"] * 26
"""The choices of a text that has them all: nobody knows how many."""
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Part:
    """Rows with the same columns, and what these mean. headerless: as of `FileLook`."""

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

    @cached_property
    def form(self) -> tuple[Table, list[str]]:
        """The values of a form that reads the rows, empty where none does, and notes on it."""
        notes: list[str] = []
        return _form(self, notes), notes


def name_of(folder: str) -> str:
    """The name of a folder as that of a corpus, which no built-in one has."""
    words = re.findall(r"[a-z0-9]+", folder.lower())
    made = "_".join(words)[:36].rstrip("_") or "corpus"
    return f"{made}_own" if made in CORPORA or NAME.fullmatch(made) is None else made


class Whole(NamedTuple):
    """What recipes of a folder have in common. licence: and the file that says so. size: bytes."""

    name: str
    licence: tuple[str, str] = ("", "")
    size: int = 0


def proposal(
    whole: Whole,
    parts: Sequence[Part],
    files: Mapping[str, Sequence[str]],
    left: Sequence[str] = (),
) -> Trial:
    """The recipe for the parts that one reads. files: globs by split. left: files for `leave`."""
    read = [(part, form) for part in parts if (form := part.form[0])]
    if not read:
        return Trial()
    notes = [note for part, _ in read for note in part.form[1]]
    begin = {"schema": 1, "name": whole.name}
    head = head_of(begin, whole.licence, files, map(literal, left), notes)
    if not whole.licence[0]:
        notes.append('The licence is unknown: add licence = { id = "...", train = true }.')
    if whole.size > _PART_BYTES:
        head["part_bytes"] = _PART_BYTES
    if bare := next((part for part in parts if part.headerless), None):
        ending = "*.tsv*" if ".tsv" in bare.files[0].lower() else "*.csv*"
        head["headerless"] = {"files": ending, **bare.headerless}
    forms = [form for _, form in read]
    return recipe(head, forms if len(forms) == 1 else _apart(read), notes, parts)


def meant(columns: Columns, rows: Rows) -> Guess:
    """What the columns mean: the first of all claims that the rows prove as a recipe reads them.

    Each row has to name one of the choices, and not all the same. Of an answer and choices by their
    names half of the rows are enough, and letters and numbers are of choices even where they fit
    none, which the recipe refuses.
    """
    for guess in roles.meanings(columns, rows):
        of = guess.letters or ((guess.choices,) if guess.choices else ())
        if not of:
            break
        found = _Choosing(rows, guess.answer or "", of)
        read = found.best(is_whole=not guess.is_named)
        named = [place for own in read for place in own]
        missed, whole = named.count(""), sum(bool(own) and "" not in own for own in read)
        proof = f"{guess.answer} names one of {', '.join(of)} in {whole:,} of {len(rows):,} rows"
        is_shown = whole and 2 * missed <= len(named)
        is_sign = guess.is_named and 2 * found.texts(read) <= len(named)
        if is_sign or (not missed and len({*named}) > 1):
            return replace(guess, proofs=(proof,) if is_shown else ())
    return guess


class _Choosing:
    """How the values of a column name one of some choices, by what a recipe makes of them."""

    def __init__(self, rows: Rows, answer: str, of: Sequence[str]) -> None:
        self._rows: list[list[Table]] = []
        for row in rows:
            value, texts = value_at(row, answer), [value_at(row, each) for each in of]
            if len(of) == 1:
                texts = texts[0] if isinstance(texts[0], list) else _ANY if texts[0] else []
            every = [v for v in (value if type(value) is list else [value]) if v not in ("", None)]
            self._rows.append([{"answer": each, "of": texts} for each in every])
        items = [item for own in self._rows for item in own]
        most = max((len(item["of"]) for item in items), default=0)
        labels = [str(place + 1) for place in range(most)]
        self.ways: dict[str, Table] = {"": {}, 'by = "place" from 0': {"by": "place"}}
        if all(said_of(item["answer"]) in labels for item in items):
            self.ways[f"labels = {toml(labels)} from 1"] = {"labels": labels}
        self.ways |= {f"by = {toml(by)}": {"by": by} for by in ("letter", "text")}
        # Columns with numbers that nothing calls choices are, where the text of one is the answer.
        if len(of) > 1 and not roles.are_named(of):
            self.ways = {"": {"by": "text"}}

    def read(self, way: Table, *, is_whole: bool) -> list[list[str]]:
        """The letters of the choices of each row, empty for a value that names none.

        is_whole: whether there is nothing at all where one names none.
        """
        get = read_of({"choice": "answer", "of": "of", "as": "letter", **way}, Names())
        found: list[list[str]] = []
        for own in self._rows:
            found.append([])
            for item in own:
                try:
                    found[-1].append(get(item) or "")
                except (Unfit, TypeError):
                    if is_whole:
                        return []
                    found[-1].append("")
        return found

    def best(self, *, is_whole: bool) -> list[list[str]]:
        """What the way that reads most values reads; where all have to be read, the first one."""
        every = (self.read(way, is_whole=is_whole) for way in self.ways.values())
        if is_whole:
            return next(filter(None, every), [[""]])
        return max(every, key=lambda read: sum(map(bool, chain(*read))))

    def texts(self, read: Sequence[Sequence[str]]) -> int:
        """How many values that name no choice are texts of more than letters and numbers."""
        pairs = zip(chain(*self._rows), chain(*read), strict=False)
        missed = (item["answer"] for item, place in pairs if not place)
        return sum(isinstance(each, str) and not _SIGNS.fullmatch(each) for each in missed)


def _form(part: Part, notes: list[str]) -> Table:
    guess, columns = part.guess, part.columns.by_name
    if guess.form == roles.PLAIN and guess.question:
        return {"texts": f"{{{guess.question}}}"}
    if guess.form == roles.PREFERENCE:
        chosen = part.columns.first(CHOSEN)
        is_text = guess.question and chosen and columns[chosen].kind == roles.TEXT
        return {"question": guess.question, "answer": chosen} if is_text else {}
    if not guess.question or not guess.answer:
        return {}
    made = {"question": _asked(guess), **_answered(part, notes)}
    if guess.choices and isinstance(made["question"], dict) and _is_lettered(part, made["answer"]):
        template = made["question"]["template"].replace(f"{{{guess.choices}}}", "{lettered}")
        made["question"] = {"template": template}
        made["parts"] = {"lettered": {"join": guess.choices, "item": "{letter}) {text}"}}
    return made


def _is_lettered(part: Part, answer: Any) -> bool:
    """Whether a question shows its choices with letters: objects, or those that answers name."""
    firsts = [str(own[0]) for own in part.values(part.guess.choices) if own and type(own) is list]
    has_own = any(re.match(r"\s*\(?A[).]", first) for first in firsts)
    is_both = isinstance(answer, dict) and answer.get("as") == "both" and not has_own
    kind = part.columns.by_name[part.guess.choices or ""].kind
    return kind == roles.OBJECTS or "join" in answer or is_both


def _asked(guess: Guess) -> Any:
    """The question, with its context before it and its choices behind it."""
    # The input of an instruction is what that speaks of, and follows it.
    names = [guess.context, guess.question][:: -1 if guess.form == roles.INSTRUCT else 1]
    lines = [f"{{{name}}}" for name in (*names, guess.choices) if name]
    named = "\n".join(f"{letter(n)}) {{{name}}}" for n, name in enumerate(guess.letters))
    lines += [named] if named else []
    if len(lines) == 1 or {*"{}"}.intersection("".join(guess.columns)):
        return guess.question
    return {"template": "\n\n".join(lines)}


def _answered(part: Part, notes: list[str]) -> Table:
    """The answer and the thought."""
    guess, columns = part.guess, part.columns.by_name
    made: Table = {"answer": (answer := guess.answer or "")}
    kind = columns[answer].kind
    is_list = guess.choices and columns[guess.choices].kind in (roles.TEXTS, roles.OBJECTS)
    of = guess.choices if is_list else [*guess.letters]
    if of and kind in (roles.TEXT, roles.NUMBER):
        made["answer"] = {"choice": answer, "of": of, **_way(part, answer, of, notes)}
    elif kind == roles.TRUTH:
        made["answer"] = {"column": answer, "map": {"true": "yes", "false": "no"}}
    elif kind == roles.TEXTS and (guess.choices or guess.letters):
        made["answer"] = {"join": answer, "by": ", "}
    elif kind == roles.TEXTS:
        lists = [found for found in part.values(answer) if isinstance(found, list)]
        several = sum(len({*map(str, found)}) > 1 for found in lists)
        every = f"answer = {toml({'join': answer, 'by': ', '})} reads all"
        said = f", though {several:,} rows have several: {every}" if several else ""
        notes.append(f"The first one of {answer} is read{said}.")
        made["answer"] = f"{answer}.0"
    if guess.cot is not None:
        firsts = {"first": [*guess.firsts]}
        return made | {"cot": firsts if guess.firsts else _thought(part, guess.cot)}
    return made | _cut(part, answer) if made["answer"] == answer else made


def _thought(part: Part, cot: str) -> Any:
    """The thought of a column, without what marks it; of several, the first that is right."""
    column = part.columns.by_name[cot]
    texts = [t for v in part.values(cot) for t in (v if isinstance(v, list) else [v]) if t]
    is_marked = _share(texts, _CLOSE) >= _MOST
    if column.kind == roles.TEXT and not is_marked:
        tags = tags_of(part.texts(cot))
        return {"column": cot, "between": list(tags[:2])} if tags else cot
    if column.kind not in (roles.TEXT, roles.TEXTS) or not is_marked:
        return cot
    every = part.columns.by_name.items()
    verdicts = [n for n, e in every if (e.kind, e.filled) == (roles.TRUTHS, column.filled)]
    if column.kind == roles.TEXTS and verdicts:
        return {"pick": cot, "where": [verdicts], "think": True}
    return {"think": cot if column.kind == roles.TEXT else f"{cot}.0"}


def _way(part: Part, answer: str, of: str | list[str], notes: list[str]) -> Table:
    """How an answer names a choice, by what reads every row, and how the record writes it."""
    rows = [row for row in part.sample if roles.kind_of(value_at(row, answer)) in _CHOOSING]
    said = [(said_of(value_at(row, answer)), value_at(row, part.guess.cot or "")) for row in rows]
    # With its letter it is written where thoughts end in letters.
    both = [(text, end) for text, end in said if re.fullmatch("[A-Z]", text) and type(end) is str]
    ends = [re.search(rf"\b{text}\b[\s.)]*$", thought) is not None for text, thought in both]
    made = {"as": "both" if ends and 2 * sum(ends) >= len(ends) else "text"}
    names = f"{of.rpartition('.')[0]}.label" if isinstance(of, str) else ""
    if names in part.columns.by_name and part.columns.by_name[names].kind == roles.TEXTS:
        return made | {"labels": names}
    found = _Choosing(rows, answer, [of] if isinstance(of, str) else of)
    ways = found.ways
    good = [name for name, way in ways.items() if rows and found.read(way, is_whole=True)]
    if good[:1] == [""] and "labels" in "".join(good):
        cure = 'From 1: add labels = ["1", "2", ..].'
        notes.append(f"{answer} counts from 0: no row has a 0. {cure}")
    elif len(good) > 1 and good[0]:
        several = f"{', '.join(good[:-1])}, or {good[-1]}"
        notes.append(f"{answer} may be the places or the texts of choices: write {several}.")
    return made | (ways[good[0]] if len(good) == 1 else {})


def _cut(part: Part, answer: str) -> Table:
    """The answer divided at a mark that most rows have."""

    def by(cot: Any = answer, **way: Any) -> Table:
        return {"answer": {"column": answer, **way}, "cot": cot}

    texts = part.texts(answer)
    if tags := tags_of(texts) or (THINK if _share(texts, _CLOSE) >= _MOST else ()):
        # Of an empty thought `think` takes what follows, which is the answer here.
        is_open = _share(texts, tags[0]) >= _MOST
        thought = {"column": answer, "between": [*tags[:2]]} if is_open else {"think": answer}
        end = {"between": [*tags[2:]]} if len(tags) > len(THINK) else {"after": tags[1]}
        return by(thought, **end, which="last")
    for mark in _MARKS:
        # One short line stands behind the last mark.
        ends = [text.rpartition(f"\n{mark}")[2].strip() for text in texts if f"\n{mark}" in text]
        good = [end for end in ends if 0 < len(end) <= _LINE and "\n" not in end]
        if 0 < _ENDS * len(texts) <= len(good):
            return by({"column": answer, "before_line": mark}, after_line=mark)
    if _share(texts, box := "\\boxed{") >= _MOST:
        return by(between=[box, "}"], which="last", braces=True)
    return {}


def _share(texts: Sequence[Any], mark: str) -> float:
    """The share of texts that have a mark."""
    return sum(mark in str(text) for text in texts) / max(len(texts), 1)


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


_ENOUGH: Final = 0.95


def strongest(offers: Iterable[Trial]) -> Trial | None:
    """The first recipe that reads 95 % of the rows, else the one that reads most; None of none."""
    best: Trial | None = None
    for made in offers:
        best = made if best is None or made.good > best.good else best
        if best.rows and best.good >= _ENOUGH * best.rows:
            break
    return best


def recipe(
    head: Table, forms: Sequence[Table], notes: Sequence[str], parts: Sequence[Part]
) -> Trial:
    """A recipe, and what it reads of the rows that were looked at. notes: its first lines."""
    inbox, text = head.get("kind", Trial.inbox), recipe_text(head, forms, notes)
    try:
        text.encode()  # a column's name may hold what no file can
        made = tried(read_recipe(text), (row for part in parts for row in part.sample))
        return replace(made, text=text, inbox=inbox)
    except ValueError as error:
        is_chat = inbox != Trial.inbox
        return Trial(text if is_chat else "", refused=Counter([str(error)]), inbox=inbox)


_TOKENS: Final = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]>|\[/INST\]|<\w{1,20}_\d{1,3}>(?=User|Assistant|Human|System)"
)
_LABEL: Final = re.compile(r"^[ *#]*[^\W\d_]{1,20}:", re.MULTILINE)
"""Begins a line that may be what somebody says."""
_FEW: Final = 0.1
_ONE: Final = re.compile(r"\W?[0-9A-Za-z]\W?")
_NOTHING: Final = {"nan", "null", "none", "n/a", "<na>"}
_CURES: Final = {
    roles.STEPWISE: "completions with a label each: no recipe reads labels: write a row a question",
    roles.PREFERENCE: "pairs of answers for preferences: a recipe reads one answer a row",
}


def part_notes(part: Part) -> Iterator[str]:
    """Yield notes on the columns of rows, whatever recipe reads these."""
    if part.headerless:
        said = ", ".join(part.headerless["columns"])
        yield f"no line of names: the columns are called {said}: see that they are these"
    for column in part.columns.by_name.values():
        if column.is_written > column.filled / 2:
            yield (
                f"{column.name}: lists or objects written as text, which stay texts: write them "
                "as JSON values, of Python's notation by json.dumps(ast.literal_eval(text))"
            )
        none = {value: n for value, n in column.values.items() if value.lower() in _NOTHING}
        if none and column.name in part.guess.columns and column.kind == roles.TEXT:
            said = ", ".join(f"{value} ({count:,})" for value, count in none.items())
            rule = "texts that may stand for nothing, and stay texts"
            yield f"{column.name}: {rule}: {said}: write null"
    if part.guess.form in _CURES:
        yield _CURES[part.guess.form]


def record_notes(part: Part) -> Iterator[str]:
    """Yield notes on what a recipe of a corpus makes of rows: turns, letters, marks as texts."""
    question, answer = part.guess.question, part.guess.answer
    if question is None or part.guess.form not in (roles.PLAIN, roles.QA, roles.INSTRUCT):
        return
    is_pair = part.guess.form != roles.PLAIN and answer is not None
    texts = part.texts(question)
    found = [mark[0] for text in texts if (mark := _TOKENS.search(text))]
    if len(found) < max(_FEW * len(texts), 1):
        labels = Counter(each for text in texts for each in sorted({*_LABEL.findall(text)}))
        both = [each for each, count in labels.most_common(2) if count >= _MOST * len(texts)]
        is_talk = part.guess.form == roles.PLAIN and len(both) == 2 and len(texts) > 2
        found = [" and ".join(both)] if is_talk else []
    if found:
        yield (
            f"{question}: texts with {found[0]}, which stays text: if they are conversations, a "
            'recipe with kind = "chat" and `marks` divides them'
        )
    if is_pair and not part.guess.choices and not part.guess.letters:
        yield from _one_sign(part.columns.by_name[answer or ""])
    if is_pair and (said := _signs_of_steps(part, question, answer or "")):
        yield f"{said}: if they are marks of its steps, no recipe reads these"


def _signs_of_steps(part: Part, question: str, answer: str) -> str:
    """Where answers have a sign for each step: behind each line, or in place of a question's."""
    pairs = zip(part.values(question), part.values(answer), strict=True)
    both = [(Counter(a.split()), Counter(b.split())) for a, b in pairs if type(a) is type(b) is str]
    signs = {word for asked, said in both for word in said - asked}
    # A few signs make even short steps unlike.
    least = _MOST if len(signs) > _SEVERAL else _HALF
    alike = [(a & b).total() >= least * max(a.total(), b.total()) for a, b in both]
    if alike and sum(alike) >= _MOST * len(alike):
        return f"{answer} repeats {question} but for a few words"
    ends = [
        [each.split()[-1] for each in t.splitlines() if each.strip()] for t in part.texts(answer)
    ]
    signs, count = {*chain(*ends)}, sum(map(len, ends))
    # They come again and again, and in other orders.
    is_each = 1 < len(signs) <= _SEVERAL and count >= max(2 * len(ends), len(signs) ** 2 + 1)
    is_each = is_each and len({*map(tuple, ends)}) > 2
    return f"lines of {answer} end in {', '.join(sorted(signs))}" if is_each else ""


def _one_sign(answer: Column) -> Iterator[str]:
    """Yield what answers of a few letters or digits alone may be: places of choices, or words."""
    said, name = sorted(answer.values), toml(answer.name)
    is_few = 3 * len(said) <= answer.filled == answer.values.total()
    if is_few and all(map(_ONE.fullmatch, said)):
        # A person fills it in: as it stands no recipe takes it.
        words = ", ".join(f"{toml(each)} = WORD" for each in said)
        words = f"{{ column = {name}, map = {{ {words} }} }}"
        choice = f"if they name a choice, {{ choice = {name}, of = COLUMN }}"
        rule = f"answers are {', '.join(said)} alone"
        yield f"{rule}: if they stand for words, write answer = {words}; {choice}"
