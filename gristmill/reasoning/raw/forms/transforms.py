"""Transforms: what reads a row in Python, where no value of a corpus file can say it.

Those of the package are in `BUILT_IN`; an installed distribution has its own as entry points.
Source: `docs/formats/reasoning.md#transforms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from gristmill.hashing import sha256_file, sha256_sources
from gristmill.printable import printable
from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.reasoning.raw.forms import trip
from gristmill.reasoning.raw.forms.templates import Row

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


BUILT_IN: Final[Mapping[str, Transform]] = {"trip": Transform(trip.record, trip.COLUMNS)}
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
