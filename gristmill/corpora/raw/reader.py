"""A raw row of any form of a corpus to a record. Source: `docs/formats/reasoning.md#forms`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.corpora.corpus import ROLES, Corpus, Form, Value
from gristmill.corpora.raw.rules import Group, Place
from gristmill.corpora.raw.texts import Unfit, chain, extra, flattened, text
from gristmill.corpora.raw.transforms import Get, Pattern, Row, transform
from gristmill.corpora.raw.values import Names, column, of_value, read_of, text_of
from gristmill.corpora.records import Record

_SHOWN: Final = 20
_LONGEST: Final = 500
_MOST_KEYS: Final = 1000
_MARK: Final = "\ufeff"

Read = Callable[[Row], Record]
"""Takes a raw row, gives the record. Raises Unfit."""


_CURE: Final = (
    ': write question = "column" with one of these, or another [[form]], or for a table without '
    "names of columns `headerless`"
)


class Compiled:
    """A form, compiled.

    read: a row to a record, None where rows are steps of a record, which `group` takes.

    Raises ValueError, naming the key, for a value that is wrong.
    """

    def __init__(self, corpus: Corpus, form: Form, names: Names) -> None:
        self.form = form
        self.group: Group | None = None
        self.read: Read | None = None
        own = Names(form.parts, is_plain=not corpus.is_built_in)
        values = _Values(corpus, form, own, names)
        if form.python is not None:
            made = transform(form.python, len(corpus.extra_columns))
            own.columns |= set(made.columns)
            self.read = lambda row: made.read(row, form.name)
        elif form.group is not None:
            self.group = Group(corpus, form, own)
        else:
            self.read = values.reader()
        self.when = form.when or values.needed()
        # A name with dots may be a place in a column, and of a question the column says enough.
        self._places = {
            name: column(name if form.when else name.partition(".")[0], own)
            for name in self.when
            if "." in name
        }
        self.columns = own.columns | {*self.when, *form.unless}

    def fits(self, row: Row) -> bool:
        """Whether a row has this form."""
        for name in self.when:
            if name not in row and (name not in self._places or self._places[name](row) is None):
                return False
        # Most forms have no `unless`, and a generator costs as much as a row.
        return not self.form.unless or all(name not in row for name in self.form.unless)

    def __str__(self) -> str:
        return f"{self.form.name} ({', '.join(self.when)})"


class _Values:
    def __init__(self, corpus: Corpus, form: Form, own: Names, outer: Names) -> None:
        self._corpus, self._form, self._own, self._outer = corpus, form, own, outer

    def needed(self) -> tuple[str, ...]:
        """The columns that a row must have where the form does not say: those of its question."""
        value = self._form.values.get("question")
        names = Names(self._form.parts)
        if value is not None:
            read_of(value, names)
        if "template" in (value or ()) and len(names.columns) > 1:
            return ()
        return named_columns(names)

    def _get(self, name: str) -> Get | None:
        value = self._form.values.get(name)
        if value is None:
            return None
        try:
            if isinstance(value, Mapping) and "from" in value:
                read_of(value, self._own)
                return lambda row: self._outer.file or None
            return read_of(value, self._own)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def reader(self) -> Read:
        shape, values = self._form.name, self._form.values
        asks, says = (_reading(values.get(each), self._own, each) for each in ROLES[:2])
        of_cot = of_value(values.get("cot", "cot"), self._own, "cot")
        question = self._question(asks)
        answer, cot = self._get("answer"), self._get("cot")
        extras = self._extras()
        if cot is None and extras is None and answer is not None:
            get = answer
            name = values["question"]
            if not isinstance(name, str) or "." in name:
                return lambda row: Record(
                    question(row), _plain(get(row), says), None, (), None, shape
                )

            def pair(row: Row) -> Record:
                asked, said = row.get(name), get(row)
                # Without a call for the texts that stay as they are: nearly all of them.
                if type(asked) is not str or "\r" in asked or asked[:1] == _MARK:
                    asked = asks(asked)
                if type(said) is not str or "\r" in said or said[:1] == _MARK:
                    said = says(said)
                return Record(asked, said, None, (), None, shape)

            return pair

        def read(row: Row) -> Record:
            made, steps = (None, None) if cot is None else chain(cot(row), of_cot)
            return Record(
                question(row),
                "" if answer is None else _plain(answer(row), says),
                made,
                () if extras is None else extras(row),
                steps,
                shape,
            )

        return read

    def _question(self, asks: Callable[[Any], str]) -> Callable[[Row], str]:
        get = self._get("question")
        if get is None:
            raise ValueError("question: is missing: name its column")
        value = self._form.values["question"]
        if not isinstance(value, str) or "." not in value:
            return lambda row: _plain(get(row), asks)
        path, _, last = value.rpartition(".")
        outer = column(path, self._own)

        def nested(row: Row) -> str:
            if value not in row:
                held = outer(row)
                if not isinstance(held, dict | list) or (
                    isinstance(held, dict) and last not in held
                ):
                    raise Unfit("shape", f"its {path} is no object with a {last}")
            return asks(get(row))

        return nested

    def _extras(self) -> Callable[[Row], tuple[Any, ...]] | None:
        names = self._corpus.extra_columns
        if not names:
            return None
        gets = [self._get(name) for name in names]
        if self._form.parse is None:
            return lambda row: tuple([None if get is None else extra(get(row)) for get in gets])
        parse = self._form.parse
        try:
            pattern = Pattern(parse["pattern"], parse.get("end", ""))
            source = text_of(parse["column"], self._own)
        except ValueError as error:
            raise ValueError(f"parse: {error}") from error

        def parsed(row: Row) -> tuple[Any, ...]:
            found = pattern.divided(source(row))
            return tuple(
                [
                    found.get(name) if get is None else extra(get(row))
                    for name, get in zip(names, gets, strict=True)
                ]
            )

        return parsed


def _plain(value: Any, reading: Callable[[Any], str]) -> str:
    """A value as a text; most are texts that stay as they are."""
    if type(value) is str and "\r" not in value and value[:1] != _MARK:
        return value
    return reading(value)


def _reading(value: Value | None, names: Names, role: str) -> Callable[[Any], str]:
    """What makes a text of question or answer. A list of several is one where `join` says so."""
    of = of_value(role if value is None else value, names, role)
    if of is None or not isinstance(value, str):
        return lambda found: text(found, of)

    def single(found: Any) -> str:
        if isinstance(found, list) and len(found) > 1:
            cure = f'read all by {{ join = "{of}" }}, or the first as {of}.0'
            raise Unfit("value", f"its {of} is a list of {len(found):,} values: {cure}")
        return text(found, of)

    return single


def named_columns(names: Names) -> tuple[str, ...]:
    """The columns and paths that values name, sorted."""
    # Of a path its first column is there, too.
    paths = {name for name in names.columns if "." in name}
    first = {name.partition(".")[0] for name in paths}
    return tuple(sorted(paths | (names.columns - first)))


def columns_of(corpus: Corpus) -> frozenset[str]:
    """The columns that a form or a rule of a corpus reads, or looks for."""
    from gristmill.corpora.raw.rules import Rules

    names = Names()
    forms = [Compiled(corpus, form, names) for form in corpus.forms]
    rules = Rules(corpus, None)
    return frozenset(rules.columns.union(*(form.columns for form in forms)))


def ignored_by(corpus: Corpus) -> tuple[str, ...]:
    """The columns that the file of a corpus says to ignore; those of the package name none."""
    return tuple(json.loads(corpus.table).get("ignore", ())) if corpus.table else ()


class UnknownKeys:
    """The keys of rows that no form or rule of a corpus reads, and that it does not ignore.

    known: the columns that are read; default None: those of the corpus.
    is_refused: whether a row with one is Unfit; default False: they are counted.
    """

    def __init__(
        self, corpus: Corpus, is_refused: bool = False, known: Collection[str] | None = None
    ) -> None:
        self._known = {*(columns_of(corpus) if known is None else known), *ignored_by(corpus)}
        self._is_refused = is_refused
        self._seen: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.counts: Counter[str] = Counter()
        self.columns: set[str] = set()

    def see(self, row: Row) -> None:
        """Note the keys of a row, whatever becomes of it."""
        known, columns = self._known, self.columns
        columns.update(name for name in row if name in known or len(columns) < _MOST_KEYS)

    def add(self, columns: Iterable[str], counts: Mapping[str, int]) -> None:
        """Note what was seen of other rows."""
        self.columns.update(columns)
        self.counts.update(counts)

    def check(self, row: Row) -> None:
        """Count the keys of a row. Raises Unfit where they are refused."""
        names = tuple(row)
        if (unknown := self._seen.get(names)) is None:
            unknown = tuple(name for name in names if name not in self._known)
            self.see(row)
            if len(self._seen) < _MOST_KEYS:
                self._seen[names] = unknown
        if not unknown:
            return
        for name in unknown:
            if name in self.counts or len(self.counts) < _MOST_KEYS:
                self.counts[name] += 1
        if self._is_refused:
            rule = f"has the keys {', '.join(unknown[:_SHOWN])[:_LONGEST]}, which nothing reads"
            raise Unfit("unknown_keys", f'{rule}: read them, or set unknown_keys to "count"')


class Reader:
    """Reads the rows of one split of a corpus in order.

    corpus: whose rows they are. Raises ValueError for a value that is wrong.

    Memory: nothing for most forms; the rows of the split where they are steps of records.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._names = Names()
        self.forms = [Compiled(corpus, form, self._names) for form in corpus.forms]

    def begin(self, file: str) -> None:
        """The next rows are of this file: its name without the words of splits."""
        self._names.file = file

    def read(self, row: Row, place: Place) -> Record | None:
        """The record of a row; None where it is a part of a record that `rest` gives.

        Raises Unfit for a row that cannot be normalised.
        """
        for form in self.forms:
            if form.fits(row):
                if form.read is not None:
                    return form.read(row)
                if form.group is not None:
                    form.group.add(row, place)
                return None
        known = ", ".join(map(str, self.forms))
        rule = f"{columns_in(row)}; the known forms of {self.corpus.name} are {known}"
        cure = "" if self.corpus.is_built_in else _CURE
        raise Unfit("shape", rule + _nearly(self.forms, row) + cure)

    @property
    def grouped(self) -> int:
        """Number of rows that became parts of records."""
        return sum(form.group.rows for form in self.forms if form.group is not None)

    def rest(self) -> Iterator[tuple[Place, Record]]:
        """Records that were made of several rows, with the place of their first row."""
        for form in self.forms:
            if form.group is not None:
                yield from form.group.records()


def emptiness(corpus: Corpus) -> Callable[[Record], bool]:
    """What says whether a record has no text at all, and raises Unfit for one that lacks a part.

    A record without a text is kept and counted; one without a question, an answer or what the
    corpus calls its evidence is refused.
    """
    evidence = [corpus.extra_columns.index(name) for name in corpus.evidence]

    def is_empty(record: Record) -> bool:
        answer, cot = record.answer, record.cot
        has_text = (answer and not answer.isspace()) or (cot and not cot.isspace())
        if not record.question or record.question.isspace():
            if has_text:
                raise Unfit("question", "its question is empty")
            return True
        if not has_text and not corpus.is_text:
            raise Unfit("answer", "its answer is empty, and it has no chain of thought")
        if evidence and not any((flattened(record.extras[at]) or "").strip() for at in evidence):
            needed = " nor ".join(corpus.evidence)
            raise Unfit("evidence", f"it has neither {needed}")
        return False

    return is_empty


def _nearly(forms: Sequence[Compiled], row: Row) -> str:
    """Which columns a row lacks of the form that comes nearest; empty where it has none of any."""
    lacks = [
        (form, [name for name in form.when if name not in row])
        for form in forms
        if form.group is None
    ]
    near = [
        (len(lacked), form, lacked) for form, lacked in lacks if 0 < len(lacked) < len(form.when)
    ]
    if not near:
        return ""
    _, form, lacked = min(near, key=lambda each: each[0])
    return f"; of {form.form.name} it lacks {', '.join(lacked)}"


def with_columns(unfit: Unfit, corpus: Corpus, row: object) -> Unfit:
    """Why a row is refused; of an answer that is empty, whether its column is missing."""
    answer, cot = corpus.answer_column, corpus.cot_column
    if unfit.reason != "answer" or not isinstance(row, dict):
        return unfit
    if not answer:
        cure = ': write answer = "name of its column", or texts = "{column}" for plain text'
        return unfit if corpus.forms[-1].python else Unfit("answer", unfit.rule + cure)
    if answer in row:
        cure = (
            f": keep = [{{ column = {json.dumps(answer)}, present = true }}] leaves such rows out"
        )
        return unfit if corpus.is_built_in else Unfit("answer", unfit.rule + cure)
    missing = answer if cot is None or cot in row else f"{answer}, and {cot} too"
    return Unfit("answer", f"lacks the column {missing}; {columns_in(row)}")


def columns_in(row: Row) -> str:
    """The part of a rule that says which columns a row has. row: of any form."""
    return f"has the columns {', '.join(list(row)[:_SHOWN])[:_LONGEST]}"
