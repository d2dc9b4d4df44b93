"""Templates with names of columns in braces, and transforms, which read a row in Python.

Transforms are for what no value of a corpus file can say. Those of the package are in `BUILT_IN`;
an installed distribution has its own as entry points.
Source: `docs/formats/reasoning.md#corpus-files`, `docs/formats/reasoning.md#transforms`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw import texts as raw_texts
from gristmill.corpora.raw.texts import Unfit
from gristmill.corpora.records import Record
from gristmill.hashing import sha256_file, sha256_sources
from gristmill.printable import printable

Row = Mapping[str, Any]
Get = Callable[[Row], Any]
"""Takes a row, gives a JSON value; raises Unfit for a value that a rule refuses."""
MOST_FIELDS: Final = 64
_BRACES: Final = re.compile(r"(\{\{|\}\})|\{([^{}]+)\}|[{}]")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter(index: int) -> str:
    """The letter of a choice; index: from 0. A number behind the 26th."""
    return _LETTERS[index] if index < len(_LETTERS) else str(index + 1)


def pieces(template: str) -> list[tuple[str, bool]]:
    """The pieces of a template: a text with False, or the name in braces with True.

    `{{` and `}}` are braces. Raises ValueError for a brace without its pair or without a name, and
    for more than 64 names.
    """
    found: list[tuple[str, bool]] = []
    text, place = "", 0
    for match in _BRACES.finditer(template):
        text, place = text + template[place : match.start()], match.end()
        if match[2]:
            found += ((text, False), (match[2], True))
            text = ""
        elif match[1]:
            text += match[1][0]
        elif match[0] == "{":
            raise ValueError("has a brace without a name: write {{ for a brace that is text")
        else:
            raise ValueError("has a brace } that closes nothing: write }} for one that is text")
    found.append((text + template[place:], False))
    if len(found) > 2 * MOST_FIELDS + 1:
        raise ValueError(f"names more than {MOST_FIELDS} columns")
    return [piece for piece in found if piece[0]]


def filled(template: str, get: Callable[[str], Callable[[Row], str]]) -> Callable[[Row], str]:
    """What fills a template from a row.

    A line whose names are all empty is left out, and the blank lines behind it. Raises ValueError
    as `pieces`.
    """
    lines = [
        [(get(text), True) if is_name else (text, False) for text, is_name in pieces(line)]
        for line in template.split("\n")
    ]
    if len(lines) == 1 and len(lines[0]) == 1 and lines[0][0][1]:
        only: Any = lines[0][0][0]
        return lambda row: str(only(row))

    def fill(row: Row) -> str:
        made: list[str] = []
        is_left_out = False
        for line in lines:
            texts = [part(row) if callable(part) else part for part, _ in line]
            named = [text for text, (_, is_name) in zip(texts, line, strict=True) if is_name]
            if named and not any(named):
                is_left_out = True
            elif line or not is_left_out:
                is_left_out = False
                made.append("".join(texts))
        return "\n".join(made).rstrip("\n") if is_left_out else "\n".join(made)

    return fill


class Pattern:
    """A text with names in braces, which divides other texts: leftmost and shortest.

    names: in braces, in order. Raises ValueError as `pieces`, and for two names without a text
    between them.
    """

    def __init__(self, pattern: str, end: str = "") -> None:
        found = pieces(pattern)
        self.names = [text for text, is_name in found if is_name]
        if any(one[1] and other[1] for one, other in itertools.pairwise(found)):
            raise ValueError("has two names without a text between them")
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError("must have names in braces, each once")
        self._pieces, self._end = found, end

    def divided(self, text: str) -> dict[str, str]:
        """The parts of a text by name, stripped; none where it has not the pattern."""
        made: dict[str, str] = {}
        begin, name = 0, None
        for piece, is_name in self._pieces:
            if is_name:
                name = piece
                continue
            place = text.find(piece, begin)
            if place < 0:
                return {}
            if name is not None:
                made[name] = text[begin:place].strip()
                name = None
            begin = place + len(piece)
        if name is not None:
            made[name] = text[begin:].strip().removesuffix(self._end)
        return made


ENTRY_POINTS: Final = "gristmill.transforms"


@dataclass(frozen=True)
class Transform:
    """A transform.

    read: takes a raw row and the name of its form, and gives a record with the extras of the
        corpus in their order; raises Unfit for a row that it refuses.
    columns: that it reads of a row.
    """

    read: Callable[[Row, str], Record]
    columns: Sequence[str]


BUILT_IN: Final[Mapping[str, Transform]] = {"trip": Transform(raw_texts.record, raw_texts.COLUMNS)}
"""The transforms of the package by name."""


def transform(name: str, extras: int) -> Transform:
    """The transform of a name. extras: of its corpus, how many.

    One of another distribution is not trusted: what it raises, and what is no record, is Unfit.
    Raises ValueError where there is none, or two, or where it cannot be loaded.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    point = _point(name)
    try:
        found = point.load()
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(
            f"{point.value}, the transform {name}, cannot be loaded: {error}"
        ) from error
    if not isinstance(found, Transform):
        raise ValueError(f"{point.value}, the transform {name}, is no {Transform.__qualname__}")

    def read(row: Row, form: str) -> Record:
        try:
            record = found.read(row, form)
        except Unfit as unfit:
            raise Unfit("python", unfit.rule) from unfit
        except Exception as error:
            what = printable(f"{type(error).__name__}: {error}")
            raise Unfit("python", f"the transform {name} fails: {what}") from error
        if (problem := _problem(record, extras)) is not None:
            raise Unfit("python", f"the transform {name} gives no record: {problem}")
        return record._replace(shape=form)

    return Transform(read, tuple(map(str, found.columns)))


def versions(corpus: Corpus) -> str:
    """The version of a corpus, and of each installed transform that reads its rows.

    Of a transform: its distribution, the version, and the sha256 of the sources of its package.
    """
    found = [corpus.version]
    for name in dict.fromkeys(form.python for form in corpus.forms if form.python is not None):
        if name not in BUILT_IN:
            point = _point(name)
            made = point.dist
            named = "unknown" if made is None else f"{made.name} {made.version}"
            found.append(f"{name} of {named} {_sha256(point)}")
    return ", ".join(found)


def _point(name: str) -> metadata.EntryPoint:
    every = metadata.entry_points(group=ENTRY_POINTS)
    found = {point.value: point for point in every if point.name == name}
    if len(found) > 1:
        raise ValueError(f"python = {name!r}: {' and '.join(sorted(found))} have this name")
    if not found:
        known = ", ".join(dict.fromkeys([*BUILT_IN, *(point.name for point in every)]))
        rule = f"install the package that has it as an entry point `{ENTRY_POINTS}`"
        raise ValueError(f"python = {name!r}: no such transform; known: {known}; {rule}")
    return next(iter(found.values()))


def _sha256(point: metadata.EntryPoint) -> str:
    spec = find_spec(point.module.partition(".")[0])
    if spec is not None and spec.submodule_search_locations:
        return sha256_sources(Path(spec.submodule_search_locations[0]))
    return sha256_file(Path(spec.origin)) if spec is not None and spec.origin else "unknown"


def _problem(record: Any, extras: int) -> str | None:
    """What is wrong with a record of a transform, None where nothing is."""
    if not isinstance(record, Record):
        return f"it is a {type(record).__name__}"
    if not isinstance(record.question, str) or not isinstance(record.answer, str):
        return "question and answer must be texts"
    if not isinstance(record.cot, str | None):
        return "cot must be a text or None"
    steps = record.steps
    if steps is not None and (
        not isinstance(steps, list) or not all(isinstance(each, str) for each in steps)
    ):
        return "steps must be a list of texts or None"
    if not isinstance(record.extras, tuple) or len(record.extras) != extras:
        return f"extras must be a tuple of {extras} values, as `extras` of the corpus"
    if not all(map(_is_scalar, record.extras)):
        return "an extra must be a text, a finite number, a truth value or None"
    return None


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)
