"""What each column of rows is to a recipe: read, a fact of its row, ignored, or read by nothing.

It is decided by what a column holds in the rows that were looked at; a name decides nothing but
whether true and false may say a split. What the states are, and their lines: `inbox/listing.py`.
Source: `docs/formats/reasoning.md#accounts`.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw import parquet
from gristmill.corpora.raw.chat import messages as chats
from gristmill.corpora.raw.chat.lists import is_nodes, message_list
from gristmill.corpora.raw.chat.marks import message_keys, talk_of
from gristmill.corpora.raw.chat.messages import GUESSED, Messages, chat_of, of_messages
from gristmill.corpora.raw.chat.recipe import Chat, chat_of_table
from gristmill.corpora.raw.corpus_file import checked, columns_by_key
from gristmill.corpora.raw.drops import SPLIT_WORDS, UNCLEAR, corpus_of, kind, words
from gristmill.corpora.raw.reader import ignored_by
from gristmill.corpora.raw.rows import rows, unpacked
from gristmill.corpora.raw.tables import delimiter_of
from gristmill.corpora.raw.texts import Unfit, flattened
from gristmill.inbox.listing import FACT, IGNORED, READ, UNREAD, Account, ColumnState
from gristmill.printable import cut
from gristmill.settings.fields import toml_value
from gristmill.untrusted import child
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import HEAD_BYTES
from gristmill.untrusted.lines import lines

Row = Mapping[str, Any]


class Head(NamedTuple):
    """The first rows of a file. split: of the file; empty where it has none or nobody knows it."""

    split: str
    rows: Sequence[Row]


_MOST: Final = 500
_EXAMPLE: Final = 40
_DEPTH: Final = 2
_LEAST: Final = 3
_MOST_VALUES: Final = 4
_FACTS: Final = (
    ("address", re.compile(r"[a-z][a-z0-9+.-]{1,10}://\S+|[\w.-]*/\S*\.\w{1,8}", re.IGNORECASE)),
    ("time", re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:.*)?")),
    ("hash", re.compile(r"(?=.*\d)(?:[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")),
    ("licence", re.compile(r"(?:mit|apache|cc-?by|cc0|bsd|l?gpl|mpl|odc|isc)[\w.+ -]{0,20}", re.I)),
)
"""What texts are that say something of a row, and the form that each of them has."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,6}(?:[.,/][0-9]+)*%?")
"""A text that is more likely a result than an id."""
_TAIL: Final = 80
_MOST_ROWS: Final = 0.8
_ID: Final = re.compile(r"(?=.*\d)[\w.:/#-]{1,80}")
_VERDICTS: Final = (
    *(("0", "1"), ("no", "yes"), ("false", "true"), ("bad", "good"), ("n", "y")),
    *(("incorrect", "correct"), ("wrong", "right"), ("fail", "pass"), ("failed", "passed")),
)
"""The two values of columns that say whether a row is right; the second is."""
_HELD: Final = {*UNCLEAR, "gold", "challenge", "hidden", "ood"}
_SPLIT_NAMES: Final = {"split", "fold", "partition", "subset"}
_TRUTH: Final = {"0": "0", "1": "1", "false": "0", "true": "1"}


def states_of(
    heads: Sequence[Head],
    read: Mapping[str, str],
    ignored: Collection[str] = (),
    counts: Mapping[str, int] | None = None,
) -> list[ColumnState]:
    """The state of each column, in the order in which the rows have them.

    heads: rows that were looked at, a head for each file. read: the columns, and places `a.b` in
    columns, that the recipe reads, each with the key of the recipe. ignored: names that the recipe
    says to ignore. counts: of names that nothing reads, in how many rows of all they are; default
    none. Of a column that is read in part the other places in it have states of their own.
    """
    numbers = counts or {}
    inner = {name.rpartition(".")[0] for name in read if "." in name}
    names = dict.fromkeys([*_names(heads, inner), *numbers, *ignored])
    above = {name.rpartition(".")[0] for name in names if "." in name}
    states: list[ColumnState | None] = []
    for name in names:
        own = next((each for each in read if each == name or each.startswith(f"{name}.")), None)
        if name in ignored:
            states.append(ColumnState(name, IGNORED))
        elif own is not None:
            # Of a column that is read in part, its places say more.
            is_part = name in above and any(each.startswith(f"{name}.") for each in read)
            states.append(None if is_part else ColumnState(name, READ, read[own]))
        else:
            states.append(_unread(name, heads, numbers.get(name, 0)))
    return [each for each in states if each is not None][:_MOST]


def _names(heads: Sequence[Head], inner: Collection[str]) -> Iterator[str]:
    """Yield the names of columns, and of the places in columns that are read in part."""

    def part(path: str) -> bool:
        return any(each == path or each.startswith(f"{path}.") for each in inner)

    seen: set[tuple[str, ...]] = set()
    for row in (row for head in heads for row in head.rows):
        if inner or (key := tuple(row)) not in seen:
            seen.update([] if inner else [key])
            yield from (name for name, _ in places(row, part))


def places(
    row: Row, enters: Callable[[str], bool] = bool, above: str = "", depth: int = 1
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row, and the places `a.b` in objects, each with its value.

    enters: whether the places in a column are given; default: in each.
    """
    for name, value in row.items():
        yield (path := f"{above}{name}"), value
        if isinstance(value, dict) and depth < _DEPTH and enters(path) and not is_nodes(value):
            yield from places(value, enters, f"{path}.", depth + 1)


def _unread(name: str, heads: Sequence[Head], rows: int) -> ColumnState | None:
    """The state of a column that nothing reads; None for one that is empty wherever it is."""
    found = [
        (head, [value for row in head.rows if _is_filled(value := value_at(row, name))])
        for head in heads
    ]
    values = [value for _, own in found for value in own]
    if not values:
        return ColumnState(name, UNREAD, rows=rows) if rows else None
    # The numbers of rows begin again in each file, and a file of two rows does not show an id.
    facts = {fact_of(name, own, head.rows) for head, own in found if own}
    fact = facts.pop() if len(facts) == 1 else ""
    if fact := fact or fact_of(name, values, [row for head in heads for row in head.rows]):
        return ColumnState(name, FACT, fact, rows)
    said = split_of(name, [(head.split, own) for head, own in found]) or verdict_of(name, values)
    is_split, shown, keep = said or (False, "", "")
    return ColumnState(name, UNREAD, _example(values), rows, shown, keep, is_split=is_split)


def fact_of(name: str, values: Sequence[Any], rows: Sequence[Row]) -> str:
    """What the values of a column say of their rows: an id, a time, a length; empty for a content.

    rows: of which a text may have that length.
    """
    if all(isinstance(each, str) for each in values):
        for what, form in _FACTS:
            if values and all(form.fullmatch(each) for each in values):
                return what
        is_one = len({*values}) == len(values) >= _LEAST
        is_id = (
            is_one and all(map(_ID.fullmatch, values)) and not all(map(_NUMBER.fullmatch, values))
        )
        return "id" if is_id and not _ends_a_text(name, rows) else ""
    if not all(type(each) is int for each in values) or len(values) < _LEAST:
        return ""
    steps = {after - before for before, after in pairwise(values)}
    if steps == {1} and not _ends_a_text(name, rows):
        return "number of the row"
    if all(8e8 < each < 4e9 or 8e11 < each < 4e12 for each in values):
        return "time"
    return "length" if len({*values}) > 1 and _is_length(name, rows) else ""


def _ends_a_text(name: str, rows: Sequence[Row]) -> bool:
    """Whether a value stands near the end of another text in most rows, as an answer does."""
    own = [(row, str(value)) for row in rows if _is_filled(value := value_at(row, name))]
    others = {key for row in rows[:1] for key in row if key != name.partition(".")[0]}
    most = _MOST_ROWS * len(own)
    return any(sum(ends(row.get(key), value) for row, value in own) > most for key in others)


def ends(text: Any, value: str) -> bool:
    """Whether a text that is no address has a value, as a word of it, near its end."""
    if not isinstance(text, str) or _FACTS[0][1].fullmatch(text):
        return False
    tail = text.rstrip()[-max(_TAIL, 2 * len(value)) :]
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", tail) is not None


def _is_length(name: str, rows: Sequence[Row]) -> bool:
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


Rule = tuple[bool, str, str]
"""Whether values say a split and not whether a row is right; the values; the rule `keep`."""


def verdict_of(name: str, values: Sequence[Any]) -> Rule | None:
    """The rule that takes the right rows by a column of two verdicts; None for another column."""
    said = _said(values)
    pair = next((each for each in _VERDICTS if {*said} == {*each}), None)
    if pair is None or len(values) <= _LEAST:
        return None
    right = {value: None for value, word in zip(values, said, strict=True) if word == pair[1]}
    return False, _counted(Counter(said), pair), _keep(name, [*right])


def split_of(name: str, values: Sequence[tuple[str, Sequence[Any]]]) -> Rule | None:
    """The rule that takes one split by a column which names it; None for another column.

    values: of each file, with its split. All have words of splits, of several or of another split
    than that of their file; or all are true or false, where the name has a word of a split, or
    says that it is one.
    """
    every = [value for _, own in values for value in own]
    said = _said(every)
    counts = Counter(said)
    if said and all(_splits_in(each) for each in counts):
        named: dict[str, set[str]] = {}
        for split, own in values:
            named.setdefault(split, set()).update(*map(_splits_in, _said(own)))
        known = {*SPLIT_WORDS.values()}
        if not any(len(each | ({split} & known)) > 1 for split, each in named.items() if each):
            return None
        of_train = {each for each in counts if _splits_in(each) == {"train"}} or {*counts}
        order = sorted(counts, key=lambda each: (_splits_in(each) != {"train"}, each))
    elif {_TRUTH.get(each) for each in said} == {"0", "1"}:
        splits = [SPLIT_WORDS[word] for word in words(name) if word in SPLIT_WORDS]
        if not splits and _SPLIT_NAMES.isdisjoint(words(name)):
            return None
        # Nobody knows which number is for training: the one of most rows is shown.
        is_train = _TRUTH[counts.most_common(1)[0][0]] if not splits else "0"
        is_train = "1" if splits[:1] == ["train"] else is_train
        of_train = {each for each in counts if _TRUTH[each] == is_train}
        order = sorted(counts)
    else:
        return None
    taken = {value: None for value, word in zip(every, said, strict=True) if word in of_train}
    return True, _counted(counts, order), _keep(name, [*taken])


def _splits_in(value: str) -> set[str]:
    """The splits that the words of a value name; what is held out in other words is `other`."""
    found = words(value)
    named = {SPLIT_WORDS[word] for word in found if word in SPLIT_WORDS}
    return named or {"other" for word in found if word in _HELD or word.startswith("eval")}


def _said(values: Sequence[Any]) -> list[str]:
    """Values as texts that may be a verdict or a split; anything else is `?`."""
    said = []
    for value in values:
        is_text = isinstance(value, str) and len(value) < _EXAMPLE
        is_short = is_text or isinstance(value, bool | int | float)
        try:
            said.append((flattened(value) or "").strip().lower() if is_short else "?")
        except Unfit:  # a number that is not finite
            said.append("?")
    return said


def _counted(counts: Mapping[str, int], order: Sequence[str]) -> str:
    return ", ".join(f"{each} ({counts[each]:,})" for each in order)


def _keep(name: str, values: Sequence[Any]) -> str:
    test = f"equals = {toml_value(values[0])}" if len(values) == 1 else f"in = {toml_value(values)}"
    return f"keep = [{{ column = {toml_value(name)}, {test} }}]"


def _example(values: Sequence[Any]) -> str:
    """The first value of a column; of a few that come again and again, each."""
    texts = Counter(map(_shown, values))
    is_few = len(texts) <= _MOST_VALUES and 2 * len(texts) < len(values)
    return f"as {', '.join([*texts] if is_few else [*texts][:1])}"


def _shown(value: Any) -> str:
    """A text in quotes, or another value as JSON; a long one is cut."""
    if isinstance(value, str):
        return toml_value(cut(" ".join(value.split()), _EXAMPLE))
    return cut(json.dumps(value, ensure_ascii=False), _EXAMPLE)


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def value_at(row: Any, path: str) -> Any:
    """The value of a row in a column, or at a place `a.b` in one; None where there is none."""
    if not isinstance(row, Mapping):
        return None
    if path in row:
        return row[path]
    first, _, rest = path.partition(".")
    return value_at(row.get(first), rest) if rest else None


_FILES: Final = 8
"""Files of a split of which rows are looked at, evenly spaced."""
_ROWS: Final = 2000
"""Rows that are looked at, of all files together."""
_LEAST_ROWS: Final = 100
"""Rows of each file, where it has them."""
_SECONDS: Final = 120
T = TypeVar("T")
_COUNTED: Final = "unknown_keys/"
_OF_MESSAGES: Final = "ignored/"
_NO_COUNTS: Final[Mapping[str, float]] = {}


def corpus_columns(
    drop: Path, links: LinkRule, account: Account, counts: Mapping[str, float] = _NO_COUNTS
) -> list[ColumnState]:
    """What becomes of the columns of a drop of a corpus.

    drop: that is not refused. account: whose files are looked at. counts: of a build of these
    files, as its record has them; default: it is not built.
    """
    corpus = corpus_of(drop, links)
    read = columns_by_key(corpus)
    found = _heads(drop, corpus, [*read], links, account)
    return states_of(found, read, ignored_by(corpus), _named(counts, _COUNTED))


def chat_columns(
    drop: Path, links: LinkRule, account: Account, counts: Mapping[str, float] = _NO_COUNTS
) -> list[ColumnState]:
    """As `corpus_columns`, of a drop of conversations; keys of messages are `messages[].name`."""
    chat = chat_of(drop, links)
    found = _heads(drop, chat.corpus, Messages(chat).columns, links, account)
    return _of_chat(chat, found, counts)


def columns_of_recipe(raw: Mapping[str, Any], heads: Sequence[Head]) -> list[ColumnState]:
    """What a recipe does with the columns of rows. raw: its table, which is right."""
    if raw.get("kind") == "chat":
        return _of_chat(chat_of_table(raw), heads, _NO_COUNTS)
    corpus = checked(raw, raw["name"])
    return states_of(heads, columns_by_key(corpus), ignored_by(corpus))


def _named(counts: Mapping[str, float], group: str) -> dict[str, int]:
    return {
        name.removeprefix(group): int(count)
        for name, count in counts.items()
        if name.startswith(group)
    }


def _of_chat(chat: Chat, heads: Sequence[Head], counts: Mapping[str, float]) -> list[ColumnState]:
    messages, begin = Messages(chat), of_messages(chat)
    ignored = [name for name in ignored_by(chat.corpus) if not name.startswith(begin)]
    states = states_of(heads, chats.columns_by_key(chat), ignored, _named(counts, _COUNTED))
    of_items = [n.removeprefix(begin) for n in ignored_by(chat.corpus) if n.startswith(begin)]
    unread = {*_named(counts, _OF_MESSAGES), *of_items}
    items: list[Row] = []
    for row in (row for head in heads for row in head.rows):
        with suppress(Unfit, GristmillError):
            unread.update(messages.read(row).ignored)
            items += _items(row, messages.columns)
    read = {name: "messages" for pair in GUESSED for name in pair}
    read |= {name: f"keys.{key}" for key, name in chat.keys.items()}
    known = [{n: v for n, v in item.items() if n in unread or n in read} for item in items]
    found = states_of([Head("", known)], read, of_items, _named(counts, _OF_MESSAGES))
    return [*states, *(replace(each, name=begin + each.name) for each in found)]


def _items(row: Row, columns: Collection[str]) -> Iterator[Row]:
    """The objects in the lists of a row that the recipe reads: its messages, and turns of them."""
    for name in columns:
        with suppress(GristmillError, TypeError):
            value = message_list(row.get(name))
            yield from (each for each in value or () if isinstance(each, dict))


def _heads(
    drop: Path, corpus: Corpus, read: Collection[str], links: LinkRule, account: Account
) -> list[Head]:
    """The first rows of files of each split; none of a file that cannot be read."""
    chosen = [
        (split, drop / name)
        for split, names in account.taken.items()
        for name in spaced(names)
        if kind(name.rpartition("/")[2]) is not None
    ]
    tables = [path for _, path in chosen if path.name.lower().endswith(".parquet")]
    count = max(_ROWS // max(len(chosen), 1), _LEAST_ROWS)
    known = rows_of_parquet(dict.fromkeys(tables), links, count)
    found = []
    for split, path in chosen:
        own = known.get(path)
        if own is None:
            own = [*_first(rows(path, corpus, links, columns=read), count)]
        found.append(Head(split, own))
    return found


def _first(found: Iterator[tuple[int, Row | Unfit]], count: int) -> Iterator[Row]:
    """Yield the first rows, up to 2 MiB; those before the damage of a file that is damaged."""
    left = parquet.HEAD_ROWS_BYTES
    with suppress(GristmillError, OSError):
        for _, row in islice(found, count):
            if isinstance(row, dict):
                yield row
                left -= sum(len(v) for v in row.values() if isinstance(v, str | list | dict))
                if left < 0:
                    return


def spaced(found: Sequence[T], most: int = _FILES) -> Sequence[T]:
    """Some of what was found, evenly spaced; all of a few."""
    if len(found) <= most:
        return found
    return [found[place * (len(found) - 1) // (most - 1)] for place in range(most)]


def rows_of_parquet(
    paths: Collection[Path], links: LinkRule, count: int = _LEAST_ROWS
) -> dict[Path, list[Row]]:
    """The first rows of Parquet files, of all columns that JSON has; none of damaged files."""
    found = of_parquet(parquet.heads, paths, links, count)
    return {
        path: [parquet.row_of(each) for each in own if isinstance(each, bytes)]
        for path, own in found.items()
        if isinstance(own, list)
    }


def of_parquet(
    work: Callable[..., list[Any]], paths: Collection[Path], links: LinkRule, *more: Any
) -> dict[Path, Any]:
    """What one child process finds in each of some Parquet files; else the error.

    work: what it runs, of `parquet.py`. more: what that takes besides the files.
    """
    good: dict[Path, Any] = {}
    found: dict[Path, Any] = {}
    with ExitStack() as files:
        for path in paths:
            try:
                file = files.enter_context(open_file(path, root=path.parent, links=links))
                parquet.check_begin(os.pread(file.fileno(), HEAD_BYTES, 0), path)
                good[path] = file.fileno()
            except (GristmillError, OSError) as error:
                found[path] = error
        try:
            made = good and child.run(
                work,
                [*good],
                *more,
                file=next(iter(good)),
                descriptors=[*good.values()],
                seconds=_SECONDS + len(good),
            )
            return {**found, **dict(zip(good, made, strict=True))}
        except (GristmillError, OSError) as error:
            if len(good) < 2:
                return {**found, **dict.fromkeys(good, error)}
    for path in good:  # one of them ended the child of all
        found |= of_parquet(work, [path], links, *more)
    return found


_HEADER_CELL: Final = 64
_LINES: Final = 100
"""Lines that the first row of a table may have."""
_NAMES: Final = {"question", "answer", "prompt", "response", "instruction"}
"""Cells of a first line that is no row, whatever the others are."""
_LATEX: Final = re.compile(r"\\(?!n)[A-Za-z]{2}|\\n(?:eq|e|u|abla|ot|i|mid)\b")
_VALUE: Final = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?|.* .*[.?!]", re.DOTALL)


def headless(path: Path, ending: str, links: LinkRule) -> dict[str, Any] | None:
    r"""What a recipe says of a table whose first line is a row, as its cells show; else None.

    A cell of a row is long, ends as a sentence does, or is a number; names may be 0, 1, 2 .. .
    Where the last cell is the letter of one before it, those are choices of a question.
    In a TSV `\n` is a newline, unless its first lines have commands of LaTeX, as `\neq`.
    """
    try:
        with unpacked(path, links) as texts:
            rest = (line.decode("utf-8", "replace") for line in islice(lines(texts, path), _LINES))
            first = next(rest, "").removeprefix("\ufeff")
            delimiter, is_marked = delimiter_of(first.encode(), path)
            if delimiter == "\t":
                cells = first.rstrip("\r\n").split("\t")
            else:  # a cell may have several lines
                cells = next(csv.reader(chain([first], rest), delimiter=delimiter))
            is_row = not _NAMES & {each.lower() for each in cells} and any(
                len(cell) > _HEADER_CELL or _VALUE.fullmatch(cell.strip()) for cell in cells
            )
            is_literal = ending != "tsv" or (
                is_row and any(map(_LATEX.search, chain([first], rest)))
            )
    except (csv.Error, StopIteration):
        return None  # as a table with a header it says what is wrong
    is_numbered = cells == [str(place) for place in range(len(cells))]
    if len(cells) < 2 or is_marked or is_numbered or not is_row:
        return None
    letters = [chr(ord("A") + place) for place in range(len(cells) - 2)]
    more = [f"column_{number}" for number in range(4, len(cells) + 1)]
    names = [*["question", "answer", "rationale"][: len(cells)], *more]
    if len(letters) > 1 and cells[-1].strip() in letters:
        names = ["question", *letters, "answer"]
    return {"columns": names, **({} if is_literal else {"newline": "\\n"})}


TEXT, NUMBER, TRUTH, OBJECT = "text", "number", "truth value", "object"
TEXTS, OBJECTS, TRUTHS, LIST = "list of texts", "list of objects", "list of truth values", "list"
MESSAGES, BYTES, EMPTY = "messages", "bytes", "empty"
_OF_ITEMS: Final = ((str, TEXTS), (bool, TRUTHS), (dict, OBJECTS))
_MOST_TEXTS: Final = 20
_CHARS: Final = 60


@dataclass
class Column:
    """One column, or one place `a.b` in a column of objects.

    filled: rows in which it says something. kinds: how often each type was there. chars: of its
    texts together, of a list those of its items. values: how often each of 20 short values was
    there. is_written: rows whose text is a list or an object in Python's or JSON's notation.
    """

    name: str
    filled: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    chars: int = 0
    values: Counter[str] = field(default_factory=Counter)
    example: str = ""
    is_written: int = 0

    @property
    def kind(self) -> str:
        """The type that most of its values have."""
        return self.kinds.most_common(1)[0][0] if self.kinds else EMPTY

    @property
    def mean(self) -> float:
        """Characters of a value that is not empty."""
        return self.chars / max(self.filled, 1)

    def add(self, value: Any) -> None:
        """Count a value."""
        if (kind := kind_of(value)) == EMPTY:
            return
        self.filled += 1
        self.kinds[kind] += 1
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self.chars += sum(map(len, value)) if kind == TEXTS else len(said)
        self.example = self.example or said[:_CHARS]
        if kind == TEXT and said[:2] in ("[{", "{'", "['", '["', '{"'):
            self.is_written += 1
        if len(said) <= _CHARS and (said in self.values or len(self.values) < _MOST_TEXTS):
            self.values[said] += 1


@dataclass
class Columns:
    """The columns of some rows, places in objects included, in the order of the rows."""

    rows: int = 0
    by_name: dict[str, Column] = field(default_factory=dict)

    def first(self, names: Iterable[str]) -> str | None:
        """The first of some names that is a column, None where none is."""
        return next((name for name in names if name in self.by_name), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.rows += 1
        for name, value in places(row):
            if name not in self.by_name and len(self.by_name) < _MOST:
                self.by_name[name] = Column(name)
            if name in self.by_name:
                self.by_name[name].add(value)


def kind_of(value: Any) -> str:
    """The type of a value, in the words of a table."""
    if not _is_filled(value):
        return EMPTY
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    kind = TEXT if isinstance(value, str) else OBJECT if isinstance(value, dict) else LIST
    if isinstance(value, list):
        fitting = (of for item, of in _OF_ITEMS if all(isinstance(each, item) for each in value))
        kind = next(fitting, LIST)
    return kind if kind in (LIST, TRUTHS) or message_keys(talk_of(value)) is None else MESSAGES


def counted(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """The columns of some rows."""
    made = Columns()
    for row in rows:
        made.add(row)
    return made
