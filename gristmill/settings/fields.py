"""What the fields of a config may hold: types, ranges, choices, checked before they are stored."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge as Ge
from annotated_types import Gt as Gt
from annotated_types import Le as Le
from annotated_types import Unit as Unit

from gristmill.printable import cut, printable

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


LONGEST_TEXT: Final = 100_000
"""Most characters of a text in a config."""
_MOST_SHOWN: Final = 80
# Records are JSON, whose readers agree on whole numbers of 64 bits.
_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1
_LARGEST = sys.float_info.max
# Asked for at every construction of a config.
_RULES: dict[type[Any], Mapping[str, FieldRule]] = {}
# Trait -> what it says of a rule.
_SAYS: Final = {Ge: "least", Gt: "above", Le: "most", Unit: "unit", Help: "help"}


@dataclass(frozen=True)
class FieldRule:
    """What one field of a config may hold.

    least, most: smallest and largest number; None for no bound of the field's own.
    above: the number must be greater than this; None for no such bound.
    needed: whether the field has no default, so that the asset fills it in.
    """

    name: str
    kind: type
    many: bool = False
    optional: bool = False
    default: Any = None
    help: str = ""
    choices: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    unit: str = ""
    in_event: bool = False
    needed: bool = False

    @property
    def sentences(self) -> str:
        """The field for a person: meaning, what is allowed, unit and default."""
        unit = f" Unit: {self.unit}." if self.unit else ""
        default = "not set" if self.default is None else toml_value(self.default)
        return f"{self.help} Must be {self.words}.{unit} Default: {default}.".strip()

    @property
    def words(self) -> str:
        """What is allowed, as the end of a sentence that begins with "must be"."""
        if self.many:
            return f"a list; each item must be {self._one}"
        return self._one

    @property
    def _one(self) -> str:
        if self.choices:
            return f"one of {', '.join(map(shown, self.choices))}"
        if self.kind is bool:
            return "true or false"
        if self.kind in (int, float):
            noun = "a whole number" if self.kind is int else "a finite number"
            return noun + self._range()
        if self.kind is str:
            return f"a text of at most {LONGEST_TEXT:,} characters"
        return "a path" if self.kind is Path else f"a {self.kind.__name__}"

    def _range(self) -> str:
        if self.above is not None:
            end = "" if self.most is None else f" and at most {_number(self.most)}"
            return f" above {_number(self.above)}{end}"
        if self.least is not None and self.most is not None:
            return f" from {_number(self.least)} to {_number(self.most)}"
        if self.least is not None:
            return f", {_number(self.least)} or more"
        if self.most is not None:
            return f", {_number(self.most)} or less"
        return " of at most 64 bits" if self.kind is int else ""

    def refusal(self, value: object) -> str | None:
        """Returns why the field cannot hold a value, as `must be ...`; None if it can."""
        if value is None and self.optional:
            return None
        if self.many:
            if not isinstance(value, list | tuple):
                return f"must be {self.words}"
            wrong = next((item for item in value if not self._allows(item)), self)
            if wrong is self:
                return None
            return f"item {shown(wrong)}: must be {self._one}{self._size(wrong)}"
        return None if self._allows(value) else f"must be {self.words}{self._size(value)}"

    def _size(self, value: object) -> str:
        """The limits of 64 bits, for a whole number beyond them whose range does not say them."""
        if self.kind is not int or not isinstance(value, int):
            return ""
        if value > _MOST_INT and self.most is None:
            return f" and at most {_MOST_INT}"
        return f" and at least {_LEAST_INT}" if value < _LEAST_INT and self.least is None else ""

    def _allows(self, value: object) -> bool:
        if not self._is_kind(value):
            return False
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, str):
            return len(value) <= LONGEST_TEXT
        if isinstance(value, int | float) and self.kind is not bool:
            if self.above is not None and not value > self.above:
                return False
            whole = self.kind is int
            least = self.least if self.least is not None else _LEAST_INT if whole else -_LARGEST
            most = self.most if self.most is not None else _MOST_INT if whole else _LARGEST
            return least <= value <= most  # never so for NaN and the infinities
        return True

    def _is_kind(self, value: object) -> bool:
        if self.kind is bool:
            return isinstance(value, bool)
        if self.kind is int:
            return isinstance(value, int) and not isinstance(value, bool)
        if self.kind is float:
            return isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind is Path:
            return isinstance(value, str | os.PathLike)
        return isinstance(value, self.kind)

    def normal(self, value: Any) -> Any:
        """Returns a value that is allowed as the config holds it.

        A list becomes a tuple, and a whole number in a field for any number becomes a float, so
        that 1 and 1.0 have one fingerprint. All else is unchanged.
        """
        if self.kind is float and value is not None:
            return tuple(map(float, value)) if self.many else float(value)
        return tuple(value) if self.many and isinstance(value, list) else value


def rules_of(config: type[Any]) -> Mapping[str, FieldRule]:
    """Returns the rules of a config's fields, by name, in their order.

    Raises TypeError for a field whose type, or a trait of it, has no rule.
    """
    if config not in _RULES:
        specs, hints = dataclasses.fields(config), declared(config)
        _RULES[config] = {spec.name: _rule(spec, *hints[spec.name]) for spec in specs}
    return _RULES[config]


class Checked:
    """A config that checks its fields against their types when it is made.

    A whole number in a field for any number is replaced by the equal float. A config with rules of
    its own calls this `__post_init__` before it checks them.

    Raises ValueError, naming the field, for a value of another type, out of its range or none of
    its choices. `True` is no number, 7.0 is no whole number, and NaN is no number.
    """

    def __post_init__(self) -> None:
        for name, rule in rules_of(type(self)).items():
            value = getattr(self, name)
            if reason := rule.refusal(value):
                raise ValueError(f"{name} = {shown(value)}: {reason}")
            if rule.kind is float:
                object.__setattr__(self, name, rule.normal(value))  # the dataclass is frozen

    def recorded(self) -> dict[str, Any]:
        """The values that records have, by name."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


def equal(one: Any, other: Any) -> bool:
    """Returns whether two values are one setting; records have lists where configs have tuples."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return list(one) == list(other)
    return bool(one == other)


def nearest(name: str, known: Collection[str]) -> str | None:
    """Returns the known name most like a misspelt one, whatever their case; None for none."""
    from difflib import get_close_matches  # needed for errors alone

    folded = {each.casefold(): each for each in known}
    found = get_close_matches(name[:100].casefold(), folded, n=1)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Returns the question whether the nearest known name was meant, or an empty text."""
    close = nearest(name, known)
    return "" if close is None else f": did you mean {close}?"


def shown(value: object) -> str:
    """Returns a value as messages show it: on one line, as in TOML, a long one cut with a count."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        # Python refuses to write out numbers of thousands of digits.
        if isinstance(value, int) and value.bit_length() > 256:
            return f"a number of {value.bit_length():,} bits"
        return _number(value)
    if isinstance(value, str):
        return f'"{cut(printable(value), _MOST_SHOWN)}"'
    if isinstance(value, list | tuple):
        items = ", ".join(map(shown, value[:5]))
        more = f", and {len(value) - 5:,} more" if len(value) > 5 else ""
        return f"[{items}{more}]"
    if isinstance(value, dict):
        return f"a table of {len(value):,} keys"
    return cut(printable(str(value)), _MOST_SHOWN)


def toml_value(value: object) -> str:
    """Returns a value of a config as `gristmill.toml` writes it, whole and on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # The escapes of JSON are those of TOML; JSON leaves DEL as it is, which TOML forbids.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return "2**63 - 1" if value == _MOST_INT else str(value)


def _rule(spec: dataclasses.Field[Any], hint: Any, *traits: Any) -> FieldRule:
    """The rule of one field. Raises TypeError for a type or a trait without one."""
    where, optional, many, choices = f"{spec.name}: {hint}", False, False, ()
    if get_origin(hint) in (Union, UnionType):
        kinds = [item for item in get_args(hint) if item is not NoneType]
        optional = len(kinds) < len(get_args(hint))
        if len(kinds) != 1:
            raise TypeError(f"{where}: a field has one type, or that and None")
        hint = kinds[0]
    if get_origin(hint) is tuple:
        many, items = True, get_args(hint)
        if len(items) != 2 or items[1] is not Ellipsis:
            raise TypeError(f"{where}: a tuple in a config is tuple[X, ...]")
        hint = items[0]
    if get_origin(hint) is Literal:
        choices, hint = get_args(hint), type(get_args(hint)[0])
    if hint not in (bool, int, float, str, Path) and not dataclasses.is_dataclass(hint):
        raise TypeError(f"{where}: the field rules do not know this type")
    said = {}
    for trait in traits:
        if type(trait) in _SAYS:
            (said[_SAYS[type(trait)]],) = dataclasses.astuple(trait)
        elif not isinstance(trait, Trait):
            raise TypeError(f"{where}: the field rules do not know the trait {trait}")
    return FieldRule(
        spec.name,
        hint,
        many,
        optional,
        None if spec.default is dataclasses.MISSING else spec.default,
        choices=choices,
        in_event=IN_EVENT in traits,
        needed=spec.default is dataclasses.MISSING,
        **said,
    )
