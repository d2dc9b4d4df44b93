"""Which lines and meta objects are accepted, and the names of valuation types."""

import pytest

from gristmill.macroxue.format.files import STANDARD_NAMES
from gristmill.macroxue.raw.strict_parser import Names, RuleBroken, parse_meta, parse_step
from tests.macroxue.lines import META, STEP, compact, step

B16 = STEP["board"]


def with_text(key: str, text: str) -> bytes:
    """The sample line with the JSON text of one value replaced."""
    return step(**{key: "@"}).replace(b'"@"', text.encode())


ACCEPTED = {
    "rank 18": step(board=[18, *B16[1:]]),
    "crlf": step() + b"\r\n",
    "spaces": b' { "board" : [0,1, 0,0,1,0,0,0,0,0,0,0,0,0,0,0] ,\t"move":"up"}\t',
    "any order": compact(dict(reversed(STEP.items()))),
    "only board and move": compact({"board": B16, "move": "up"}),
    "null seed, index, rank, type": step(
        seed=None, step_index=None, max_rank=None, valuation_type=None
    ),
    "largest seed": step(seed=2**64 - 1),
    "largest index": step(step_index=2**32 - 1),
    "largest max_rank": step(max_rank=255),
    "empty valuation name": step(valuation_type=""),
    "unknown name": step(valuation_type="line_plan"),
    "escaped name": with_text("valuation_type", r'"tuple\u0031\u0030"'),
    "escaped key": step().replace(b'"move"', rb'"mo\u0076e"'),
    "valuation is never read": with_text("valuation", '{"a":[1e999,"x"]}'),
    "valuation twice": step().replace(b'"valuation":', b'"valuation":[],"valuation":'),
    "unknown keys twice": step().replace(b"{", b'{"x":1,"x":[{}],', 1),
    "half a surrogate in a skipped value": step().replace(b"{", rb'{"x":"\ud800",', 1),
    "200 levels": step().replace(b"{", b'{"x":' + b'[{"":' * 100 + b"0" + b"}]" * 100 + b",", 1),
    "brackets in text": step(note="[{" * 300),
    "no branches": step(["branch_evs"]),
    "empty branches": step(branch_evs={}),
    "unknown branch": step(branch_evs={"LEFT": 1, "x": None}),
    "branch twice": with_text("branch_evs", '{"up":1,"up":null}'),
    "integer and exponent": with_text("branch_evs", '{"up":-3,"down":1.5E2,"left":1e39}'),
    "chosen move without ev": step(branch_evs={"left": None}),
    "not ascii": with_text("valuation_type", '"é😀"'),
}
REJECTED = {
    "not json": b"{",
    "text behind": step() + b"x",
    "two objects": step() + step(),
    "array": b"[1]",
    "scalar": b"3",
    "byte order mark": b"\xef\xbb\xbf" + step(),
    "not utf-8": step().replace(b"search", b"sear\xff"),
    "not utf-8 in a skipped value": step().replace(b"{", b'{"x":"\xc0\x80",', 1),
    "control character": step().replace(b"search", b"sea\x01ch"),
    "trailing comma": step()[:-1] + b",}",
    "leading zero": with_text("seed", "07"),
    "NaN": with_text("valuation", "NaN"),
    "Infinity": with_text("branch_evs", '{"up":-Infinity}'),
    "1e400": with_text("branch_evs", '{"up":1e400}'),
    "huge integer": with_text("branch_evs", '{"up":1' + "0" * 400 + "}"),
    "half a surrogate": with_text("valuation_type", r'"\ud800"'),
    "half a surrogate in a key": step().replace(b"{", rb'{"\ud800":1,', 1),
    "too deep": step().replace(b"{", b'{"x":' + b"[" * 300 + b"]" * 300 + b",", 1),
    "no board": step(["board"]),
    "null board": step(board=None),
    "15 ranks": step(board=B16[1:]),
    "17 ranks": step(board=[0, *B16]),
    "rank 256": step(board=[256, *B16[1:]]),
    "rank 32": step(board=[*B16[:15], 32]),
    "rank 1.0": with_text("board", "[1.0" + ",0" * 15 + "]"),
    "rank -1": step(board=[-1, *B16[1:]]),
    "rank as text": step(board=["1", *B16[1:]]),
    "rank null": step(board=[None, *B16[1:]]),
    "board as text": step(board="0123456789abcdef"),
    "no move": step(["move"]),
    "null move": step(move=None),
    "upper case move": step(move="UP"),
    "move 2": step(move=2),
    "seed 3.0": with_text("seed", "3.0"),
    "seed -0": with_text("seed", "-0"),
    "seed 1e3": with_text("seed", "1e3"),
    "seed 2**64": step(seed=2**64),
    "seed as text": step(seed="7"),
    "seed true": step(seed=True),
    "seed of 5000 digits": with_text("seed", "1" * 5000),
    "index 2**32": step(step_index=2**32),
    "max_rank 256": step(max_rank=256),
    "valuation_type 3": step(valuation_type=3),
    "valuation_type list": step(valuation_type=["search"]),
    "null branches": step(branch_evs=None),
    "branches array": step(branch_evs=[1, 2, 3, 4]),
    "empty branches array": step(branch_evs=[]),
    "branch true": step(branch_evs={"up": True}),
    "branch text": step(branch_evs={"up": "1"}),
    "unknown branch text": step(branch_evs={"x": "1"}),
    "branch object": step(branch_evs={"up": {}}),
    "seed twice": step().replace(b"{", b'{"seed":7,', 1),
    "board twice by escape": step().replace(b"{", rb'{"bo\u0061rd":[],', 1),
    "board null and again": step().replace(b"{", b'{"board":null,', 1),
    "move null and again": step().replace(b"{", b'{"move":null,', 1),
    "branches null and again": step().replace(b"{", b'{"branch_evs":null,', 1),
    "type null and again": step().replace(b"{", b'{"valuation_type":null,', 1),
    "overflow": step(board=[0, 21, 0, 21, 21, 0, 21, 0, 0, 21, 0, 21, 21, 0, 21, 0]),
}


@pytest.mark.parametrize("line", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_line_that_keeps_the_rules_is_accepted(line: bytes) -> None:
    assert parse_step(line) is not None


@pytest.mark.parametrize("line", REJECTED.values(), ids=REJECTED.keys())
def test_a_line_that_breaks_a_rule_is_refused(line: bytes) -> None:
    with pytest.raises(RuleBroken):
        parse_step(line)


@pytest.mark.parametrize("line", [b"", b"\n", b" \t\r\n", b"\x0b\x0c"])
def test_a_blank_line_is_no_step(line: bytes) -> None:
    assert parse_step(line) is None


def test_values_are_those_of_the_page_and_nesting_is_limited() -> None:
    parsed = parse_step(
        with_text("branch_evs", '{"up":1,"zz":2,"down":-0.5,"up":null,"left":1e39}')
    )
    assert parsed is not None
    assert parsed.evs == (None, -0.5, 1e39, None)
    assert parsed.unknown_branches == ("zz",)
    assert (parsed.move, parsed.seed, parsed.valuation_type) == (2, 7, "search")
    meta = parse_meta(b"\n" + compact(META | {"max_rank": None, "seed": 2**64 - 1}) + b"\r\n")
    assert (meta.seed, meta.max_rank, meta.depth, meta.seconds) == (2**64 - 1, None, 6, 35.25)
    without = parse_meta(compact(META | {"depth": "deep", "seconds": None}))
    assert (without.depth, without.seconds) == (None, None)

    def nested(levels: int) -> bytes:
        return step().replace(b"{", b'{"x":' + b"[" * levels + b"]" * levels + b",", 1)

    assert parse_step(nested(255)) is not None
    with pytest.raises(RuleBroken, match="nested deeper than 256 levels"):
        parse_step(nested(256))
    depths = [parse_meta(compact(META | {"depth": depth})).depth for depth in (10**9 - 1, 10**9)]
    assert depths == [10**9 - 1, None]


META_REJECTED = {
    **{f"no {key}": compact({k: v for k, v in META.items() if k != key}) for key in
       ("seed", "num_moves", "score", "max_tile")},
    **{f"{key} {value}": compact(META | {key: value}) for key, value in
       (*((key, None) for key in ("seed", "num_moves", "score", "max_tile")), ("score", 10.0),
        ("score", "1"), ("num_moves", -1), ("max_tile", 2**32), ("max_rank", 256))},
    "byte order mark": b"\xef\xbb\xbf" + compact(META),
    "text behind": compact(META) + b"x",
    "seed twice": compact(META)[:-1] + b',"seed":1}',
    "empty": b"",
}  # fmt: skip


@pytest.mark.parametrize("text", META_REJECTED.values(), ids=META_REJECTED.keys())
def test_a_meta_object_that_breaks_a_rule_is_refused(text: bytes) -> None:
    with pytest.raises(RuleBroken):
        parse_meta(text)


def test_brackets_and_commas_are_limited_and_the_scanner_knows_further_names() -> None:
    def padded(commas: int) -> bytes:
        """A meta object with so many brackets and commas beside its own."""
        own = compact(META)
        extra = b',"x":[' + b"1," * commas + b"1]"
        return own[:-1] + extra + b"}"

    own = compact(META).count(b",") + 1
    parse_meta(padded((1 << 18) - own - 2))
    with pytest.raises(RuleBroken, match="more than 262144 values"):
        parse_meta(padded((1 << 18) - own - 1))
    names = Names()
    assert names.plain().shape == (0, 34)
    given = [*STANDARD_NAMES, "mine", 'a "quoted" one', "règle", "x" * 32, "x" * 33, "", "mine"]
    assert [names.id_of(name) for name in given] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 3]
    plain = [
        (row[1], bytes(row[2 : 2 + row[0]]), bytes(row[2 + row[0] :])) for row in names.plain()
    ]
    assert plain == [(3, b"mine", bytes(28)), (6, b"x" * 32, b""), (8, b"", bytes(32))]
