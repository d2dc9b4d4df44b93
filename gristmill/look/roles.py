"""The columns of rows, and what they mean by the words of their names and by their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any, Final

from gristmill.corpora import account
from gristmill.corpora.account import Column, Columns, ends, fact_of, value_at
from gristmill.corpora.raw.texts import Unfit, flattened
from gristmill.corpora.raw.values import Names, read_of
from gristmill.corpora.trial import toml

SHORT: Final = (account.TEXT, account.NUMBER)
CHOSEN: Final = ("chosen", "preferred")
"""Columns of the better one of two answers."""
QA, CHAT, INSTRUCT, PLAIN, PREFERENCE = "qa", "chat", "instruct", "text", "preference"
STEPWISE, TREE = "stepwise", "message-tree"
ASKED, UNKNOWN = "question-only", "unknown"


def _words(said: str) -> tuple[str, ...]:
    return tuple(said.split())


def _weights(said: Mapping[Any, str]) -> dict[str, float]:
    return {word: weight for weight, words in said.items() for word in words.split()}


_QUESTION: Final = _weights(
    {10: "question q", 9.5: "problem stem puzzle exercise", 9: "query", 8.5: "instruction"}
    | {8: "prompt", 6.5: "input", 6: "message request user human ask asked task statement"}
    | {4: "hypothesi goal", 3: "source premise", 2: "title context sentence"}
    | {2.5: "article document passage story dialogue en ctx"}
)
_ANSWER: Final = _weights(
    {10: "answer a", 8.5: "response", 8: "reply completion output truth", 7.5: "target"}
    | {7.2: "attempt", 7: "solution", 6: "label assistant gpt bot cop", 5.5: "correct"}
    | {5: "verdict result generation gold summary highlight", 3: "content code expected"}
    | {4: "translation conclusion chosen final"}
)
_THOUGHT: Final = _weights(
    {10: "reasoning rationale thought thinking think cot", 7: "exp step chain"}
    | {9: "scratchpad trajectory trajectorie reason", 5: "solution", 3: "evidence", 2: "generation"}
    | {8: "trace explanation proof justification derivation"}
    | {6: "analysi deduction reflection fact decomposition working monologue"}
)
_TAILS: Final = {"text", "key", "span", "store", "body", "ans", "string"}
"""Words behind the word of a role, as in `question_text`."""
_VERBS: Final = {"is", "has", "num", "number", "system", "template"}
_LESS: Final = _words(
    "original candidate previous prev wrong incorrect negative old bad extracted alternative seed "
    "raw other rejected distractor backup student model predicted prediction pred"
)
_CONTEXT: Final = _words(
    "context passage hint background input paragraph premise body article story theory table"
)
_CHOICES: Final = _words("choice option candidate endings ending alternative")
_NUMBERED: Final = (*_CHOICES, "sol", "answer")
"""Names of choices that have a column each, with a number at the end."""
_PLAIN: Final = _words("text content body document article markdown code passage story")
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_]+")
LONG: Final = 40
"""Characters of a text that is long, on average."""
_SHORT: Final = 15
_NOTHING: Final = _words("none null n/a na nan unknown -")
"""Words that stand for no answer."""
_LEAST: Final = 2.0
_TALKS: Final = _words("messages conversations conversation contents prompt input")
_ASKS: Final = 9.0
"""Score of a question beside which plain text is no dataset of its own."""
_MARKS: Final = "?\uff1f\u061f"
_PROVED: Final = 0.8
_HALF: Final = 0.5
_FEW: Final = 3
"""Signs of verdicts, as of a step that is right, wrong or neither."""
_NEVER: Final = float("-inf")
_FIT: Final = {
    **dict.fromkeys((account.OBJECT, account.OBJECTS, account.MESSAGES), _NEVER),
    **{account.TRUTH: -3.0, account.TRUTHS: -3.0, account.TEXTS: -2.0, account.LIST: -9.0},
}
"""What the type of a column adds for an answer."""
_SIGNS: Final = re.compile(r"[\W_]*(?:(?:[A-J]+|[a-z]|[0-9]+)(?:[\W_]+|\Z))+")
"""Numbers, or letters as of ten choices: `1.0`, `A,C`, `AB`, `(b)`."""
_ANY: Final = ["\0"] * 26
"""The choices of a text that has them all: nobody knows how many."""
Rows = Sequence[Mapping[str, Any]]
Table = dict[str, Any]


@dataclass(frozen=True)
class Guess:
    """What the columns of rows mean.

    question, answer, cot, messages, choices, context: columns, None where there is none.
    firsts: thoughts, of which the first that is not empty counts. letters: columns of choices.
    is_named: whether names alone say that the answer is a choice. proofs: what values showed.
    """

    form: str
    question: str | None = None
    answer: str | None = None
    cot: str | None = None
    messages: str | None = None
    choices: str | None = None
    context: str | None = None
    firsts: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    is_named: bool = field(default=False, compare=False)
    proofs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def columns(self) -> set[str]:
        """All columns that it names."""
        one = (self.question, self.answer, self.cot, self.messages, self.choices, self.context)
        return {*filter(None, one), *self.firsts, *self.letters}

    def __str__(self) -> str:
        said = {"question": self.question, "answer": self.answer, "thought": self.cot}
        said |= {"messages": self.messages, "choices": self.choices or " ".join(self.letters)}
        said |= {"context": self.context}
        named = ", ".join(f"{role} = {name}" for role, name in said.items() if name)
        return f"{self.form}: {named}" if named else self.form


def words(name: str) -> list[str]:
    """The words of a column's name in lower case; of a plural its singular."""
    found = [word.lower() for word in _WORD.findall(name.replace("CoT", "Cot"))]
    return [w[:-1] if w.endswith("s") and not w.endswith("ss") and len(w) > 3 else w for w in found]


def meant(columns: Columns, rows: Rows) -> Guess:
    """What the columns mean: the first of all claims that the rows prove as a recipe reads them.

    Each row has to name one of the choices, and not all the same. Of an answer and choices by their
    names half of the rows are enough, and letters and numbers are of choices even where they fit
    none, which the recipe refuses.
    """
    for guess in _meanings(columns, rows):
        of = guess.letters or ((guess.choices,) if guess.choices else ())
        if not of:
            break
        found = Choosing(rows, guess.answer or "", of)
        read = found.best(is_whole=not guess.is_named)
        named = [place for own in read for place in own]
        missed, whole = named.count(""), sum(bool(own) and "" not in own for own in read)
        proof = f"{guess.answer} names one of {', '.join(of)} in {whole:,} of {len(rows):,} rows"
        is_shown = whole and 2 * missed <= len(named)
        is_sign = guess.is_named and 2 * found.texts(read) <= len(named)
        if is_sign or (not missed and len({*named}) > 1):
            return replace(guess, proofs=(proof,) if is_shown else ())
    return guess


class Choosing:
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
        if len(of) > 1 and not are_named(of):
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
        """What the way that reads most values reads."""
        every = (self.read(way, is_whole=is_whole) for way in self.ways.values())
        return max(every, key=lambda read: sum(map(bool, chain(*read))))

    def texts(self, read: Sequence[Sequence[str]]) -> int:
        """How many values that name no choice are texts of more than letters and numbers."""
        pairs = zip(chain(*self._rows), chain(*read), strict=False)
        missed = (item["answer"] for item, place in pairs if not place)
        return sum(isinstance(each, str) and not _SIGNS.fullmatch(each) for each in missed)


def _meanings(columns: Columns, rows: Rows) -> Iterator[Guess]:
    """Yield what the columns may mean, the boldest claim first; the last one claims nothing.

    Names say which column may have a role, and values that a long text ends in a short one. That
    an answer names one of `choices` or `letters` is for the reader of the rows to prove.
    """
    known = {
        name: column
        for name, column in columns.by_name.items()
        if column.kind not in (account.EMPTY, account.BYTES) and not name.startswith("__")
    }
    texts = (name for name, column in known.items() if column.kind == account.TEXT)
    values = ((name, [v for row in rows if (v := value_at(row, name))]) for name in texts)
    facts = {name for name, own in values if own and fact_of(name, own, ())}
    said = guess(known, columns.rows, facts)
    if said.form in (QA, INSTRUCT, ASKED):
        if found := _of_steps(said, known, rows):
            yield found
            return
        for of in choices_of(known):
            if len(of) == 2 and not are_named(of):
                continue
            rest = {name: column for name, column in known.items() if name not in of}
            other = guess(rest, columns.rows, facts)
            is_asked = other.question is not None and other.form in (QA, INSTRUCT, ASKED)
            short = [n for n in rest if n != other.question and rest[n].kind in SHORT]
            for name in ([other.answer] if other.answer else short) if is_asked else ():
                one: dict[str, Any] = {"letters": of} if len(of) > 1 else {"choices": of[0]}
                is_named = name == other.answer and are_named(of)
                yield _without_context(
                    replace(other, form=QA, answer=name, is_named=is_named, **one), rows
                )
        if said.answer is not None and said.cot is None and not said.firsts:
            said = _with_thought(said, known, rows)
    yield _without_context(said, rows)


def _of_steps(said: Guess, known: Mapping[str, Column], rows: Rows) -> Guess | None:
    """A guess without an answer, where that is the number of a step, or a sign of each step."""
    if said.answer is None or (said.cot and known[said.cot].kind != account.TEXTS):
        return None
    pairs = [(value_at(row, said.answer), value_at(row, said.cot or "")) for row in rows]
    lists = [v for v, _ in pairs if isinstance(v, list) and all(isinstance(e, str) for e in v)]
    signs = {each for own in lists for each in own}
    if len(signs) <= _FEW and any(len(own) > len({*own}) for own in lists):
        return Guess(STEPWISE, said.question)
    is_step = said.cot and all(
        type(n) in (int, float) and isinstance(steps, list) and n in range(-1, len(steps))
        for n, steps in pairs
    )
    proof = f"{said.answer} is the number of one of {said.cot}"
    is_one = is_step and len({number for number, _ in pairs}) > 1
    return Guess(UNKNOWN, said.question, proofs=(proof,)) if is_one else None


def _without_context(said: Guess, rows: Rows) -> Guess:
    """The guess without a context that half of the questions hold."""
    held = _share(rows, said.context or "", said.question or "", str.__contains__)
    return replace(said, context=None) if held >= _HALF else said


def guess(known: Mapping[str, Column], rows: int, facts: Collection[str] = ()) -> Guess:
    """What columns mean by names. facts: columns that say what a row is, and so ask nothing."""
    if found := _odd_form(known):
        return found
    asking = {name: column for name, column in known.items() if name not in facts}
    question = _best(asking, _QUESTION, _asking)
    # Messages with that name come first, else the longest.
    talks = [name for name, column in known.items() if column.kind == account.MESSAGES]
    place = {name: at for at, name in enumerate(reversed(_TALKS), 1)}
    talk = max(talks, key=lambda name: (place.get(name, 0), known[name].mean), default=None)
    answer, cot = _answer_and_thought(known, question)
    if question is None and answer is not None and talk is None:
        # The plain text that stands beside a label or an answer.
        texts = (n for n in ("text", "content", "sentence") if n in known and n != answer)
        question = next((n for n in texts if n != cot and known[n].kind == account.TEXT), None)
    stem = cot.rstrip("0123456789") if cot is not None else None
    alike = sorted(name for name in known if name != stem and name.rstrip("0123456789") == stem)
    firsts = tuple(alike) if len(alike) > 1 else ()
    if talk is not None:
        return Guess(CHAT, question, answer, cot, talk, firsts=firsts)
    if question and answer:
        lower = {n.lower(): n for n in known if known[n].kind == account.TEXT}
        context = next((lower[each] for each in _CONTEXT if each in lower), None)
        context = None if context in (question, answer, cot) else context
        is_instruct = context == "input" and "instruction" in known and cot is None
        form = INSTRUCT if is_instruct else QA
        return Guess(form, question, answer, cot, context=context, firsts=firsts)
    # A text for itself by its whole name, or as the longest one, always there.
    most = max((each.chars for each in known.values() if each.kind == account.TEXT), default=0)
    ends = [n for n in known if known[n].kind == account.TEXT and {*words(n)[-1:]} & {*_PLAIN}]
    longest = [n for n in ends if (known[n].chars, known[n].filled) == (most, rows)]
    plain = [n for n in ends if len(words(n)) == 1 or n in longest]
    asks = question not in (None, *plain) and _score(question or "", _QUESTION) >= _ASKS
    if plain and answer in (None, *plain) and not asks:
        return Guess(PLAIN, max(plain, key=lambda name: known[name].chars))
    if question is not None:
        return Guess(ASKED, question, None, cot)
    return Guess(QA, *pair) if (pair := _pair(known)) else Guess(UNKNOWN, None, answer, cot)


def _odd_form(known: Mapping[str, Column]) -> Guess | None:
    """A form that is no question with its answer, by names and types."""
    firsts = {word for name in known for word in words(name)[:1]}
    lasts = {(known[name].kind, *words(name)[-1:]) for name in known}
    if {"chosen", "rejected"} <= firsts or {"preferred", "dispreferred"} <= firsts:
        return Guess(PREFERENCE, _best(known, _QUESTION, _asking))
    if any("parent" in words(name) for name in known) and {"role", "text"} <= {*known}:
        return Guess(TREE)
    steps = {(account.TEXTS, "completion"), (account.TEXTS, "step")}
    is_judged = (account.TRUTHS, "label") in lasts and steps & lasts
    return Guess(STEPWISE, _best(known, _QUESTION, _asking)) if is_judged else None


def _score(name: str, weights: Mapping[str, float]) -> float:
    """How well a name says a role: by its last word, less by another one."""
    parent, _, last = name.rpartition(".")
    if parent and last in ("text", "value", "spans"):  # as `answers.text`
        parent, _, last = parent.rpartition(".")
    said = [word for word in words(last) if not word.isdigit()]
    if {*said[1:]} & {"a", "q"} or {"input", "output"} <= {*said}:  # a letter; tests of a program
        return 0.0
    said = said[:-1] if len(said) > 1 and len(said[-1]) == 1 else said  # as `response_j`
    if not said or (len(said) > 1 and said[0] in _VERBS):
        return 0.0
    best = weights.get(said[-1], 0.0)
    if not best and len(said) > 1 and said[-1] in _TAILS:
        best = weights.get(said[-2], 0.0) - 3.0
    if best <= 0:
        return 0.0
    best -= 3.0 * len({*_LESS}.intersection(said[:-1]))
    best += 1.0 * ("target" in said[:-1] or "final" in said[:-1])
    best -= 0.1 * (len(said) - 1) + 0.3 * any(char.isdigit() for char in last) + 0.5 * bool(parent)
    return best - 3.0 * any(word in ("meta", "metadata", "info", "extra") for word in words(parent))


def _best(
    known: Mapping[str, Column],
    weights: Mapping[str, float],
    fits: Callable[[Column], float],
    besides: tuple[str | None, ...] = (),
) -> str | None:
    """The column whose name says a role best. fits: what its values add; -inf for no such role."""
    scores = {
        name: score + fits(column)
        for name, column in known.items()
        if name not in besides and (score := _score(name, weights)) > 0
    }
    name = max(scores, key=lambda each: scores[each], default=None)  # of equal ones the first
    return name if name is not None and scores[name] >= _LEAST else None


def _asking(column: Column) -> float:
    """What values add: short ones, and few that come again and again, are rarely questions."""
    if column.kind != account.TEXT:
        return _NEVER
    is_few = sum(column.values.values()) == column.filled > max(20, 3 * len(column.values))
    return _NEVER if is_few and column.mean < LONG else -4.0 * (column.mean < _SHORT)


def _answer_and_thought(
    known: Mapping[str, Column], question: str | None
) -> tuple[str | None, str | None]:
    def answers(column: Column) -> float:
        said = {value.strip('[]" ').lower() for value in column.values}
        is_nothing = column.values.total() == column.filled and said <= {*_NOTHING}
        # One number for each choice, as 1 and 0.
        is_listed = column.kind == account.LIST and words(column.name)[-1:] == ["label"]
        is_close = bool(begun) and words(column.name)[: len(begun)] == begun
        return (_NEVER if is_nothing or is_listed else _FIT.get(column.kind, 0.0)) + 2.0 * is_close

    def thoughts(column: Column) -> float:
        is_long = column.mean >= LONG and column.kind in (account.TEXT, account.TEXTS)
        return 0.0 if is_long else _NEVER

    cot = _best(known, _THOUGHT, thoughts, (question,))
    if cot is not None and _score(cot, _ANSWER) >= _score(cot, _THOUGHT):
        cot = None  # as `solution`: an answer, where no other is there
    begun = words(cot)[:-1] if cot else []
    answer = _best(known, _ANSWER, answers, (question, cot))
    return answer, cot or _best(known, _THOUGHT, thoughts, (question, answer))


def choices_of(known: Mapping[str, Column]) -> Iterator[tuple[str, ...]]:
    """Yield what may be choices: columns whose names differ at the end, a list, their text."""
    for name in [name for name in known if name[-1:] in ("a", "A", "0", "1")]:
        names = (name[:-1] + chr(ord(name[-1]) + place) for place in range(26))
        found = tuple(takewhile(known.__contains__, names))
        if len(found) > 1 and {known[each].kind for each in found} <= {
            account.TEXT,
            account.NUMBER,
        }:
            yield found
    lists = [n for n, column in known.items() if column.kind in (account.TEXTS, account.OBJECTS)]
    # Those in an object are the columns of a table, unless their name says it.
    yield from ((n,) for n in lists if "." not in n or (_is_named(n) and words(n)[-1] != "label"))
    named = [name for name in known if words(name) in (["option"], ["choice"])]
    yield from ((name,) for name in named if known[name].kind == account.TEXT)


def _is_named(name: str) -> bool:
    return not {*_CHOICES}.isdisjoint(words(name))


def are_named(of: Sequence[str]) -> bool:
    """Whether names call columns choices, or one: three letters, or a word of choices."""
    if len(of) == 1:
        return _is_named(of[0])
    stem = {*words(of[0][:-1])[-1:]}
    return bool(stem & {*_NUMBERED}) if of[0][-1] in "01" else len(of) > 2


def _pair(known: Mapping[str, Column]) -> tuple[str, str] | None:
    """Question and answer, the shorter one of two, of columns whose names say nothing."""
    names = [n for n, column in known.items() if column.kind == account.TEXT and "." not in n]
    weights = (_QUESTION, _ANSWER, _THOUGHT)
    is_said = any("system" in words(n) or _score(n, each) for n in names for each in weights)
    if not 2 <= len(names) == len(known) <= 3 or is_said:
        return None
    asked = [name for name in names if any(mark in known[name].example for mark in _MARKS)]
    names.sort(key=lambda name: asked[:1] != [name])  # the first one, unless another one asks
    short, *long = sorted(names[1:], key=lambda name: known[name].mean)
    is_long = long and known[long[0]].mean >= max(LONG, 1.5 * known[short].mean)
    return names[0], short if is_long else names[1]


def _with_thought(said: Guess, known: Mapping[str, Column], rows: Rows) -> Guess:
    """The guess with the column whose texts end with the short one as the thought of it."""
    answer = known[said.answer or ""]
    shares: dict[tuple[str, str], float] = {}
    for name, column in known.items():
        if column.kind not in SHORT or name in said.columns or "." in name:
            continue
        long, short = (answer, column) if column.mean < answer.mean else (column, answer)
        # Texts may end in others, which are longer, and not all one. What tells the question again
        # is the whole prompt, and a list in a text is none.
        is_text = long.kind == account.TEXT and 2 * long.is_written <= long.filled
        is_long = is_text and long.mean >= max(LONG, 1.5 * short.mean)
        is_long = is_long and len(short.values) != 1
        if is_long and _share(rows, said.question or "", long.name, str.__contains__) < _HALF:
            shares[long.name, short.name] = _share(rows, short.name, long.name, ends)
    best = max(shares, key=lambda pair: shares[pair], default=None)
    if best is None or shares[best] < _PROVED:
        return said
    proof = f"{best[1]} ends {best[0]} in {shares[best]:.0%} of the rows"
    return replace(said, cot=best[0], answer=best[1], proofs=(*said.proofs, proof))


def _share(rows: Rows, inner: str, outer: str, holds: Callable[[str, str], bool]) -> float:
    """The share of rows in which the text of one column holds that of another."""
    pairs = [(said_of(value_at(row, outer)), said_of(value_at(row, inner))) for row in rows]
    both = [pair for pair in pairs if all(pair)]
    return sum(holds(whole, part) for whole, part in both) / max(len(both), 1)


def said_of(value: Any) -> str:
    """The text of a value, stripped; empty for none and for one that no record may have, as NaN."""
    try:
        return (flattened(value) or "").strip()
    except Unfit:
        return ""
