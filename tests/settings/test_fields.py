"""What a field may hold, for every type of field that configs have."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Lt

from gristmill import families
from gristmill.provenance.record import canonical, config_fields
from gristmill.settings.fields import (
    ADDED_LATER,
    COUNTED_BEFORE,
    IN_EVENT,
    LONGEST_TEXT,
    MOST_WORKERS,
    NO_EFFECT,
    BadRows,
    Checked,
    Count,
    Engine,
    FieldRule,
    Ge,
    Gt,
    Help,
    Le,
    Positive,
    Seed,
    Share,
    Unit,
    Workers,
    declared,
    fields_with,
    nearest,
    rules_of,
    shown,
)
from gristmill.vocabularies.engine import ENGINES


@dataclass(frozen=True)
class Part:
    size: int = 1


@dataclass(frozen=True)
class Everything(Checked):
    flag: bool = False
    count: int = 0
    some: Annotated[int, Ge(2), Le(9)] = 5
    share: Annotated[float, Ge(0), Le(1)] = 0.5
    factor: Annotated[float, Gt(0)] = 1.0
    wait: Annotated[float, Gt(0), Le(60)] = 1.0
    free: float = 0.0
    text: str = ""
    word: Literal["one", "two"] = "one"
    mode: Annotated[Literal["a", "b"], Help("Which.")] = "a"
    names: tuple[str, ...] = ()
    picks: tuple[Literal["x", "y"], ...] = ()
    maybe: str | None = None
    place: Path = Path()
    part: Part = field(default_factory=Part)


HUGE = 10**400


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("flag", [True, False], ["false", 0, 1, None, 1.0]),
        ("count", [0, -5, 2**63 - 1, -(2**63)], [True, 7.0, 7.5, "7", None, 2**63, -(2**63) - 1]),
        ("some", [2, 9], [1, 10, 2.0, True]),
        ("share", [0, 1, 0.0, 1.0, 0.25], [-1e-9, 1.0000001, "0.5", True, None, HUGE]),
        ("factor", [1e-300, 5, 1.7e308], [0, 0.0, -1, HUGE]),
        ("free", [-1e300, 3], [-HUGE]),
        ("text", ["", "a\nb", "x" * LONGEST_TEXT], [b"a", 1, None, "x" * (LONGEST_TEXT + 1)]),
        ("word", ["one", "two"], ["three", "One", 1, None, ["one"]]),
        ("mode", ["a", "b"], ["c", "", {}]),
        ("names", [(), ("a",), ["a", "b"]], ["ab", ("a", 1), {"a": 1}, None, [["a"]]]),
        ("picks", [(), ["x"], ("y", "x")], [("x", "z"), "x"]),
        ("maybe", [None, "x"], [1, False]),
        ("place", [Path("a"), "a"], [1, None]),
        ("part", [Part(2)], [{"size": 2}, None]),
    ],
)
def test_values_of_the_type_and_range_of_a_field_are_allowed(name, allowed, refused):
    for value in allowed:
        held = getattr(Everything(**{name: value}), name)
        assert held == value if isinstance(value, int) else held is value
    for value in refused:
        with pytest.raises(ValueError, match=rf"^{name} = .*must be"):
            Everything(**{name: value})


@pytest.mark.parametrize("name", ["share", "factor", "free"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_field_takes_nan_or_an_infinity(name, value):
    with pytest.raises(ValueError, match=rf"{name} = -?(nan|inf): must be a finite number"):
        Everything(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"flag": "false"}, 'flag = "false": must be true or false'),
        ({"some": 10}, "some = 10: must be a whole number from 2 to 9"),
        ({"factor": 0}, "factor = 0: must be a finite number above 0"),
        ({"wait": 61}, "wait = 61: must be a finite number above 0 and at most 60"),
        ({"count": 7.5}, "count = 7.5: must be a whole number"),
        ({"word": "tow"}, 'word = "tow": must be one of "one", "two"'),
        ({"picks": ("x", "z")}, 'picks = ["x", "z"]: item "z": must be one of "x", "y"'),
        ({"names": "ab"}, 'names = "ab": must be a list; each item must be a text of at most'),
    ],
)
def test_a_refusal_says_what_is_allowed(values, text):
    with pytest.raises(ValueError, match="must be") as caught:
        Everything(**values)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("rule", "sentences"),
    [
        (
            FieldRule("seed", int, default=7, help="Of the shuffle.", least=0),
            "Of the shuffle. Must be a whole number, 0 or more. Default: 7.",
        ),
        (
            FieldRule("rows", int, default=1_000, help="Of a shard.", least=1, most=9, unit="rows"),
            "Of a shard. Must be a whole number from 1 to 9. Unit: rows. Default: 1000.",
        ),
        (
            FieldRule("layout", str, default="a", choices=("a", "b")),
            'Must be one of "a", "b". Default: "a".',
        ),
        (FieldRule("flag", bool, default=False), "Must be true or false. Default: false."),
        (
            FieldRule("share", float, optional=True, help="Of all rows.", above=0, most=1),
            "Of all rows. Must be a finite number above 0 and at most 1. Default: not set.",
        ),
    ],
    ids=lambda each: each.name if isinstance(each, FieldRule) else "",
)
def test_a_field_is_explained_by_its_meaning_what_is_allowed_unit_and_default(rule, sentences):
    assert rule.sentences == sentences


def test_a_list_becomes_a_tuple_and_a_whole_number_of_more_than_64_bits_is_refused():
    rules = rules_of(Everything)
    assert rules["names"].normal(["a"]) == ("a",)
    assert rules["maybe"].normal(None) is None
    assert rules["flag"].normal(True) is True
    assert type(rules["count"].normal(1)) is int
    assert Counted(many=2**63 - 1, some=-(2**63))
    with pytest.raises(ValueError, match="0 or more and at most 9223372036854775807"):
        Counted(many=2**63)
    with pytest.raises(ValueError, match="9 or less and at least -9223372036854775808"):
        Counted(some=-(2**63) - 1)


@dataclass(frozen=True)
class Numbers(Checked):
    one: float = 0.5
    maybe: float | None = None
    many: tuple[float, ...] = ()
    count: int = 0


def test_a_whole_number_may_be_a_float_and_a_value_is_shown_on_one_line():
    whole = Numbers(one=1, maybe=2, many=(1, 2), count=3)
    exact = Numbers(one=1.0, maybe=2.0, many=(1.0, 2.0), count=3)
    assert repr(whole) == repr(exact)
    assert config_fields(whole) == config_fields(exact)
    assert canonical(config_fields(whole)) == b'{"count":3,"many":[1.0,2.0],"maybe":2.0,"one":1.0}'
    assert Numbers().maybe is None
    assert repr(dataclasses.replace(exact, one=0)) == repr(dataclasses.replace(exact, one=0.0))
    for wrong in ({"one": True}, {"many": (1, "2")}, {"one": HUGE}, {"count": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            Numbers(**wrong)  # type: ignore[arg-type]
    assert shown("a\nb\x1b[2J\u202e") == '"a\ufffdb\ufffd[2J\ufffd"'
    assert shown("x" * 100) == f'"{"x" * 80}… and 20 more characters"'
    assert shown(list(range(7))) == "[0, 1, 2, 3, 4, and 2 more]"
    assert shown({"a": 1}) == "a table of 1 keys"
    assert shown(10**5000) == "a number of 16,610 bits"
    assert (shown(True), shown(0.5), shown(2**63 - 1)) == ("true", "0.5", "2**63 - 1")


@pytest.mark.parametrize(
    "hint",
    [
        *(dict[str, int], tuple[int, int], int | str, set[str], Annotated[int, Ge(0)] | None),
        *(Annotated[int, Lt(3)], Annotated[int, Unit("rows"), "rows"]),
    ],
    ids=str,
)
def test_a_type_or_a_trait_without_a_rule_is_refused_at_once(hint):
    config = dataclasses.make_dataclass("Unknown", [("field_of_it", hint)])
    with pytest.raises(TypeError, match=r"^field_of_it: "):
        rules_of(config)


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        *(("layuot", "layout", "layout"), ("zz", "layout", None)),
        *(("SHARD_ROWS", "shard_rows", "shard_rows"), ("layuot", "LAYOUT", "LAYOUT")),
    ],
)
def test_the_nearest_name_is_found_if_one_is_near_in_any_case(name, known, found):
    assert nearest(name, ["xxxxxxxxx", known]) == found


CONFIGS = [table.config for table in families.tables().values()]


@pytest.mark.parametrize("config", dict.fromkeys(CONFIGS), ids=lambda config: str(config.__name__))
def test_the_configs_of_all_tables_check_themselves(config):
    required = {
        spec.name: Path("x")
        for spec in dataclasses.fields(config)
        if spec.default is dataclasses.MISSING
    }
    config(**required)
    for name, rule in rules_of(config).items():
        assert rule.help.endswith("."), name
        for wrong in (object(), {"a": 1}):
            with pytest.raises(ValueError, match=f"^{name} = "):
                config(**{**required, name: wrong})
        if rule.kind is not bool and not rule.many:
            with pytest.raises(ValueError, match=f"^{name} = true"):
                config(**{**required, name: True})


@dataclass(frozen=True)
class Counted(Checked):
    many: Annotated[int, Ge(0)] = 0
    some: Annotated[int, Le(9)] = 0


@dataclass(frozen=True)
class Mill:
    workers: Workers = 1
    threads: Annotated[Workers, Unit("threads"), Help("Threads.")] = 2
    stones: Annotated[Positive, Ge(3), IN_EVENT] = 4
    seed: Seed = 0
    share: Share = 0.5
    bad_rows: BadRows = 0
    engine: Engine = "auto"
    sieve: Annotated[Count, ADDED_LATER] = 7
    label: str = ""


def test_a_field_has_the_traits_of_its_kind_and_rules_in_metadata_are_refused():
    sentences = [rule.sentences for rule in rules_of(Mill).values()]
    assert sentences[:7] == [
        f"Must be a whole number from 0 to {MOST_WORKERS}. Unit: processes. Default: 1.",
        f"Threads. Must be a whole number from 0 to {MOST_WORKERS}. Unit: threads. Default: 2.",
        "Must be a whole number, 3 or more. Default: 4.",
        "Must be a whole number, 0 or more. Unit: none, any number. Default: 0.",
        "Must be a finite number from 0 to 1. Default: 0.5.",
        "Must be a whole number, 0 or more. Default: 0.",
        "What encodes texts: auto for gigatoken where it is proven equal to tiktoken, or tiktoken "
        'for all texts. The tokens are the same. Must be one of "auto", "tiktoken". '
        'Default: "auto".',
    ]
    assert [name for name, rule in rules_of(Mill).items() if rule.in_event] == ["stones"]
    assert rules_of(Mill)["engine"].choices == ENGINES
    older = dataclasses.make_dataclass(
        "Older", [("workers", int, field(default=1, metadata={"affects_output": False}))]
    )
    for look in (rules_of, lambda config: config_fields(config(), affecting_output=True)):
        with pytest.raises(TypeError) as caught:
            look(older)
        assert str(caught.value) == ("workers: has metadata: write its rules as traits of its type")


def test_traits_say_what_records_make_of_a_field_and_a_class_that_inherits_has_its_own():
    assert fields_with(Mill, NO_EFFECT) == ("workers", "threads", "bad_rows", "engine")
    assert fields_with(Mill, COUNTED_BEFORE) == ("bad_rows",)
    assert fields_with(Mill, ADDED_LATER) == ("sieve",)
    counted = config_fields(Mill(workers=3), affecting_output=True)
    assert counted == {"stones": 4, "seed": 0, "share": 0.5, "label": ""}
    assert config_fields(Mill(sieve=8), affecting_output=True) == counted | {"sieve": 8}

    class Later(Mill):
        label: Annotated[str, NO_EFFECT] = ""

    assert list(declared(Later)) == list(declared(Mill))
    assert fields_with(Later, NO_EFFECT) == (*fields_with(Mill, NO_EFFECT), "label")
    assert fields_with(Mill, NO_EFFECT) == ("workers", "threads", "bad_rows", "engine")
