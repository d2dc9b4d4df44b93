"""A value of a corpus file, compiled once. Source: `docs/formats/reasoning.md#corpus-files`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.corpora.corpus import Value
from gristmill.corpora.raw.texts import (
    ClassName,
    Unfit,
    chain,
    flattened,
    items,
    json_of,
    text,
    truth,
)
from gristmill.corpora.raw.transforms import Get, Row, filled, letter, pieces
from gristmill.settings.fields import did_you_mean

_OPEN, _CLOSE = "<think>", "</think>"
_MOST_PATH: Final = 16
_SHOWN: Final = 40
_FROM_ONE: Final = ': where the first one is 1, say labels = ["1", "2", ..]'
_WAYS: Final = ("place", "letter", "text")
_LETTERS: Final = 26
_MOST_DIGITS: Final = 10
_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]?")
_MOST_PARTS: Final = 200


@dataclass
class Names:
    """What values may name.

    is_plain: whether JSON notation of objects is no text where the recipe does not say `json`.
    columns: that compiled values read, the first part of a path beside the whole.
    busy: parts that are being compiled. parts_read: how often a template names one.
    """

    parts: Mapping[str, Value] = field(default_factory=dict)
    file: str = ""
    is_plain: bool = True
    columns: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    parts_read: int = 0


def column(path: str, names: Names) -> Get:
    """What reads a column, or the place `a.b.0` in one; a column with that very name wins.

    Raises ValueError for an empty name, and for a path with more than 16 steps.
    """
    if not isinstance(path, str) or not path:
        raise ValueError(f"{path!r} is no name of a column")
    steps = path.split(".")
    if len(steps) > _MOST_PATH:
        raise ValueError(f"the path has more than {_MOST_PATH} steps")
    names.columns |= {path, steps[0]}
    if len(steps) == 1:
        return lambda row: row.get(path)

    def read(row: Row) -> Any:
        if path in row:
            return row[path]
        value: Any = row
        for step in steps:
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdecimal() and len(step) < 10:
                value = value[int(step)] if int(step) < len(value) else None
            else:
                return None
        return value

    return read


def read_of(value: Value, names: Names) -> Get:
    """What reads a value of a row: a JSON value of a column, else a text, a list of texts or None.

    Raises ValueError for a table with an unknown or a wrong key.
    """
    if isinstance(value, str):
        return column(value, names)
    if not isinstance(value, Mapping):
        raise ValueError('must be the name of a column, or a table as { column = "name" }')
    for kind, (make, keys) in _KINDS.items():
        if kind not in value:
            continue
        for key in value:
            if key != kind and key not in keys:
                known = ", ".join((kind, *keys))
                raise ValueError(f"unknown key {key!r}{did_you_mean(key, keys)}; known: {known}")
        return make(value, names)
    known = ", ".join(_KINDS)
    first = str(next(iter(value), ""))
    if first in _CUTS:
        raise ValueError(f'`{first}` needs a column: write {{ column = "name", {first} = .. }}')
    raise ValueError(f"has none of the keys {known}{did_you_mean(first, _KINDS)}")


def text_of(value: Value, names: Names) -> Callable[[Row], str]:
    """What reads a value as a text, empty where there is none. Raises ValueError as `read_of`."""
    read, of = read_of(value, names), of_value(value, names)
    return lambda row: text(read(row), of)


def of_value(value: Value, names: Names, role: str = "value") -> str | None:
    """What refusals call a value that must be a text; None where each value has one.

    role: where it is no column.
    """
    if not names.is_plain:
        return None
    if isinstance(value, Mapping):
        value = value.get("column", value.get("join", role))
    return value if isinstance(value, str) else role


def _texts(value: object, what: str, count: int | None = None) -> list[str]:
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(each, str) for each in value)
        or (count is not None and len(value) != count)
    ):
        raise ValueError(f"`{what}` must be a list of {count or 'one or more'} texts")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{what}` must be a text that is not empty")
    return value


def _named(name: str, names: Names) -> Callable[[Row], str]:
    """What reads the text of a name in a template: a part of the form, else a column."""
    if name not in names.parts:
        return text_of(name, names)
    # Parts that name parts twice would double the text, and the work, with each of them.
    names.parts_read += 1
    if names.parts_read > _MOST_PARTS:
        raise ValueError(f"templates name parts more than {_MOST_PARTS} times, one in another")
    if name in names.busy:
        raise ValueError(f"the part {name!r} names itself")
    names.busy.add(name)
    read = text_of(names.parts[name], names)
    names.busy.discard(name)
    return read


def _template(value: Mapping[str, Any], names: Names) -> Get:
    template = _text(value["template"], "template")
    if not any(is_name for _, is_name in pieces(template)):
        raise ValueError('the template names no column: write "{column}", or { constant = "text" }')
    fill = filled(template, lambda name: _named(name, names))
    return lambda row: fill(row) or None


def _cut(value: Mapping[str, Any], names: Names) -> Get:
    """A column, whole or cut at a mark, or with its values mapped to texts."""
    cuts = [key for key in _CUTS if key in value]
    if len(cuts) > 1:
        raise ValueError(f"has both `{cuts[0]}` and `{cuts[1]}`: leave one")
    if (which := value.get("which")) and which not in ("first", "last"):
        raise ValueError("`which` must be first or last")
    if not cuts:
        return column(value["column"], names)
    if cuts[0] == "map":
        return _mapped(value, names)
    read = text_of(value["column"], names)
    cut = _between(value) if cuts[0] == "between" else _at(value, cuts[0])
    return lambda row: cut(read(row))


def _mapped(value: Mapping[str, Any], names: Names) -> Get:
    read, table, other = column(value["column"], names), value["map"], value.get("else")
    name = value["column"]
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table.values()):
        raise ValueError("`map` must be a table of texts")

    def mapped(row: Row) -> Any:
        found = read(row)
        said = flattened(found)
        if said in table and not isinstance(found, ClassName):
            return table[said]
        if said is None and not isinstance(found, ClassName):
            return None
        # A class is its name or its number, and a truth value in a table may be a word.
        also = str(int(found)) if isinstance(found, ClassName) else flattened(truth(found))
        made = {table[each] for each in (said, also) if each in table}
        if len(made) > 1:
            raise Unfit("value", f"{name} is {also}, the class {said!r}: `map` has both, differing")
        if made:
            return made.pop()
        if other is None:
            raise Unfit(
                "value", f"{name} is {(said or also or '')[:_SHOWN]!r}, which `map` has not"
            )
        return other

    return mapped


Cut = Callable[[str], str | None]


def _at(value: Mapping[str, Any], key: str) -> Cut:
    """What is before or behind a mark of a text, or behind the last one that begins a line.

    Before a mark that is not there is the whole text, and behind it nothing.
    """
    mark, is_line = _text(value[key], key), key.endswith("_line")
    if is_line and "\n" in mark:
        raise ValueError(f"`{key}` must be in one line")
    is_last, begin = is_line or value.get("which") == "last", "\n" * is_line
    mark, is_before = begin + mark, key.startswith("before")

    def cut(whole: str) -> str | None:
        text = begin + whole
        place = text.rfind(mark) if is_last else text.find(mark)
        if place < 0:
            return whole if is_before else ""
        return text[:place].strip() or None if is_before else text[place + len(mark) :].strip()

    return cut


def _between(value: Mapping[str, Any]) -> Cut:
    begin, end = _texts(value["between"], "between", 2)
    if not begin or not end:
        raise ValueError("`between` must be two texts that are not empty")
    is_last, has_braces = value.get("which") == "last", value.get("braces", False)

    def cut(whole: str) -> str:
        place = whole.rfind(begin) if is_last else whole.find(begin)
        if place < 0:
            return ""
        place += len(begin)
        stop = _closing(whole, place) if has_braces else whole.find(end, place)
        return "" if stop < 0 else whole[place:stop].strip()

    return cut


def _closing(whole: str, place: int) -> int:
    """Where the brace that is open at a place closes; -1 where it does not."""
    depth = 1
    for index in range(place, len(whole)):
        depth += (whole[index] == "{") - (whole[index] == "}")
        if not depth:
            return index
    return -1


_CUTS: Final = ("before_line", "after_line", "before", "after", "between", "map")


def _join(value: Mapping[str, Any], names: Names) -> Get:
    """The items of a list, each by a template if there is one: a list where a line joins them."""
    read, by = column(value["join"], names), value.get("by", "\n")
    of = of_value(value, names)
    if not isinstance(by, str):
        raise ValueError("`by` must be a text")
    item = value.get("item")
    fill = (
        None
        if item is None
        else filled(_text(item, "item"), lambda name: text_of(name, Names(is_plain=names.is_plain)))
    )

    def joined(row: Row) -> list[str] | str | None:
        found = read(row)
        if found is None:
            return None
        if not isinstance(found, list):
            found = [found]
        if fill is not None:
            found = [
                fill(
                    {"letter": letter(place), "number": place + 1}
                    | (each if isinstance(each, dict) else {"text": each})
                )
                for place, each in enumerate(found)
            ]
        texts = items(found, of)
        return texts if by == "\n" else by.join(texts)

    return joined


def _choice(value: Mapping[str, Any], names: Names) -> Get:
    """One of a list, or of several columns: by place from 0, letter, label or text."""
    read, of, label = column(value["choice"], names), _choices(value, names), value.get("labels")
    labels = column(label, names) if isinstance(label, str) else None
    fixed = None if label is None or labels else _texts(label, "labels")
    shown, by, name = value.get("as", "text"), value.get("by"), value["choice"]
    if shown not in ("letter", "text", "both"):
        raise ValueError("`as` must be letter, text or both")
    if by is not None and by not in _WAYS:
        raise ValueError(f"`by` must be {', '.join(_WAYS[:-1])} or {_WAYS[-1]}")
    if by == _WAYS[1] and label is not None:
        raise ValueError('has both `labels` and by = "letter": leave one')
    way = _Way(name, by, label is not None)

    def chosen(row: Row) -> str | None:
        found, choices = read(row), of(row)
        if found is None:
            return None
        if not isinstance(choices, list):
            raise Unfit("value", f"{value['of']} is no list of choices")
        texts = [_unlettered(each, place) for place, each in enumerate(choices)]
        known = None if label is None else labels(row) if labels else fixed
        place = way.place(found, _fitting(found, texts, choices, known, label is not None), texts)
        if not texts[place]:
            raise Unfit("value", f"{name} is {_stripped(found)[:_SHOWN]!r}, an empty choice")
        both = f"{letter(place)}) {texts[place]}"
        return {"letter": letter(place), "text": texts[place], "both": both}[shown]

    return chosen


class _Way:
    """How the values of a column name choices. Raises Unfit where nobody knows.

    name: of the column. by: what the recipe says, else None. has_labels: whether it names places.

    A value that names two choices is refused, and so is a place in a column of letters or texts,
    or one of these in a column of places: of a column one reading is right.
    """

    def __init__(self, name: str, by: str | None, has_labels: bool) -> None:
        self._name, self._by, self._has_labels = name, by, has_labels
        self._first: tuple[str, str] | None = None

    def place(self, found: Any, fitting: Mapping[str, int], texts: Sequence[str]) -> int:
        """The place of a choice. fitting: by each way that fits. texts: of the choices."""
        if self._by is not None and self._by in fitting:
            return fitting[self._by]
        if self._by is not None or not fitting:
            raise self._none(found, fitting, len(texts))
        way, at = next(iter(fitting.items()))
        if self._has_labels:
            return at
        if len(fitting) > 1 and len({*fitting.values()}) > 1:
            both = " and ".join(f"{texts[at][:_SHOWN]!r} by {way}" for way, at in fitting.items())
            raise self._unfit(found, f"the choice {both}: {self._cure(fitting)}")
        if len(fitting) == 1 and (self._first is None or self._first[0] != way):
            self._first = self._first or (way, str(found)[:_SHOWN])
            other, before = self._first
            if way != other and "place" in (way, other):
                rule = f"a choice by {way}, and {before!r} in a row before, one by {other}"
                raise self._unfit(found, f"{rule}: {self._cure((way, other))}")
        return at

    def _unfit(self, found: Any, rule: str) -> Unfit:
        return Unfit("value", f"{self._name} is {str(found)[:_SHOWN]!r}, {rule}")

    def _none(self, found: Any, fitting: Iterable[str], count: int) -> Unfit:
        """Why a value names no choice of so many."""
        rule = f"none of {count} choices"
        if self._by is not None:
            also = "".join(f", and one by {way}" for way in fitting)
            return self._unfit(found, f"{rule} by {self._by}{also}")
        is_last = not self._has_labels and _stripped(found) == str(count)
        return self._unfit(found, rule + _FROM_ONE * is_last)

    def _cure(self, ways: Iterable[str]) -> str:
        written = " or ".join(f'by = "{way}"' for way in ways)
        return f"write {written} beside choice = {self._name!r}"


def _fitting(
    found: Any, texts: Sequence[str], choices: Sequence[str], labels: Any, has_labels: bool
) -> dict[str, int]:
    """The place of a choice by each way that fits, in the order of `_WAYS`.

    found: a value. choices: `texts` as they are written, with the letters that they begin with.
    labels: what the recipe calls the choices; without these numbers and letters name them.
    """
    count = len(texts)
    if type(found) is int and not has_labels and 0 <= found < count:
        # As most are, and a call for each row would double what it costs.
        said = str(found)
        if said not in texts and said not in choices:
            return {"place": found}
    said, made = _stripped(found), dict[str, int]()
    number = str(int(found)) if isinstance(found, ClassName) else said
    if has_labels:
        known = [_stripped(each) for each in labels[:count]] if isinstance(labels, list) else []
        if fitting := [name for name in (said, number) if name and name in known]:
            made["place"] = known.index(fitting[0])
    else:
        place = _number(number)
        if 0 <= place < count:
            made["place"] = place
        if not isinstance(found, int) and (at := _letter_at(said, place)) < count:
            made["letter"] = at
    if said and (said in texts or said in choices):
        made["text"] = texts.index(said) if said in texts else choices.index(said)
    return made


def _number(said: str) -> int:
    """The number that a text is, as Python writes it; -1 for another text."""
    number = int(said) if said.isdecimal() and len(said) < _MOST_DIGITS else -1
    return number if number < 0 or str(number) == said else -1


def _letter_at(said: str, number: int) -> int:
    """The place that a letter names, alone or as `(b)`. number: that is `said`, -1 for none."""
    if marked := _LETTER.fullmatch(said):
        return ord(marked[1].upper()) - ord("A")
    # `letter` numbers those behind the 26th, from 1.
    return number - 1 if number > _LETTERS else sys.maxsize


def _choices(value: Mapping[str, Any], names: Names) -> Get:
    """What reads the choices of a row as texts: a list of one column, or a column each."""
    if isinstance(value.get("of"), list):
        reads = [column(each, names) for each in _texts(value["of"], "of")]
        return lambda row: [_stripped(get(row)) for get in reads]
    if not isinstance(value.get("of"), str):
        raise ValueError('`of` is missing: write of = "column", that of the choices')
    read = column(value["of"], names)
    # An empty choice keeps its place: numbers and letters count it.
    return lambda row: (
        list(map(_stripped, found)) if isinstance(found := read(row), list) else found
    )


def _stripped(value: Any) -> str:
    return (flattened(value) or "").strip()


def _unlettered(choice: str, place: int) -> str:
    """A choice without the letter that it may begin with: `A) x`, `(A) x`, `A. x`."""
    mark = letter(place)
    for begin in (f"({mark})", f"{mark})", f"{mark}."):
        if choice.startswith(begin):
            return choice[len(begin) :].strip()
    return choice


def thought(generation: str) -> str | None:
    """The thought of a generation, None where it is incomplete.

    generation: a text with `<think>`, the thought, `</think>` and the solution. A text without
        the first begins in the thought; one without the last is incomplete. Of an empty
        thought, the text after it counts.
    """
    before, closed, after = generation.partition(_CLOSE)
    if not closed:
        return None
    inner = before.rpartition(_OPEN)[2] if _OPEN in before else before
    return inner.strip() or after.strip() or None


def _think(value: Mapping[str, Any], names: Names) -> Get:
    read = text_of(value["think"], names)
    return lambda row: thought(read(row))


def _pick(value: Mapping[str, Any], names: Names) -> Get:
    """The first item whose verdicts in parallel lists are all true, else another column."""
    read, is_thought, name = column(value["pick"], names), value.get("think", False), value["pick"]
    wanted = value.get("where", [])
    if not isinstance(wanted, list) or not wanted:
        raise ValueError("`where` must be a list of lists of columns")
    verdicts = [[column(each, names) for each in _texts(one, "where")] for one in wanted]
    other = None if "else" not in value else read_of(value["else"], names)

    def picked(row: Row) -> str | None:
        if (found := read(row)) is None:
            found = []
        if not isinstance(found, list):
            raise Unfit("generations", f"its {name} are no list")
        for columns in verdicts:
            lists = [said if isinstance(said := get(row), list) else [] for get in columns]
            for item, *said in zip(found, *lists, strict=False):
                if all(each is True for each in said):
                    made = thought(text(item)) if is_thought else text(item)
                    if made is not None:
                        return made
        made, _ = (None, None) if other is None else chain(other(row))
        return made if made and made.strip() else None

    return picked


def _first(value: Mapping[str, Any], names: Names) -> Get:
    reads = [read_of(each, names) for each in _texts(value["first"], "first")]
    return lambda row: next((made for get in reads if flattened(made := get(row))), None)


def _json(value: Mapping[str, Any], names: Names) -> Get:
    read = column(value["json"], names)
    return lambda row: None if (found := read(row)) is None else json_of(found)


def _constant(value: Mapping[str, Any], names: Names) -> Get:
    constant = value["constant"]
    if not isinstance(constant, str | int | float | bool):
        raise ValueError("`constant` must be a text, a number or a truth value")
    return lambda row: constant


def _file(value: Mapping[str, Any], names: Names) -> Get:
    if value["from"] != "file":
        raise ValueError('`from` must be "file"')
    return lambda row: names.file or None


_KINDS: Final[Mapping[str, tuple[Callable[[Mapping[str, Any], Names], Get], tuple[str, ...]]]] = {
    "template": (_template, ()),
    "join": (_join, ("by", "item")),
    "choice": (_choice, ("of", "as", "labels", "by")),
    "pick": (_pick, ("where", "think", "else")),
    "think": (_think, ()),
    "first": (_first, ()),
    "constant": (_constant, ()),
    "json": (_json, ()),
    "from": (_file, ()),
    "column": (_cut, (*_CUTS, "which", "braces", "else")),
}
