"""What the type of a config's field says: its traits, and the named kinds that families share.

A field is declared once, as `rows: Annotated[Count, Unit("rows"), Help("Rows of a file.")] = 0`.
Values of a fixed list are a `Literal`; the traits `Ge`, `Gt`, `Le` and `Unit` are those of
annotated-types. A trait replaces one of the same class before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge as Ge
from annotated_types import Gt as Gt
from annotated_types import Le as Le
from annotated_types import Unit as Unit

MOST_WORKERS: Final = 4096
"""Largest number of processes or threads that a config may name."""


@dataclass(frozen=True)
class Help:
    """What a field means, as sentences for the launchpad and docs/configuration.md."""

    text: str


@dataclass(frozen=True)
class Trait:
    """What records and events make of a field."""

    name: str


NO_EFFECT: Final = Trait("no effect")
"""The field cannot change the output of a build, so that fingerprints leave it out."""
COUNTED_BEFORE: Final = Trait("counted before")
"""The field has no effect, but fingerprints of earlier versions count it."""
ADDED_LATER: Final = Trait("added later")
"""The field was added after a release: fingerprints leave it out at its default, as before."""
IN_EVENT: Final = Trait("in event")
"""Events always show the field; of the others they show those that are not at their default."""

Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
Share = Annotated[float, Ge(0), Le(1)]
Workers = Annotated[int, Ge(0), Le(MOST_WORKERS), Unit("processes"), NO_EFFECT]
Seed = Annotated[int, Ge(0), Unit("none, any number")]
BadRows = Annotated[Count, NO_EFFECT, COUNTED_BEFORE]
"""It decides whether there is an output, not which one."""
Vocabulary = Annotated[Path, NO_EFFECT]
Engine = Annotated[
    Literal["auto", "tiktoken"],
    NO_EFFECT,
    Help(
        "What encodes texts: auto for gigatoken where it is proven equal to tiktoken, or tiktoken "
        "for all texts. The tokens are the same."
    ),
]


# Type hints take long to evaluate.
_DECLARED: dict[type[Any], Mapping[str, tuple[Any, ...]]] = {}


def declared(config: type[Any]) -> Mapping[str, tuple[Any, ...]]:
    """Returns the type of each field of a config and its traits, by name, in their order.

    Raises TypeError for a field with metadata, where earlier versions had the rules.
    """
    if config not in _DECLARED:
        hints, found = get_type_hints(config, include_extras=True), {}
        for spec in dataclasses.fields(config):
            if spec.metadata:
                raise TypeError(f"{spec.name}: has metadata: write its rules as traits of its type")
            hint = hints[spec.name]
            found[spec.name] = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        _DECLARED[config] = found
    return _DECLARED[config]


def fields_with(config: type[Any], trait: Trait) -> tuple[str, ...]:
    """Returns the names of a config's fields that have a trait."""
    return tuple(name for name, (_, *traits) in declared(config).items() if trait in traits)
