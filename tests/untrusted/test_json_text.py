import gzip
import json
import lzma
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gristmill.contract import BadInput
from gristmill.untrusted.json_text import (
    HEAD_BYTES,
    has_more_values,
    jq,
    load_json,
    members,
    refuse_packed,
    refuse_pointer,
    way_to,
)
from gristmill.untrusted.limits import LIMITS

FILE = Path("drop/corpus.json")


def _parts(octets: bytes, size: int) -> list[bytes]:
    return [octets[at : at + size] for at in range(0, len(octets), size)]


def test_values_up_to_the_limits_are_read_and_those_of_too_many_are_named():
    value = {"a": [1, -2.5e3, None, True, 'é\\"[{'], "digits": "1" * 1000}
    assert load_json(json.dumps(value).encode(), FILE) == value
    load_json(b"[" * 256 + b"]" * 256, FILE)
    load_json(b"[" + b"[]," * 1000 + b"[]]", FILE)
    assert load_json(b"9" * 400, FILE) == 10**400 - 1
    assert load_json(b'"' + b"[" * 1000 + b'"', FILE) == "[" * 1000
    limits = replace(LIMITS, values=10)
    assert load_json(b"[" + b"1," * 9 + b"1]", FILE, limits) == [1] * 10
    with pytest.raises(BadInput, match="more than 10 values") as raised:
        load_json(b"[" + b"1," * 10 + b"1]", FILE, limits, row=3)
    assert (raised.value.file, raised.value.row) == (str(FILE), 3)
    found = members([b"[" + b"[],[]," * 20, b"0]"], FILE, limits)
    assert len(list(found)) == 41


@pytest.mark.parametrize(
    ("octets", "rule"),
    [
        (b"[" * 257 + b"]" * 257, "nested deeper than 256 levels"),
        (b'{"a":' * 100_000, "nested deeper than 256 levels"),
        (b"9" * 401, "a number of more than 400 digits"),
        (b'["' + b"9" * 401 + b'", -' + b"9" * 401 + b"]", "a number of more than 400 digits"),
        (b"[1,", "not JSON"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
    ],
    ids=range(7),
)
def test_what_is_no_json_or_too_much_names_file_row_and_rule(octets, rule):
    with pytest.raises(BadInput, match=rule) as raised:
        load_json(octets, FILE, row=3)
    assert (raised.value.file, raised.value.row) == (str(FILE), 3)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 10**6])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_members_of_a_large_file_are_those_of_the_whole(size, indent):
    value = {
        "1": {"source": "a, b: {[", "rationale": 'say "no" \\', "": []},
        'quo"te:': [1, [2, {"x": None}], "]"],
        "empty": {},
        "text": "x" * 500,
        "number": -1.5,
    }
    octets = json.dumps(value, indent=indent).encode()
    assert dict(members(_parts(octets, size), FILE)) == value
    rows = list(value.values())
    octets = json.dumps(rows, indent=indent).encode() + b" \n"
    assert list(members(_parts(octets, size), FILE)) == list(enumerate(rows))
    assert list(members(_parts(b" { } ", size), FILE)) == []
    assert list(members(_parts(b"[]", size), FILE)) == []


def _value(source: random.Random, depth: int) -> Any:
    kind = source.randrange(6 if depth else 4)
    if kind == 4:
        return [_value(source, depth - 1) for _ in range(source.randrange(4))]
    if kind == 5:
        names = ["", "a", '"', "\\", "{", ":,"]
        return {name: _value(source, depth - 1) for name in names[: source.randrange(6)]}
    return [
        None,
        source.randrange(-99, 99),
        source.random(),
        source.choice(["\\\\", '"', "]", "é"]),
    ][kind]


@pytest.mark.parametrize(
    ("octets", "rule", "row"),
    [
        (b'{"a": 1, "b": [', "the text ends too early", 2),
        (b'{"a": 1, "b', "the text ends too early", 2),
        (b'{"a": 1', "the text ends too early", 1),
        (b"[1, 2", "the text ends too early", 2),
        (b"[1, 2}", "a bracket too many", 2),
        (b"[1 2]", "not JSON", 1),
        (b"[1,]", "not JSON", 2),
        (b"{1: 2}", "a key in quotes expected", 1),
        (b'{"a" "b": 2}', "not JSON", 1),
        (b'{"a": 1,}', "a key in quotes expected", 2),
        (b"[1] 2", "text after the JSON value", None),
        (b"7", "not a JSON object or array", None),
        (b"", "not a JSON object or array", None),
        (b"[1, " + b"[" * 300, "nested deeper than 256 levels", 2),
        (b"[1, 2, 3, 4]", "more than 3 members", 4),
        (b'[1, "' + b"x" * 3000 + b'"]', "a member of more than 2000 bytes", 2),
        (b"[1, " + b"9" * 500 + b"]", "a number of more than 400 digits", 2),
    ],
    ids=range(17),
)
@pytest.mark.parametrize("size", [1, 5, 10**6])
def test_a_damaged_large_file_names_the_member(octets, rule, row, size):
    limits = replace(LIMITS, rows=3, line_bytes=2000)
    with pytest.raises(BadInput, match=rule) as raised:
        list(members(_parts(octets, size), FILE, limits))
    assert raised.value.row == row


@pytest.mark.parametrize(
    ("octets", "count"),
    [
        (b"[1, [], {}, 2]", 6),
        (b'{"a,[{": "x,y[", "b": 1}', 2),
        (b'["\\",[", ","]', 2),
        (b'[1, "[,,,,', 2),
        (b"]]}}::" * 9, 0),
        (b'"' + b"," * 50 + b'"', 0),
    ],
)
def test_opening_brackets_and_commas_outside_of_strings_are_counted(octets, count):
    assert not has_more_values(octets, count)
    if count:
        assert has_more_values(octets, count - 1)


def test_texts_that_are_no_json_and_members_without_brackets_are_not_read_without_end():
    assert has_more_values(b'""' * 20 + b"," * 9, 8)
    assert not has_more_values(b'"' + b'\\"' * 100_000 + b"," * 20, 19)
    # Each part is looked at a bounded number of times, not once for each comma in it.
    octets = b"[[" + b"1," * 500_000 + b"1]]"
    ((_, value),) = members(_parts(octets, 1 << 16), FILE)
    assert value == [1] * 500_001


@pytest.mark.parametrize("size", [7, 10**6])
@pytest.mark.parametrize("value", [b"[" + b"[]," * 20 + b"0]", b"[" + b"1," * 20 + b"1]"])
def test_a_member_of_too_many_values_is_named(value, size):
    limits = replace(LIMITS, values=10)
    with pytest.raises(BadInput, match="more than 10 values") as raised:
        list(members(_parts(b"[0," + value + b"]", size), FILE, limits))
    assert raised.value.row == 2


WAYS = [
    (7, "."),
    ([0, [7]], ".[][]"),
    ({"a": [], "b": {"c": {}}, "d e": [{"f": 1}, {"f": 7}]}, '."d e"[].f'),
    ({'q"\\': {"x": "7", "y": 7}}, '."q\\"\\\\".y'),
    ([[{"7": [1]}], {"a_1": 7}], ".[].a_1"),
]


@pytest.mark.parametrize(("value", "filter_"), WAYS)
def test_the_first_value_that_fits_is_found(value, filter_):
    text = json.dumps(value, indent=1).encode()
    way = way_to(text, lambda _, token: token == b"7")
    assert way is not None and jq(way) == filter_
    for cut in range(len(text)):
        assert way_to(text[:cut], lambda *_: False) is None


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"


def test_pointers_are_refused_and_random_members_are_those_of_the_whole():
    with pytest.raises(BadInput) as error:
        refuse_pointer(POINTER[:HEAD_BYTES], Path("drop/train.jsonl"))
    assert str(error.value) == (
        "drop/train.jsonl: is a Git LFS pointer and not the data: run `git lfs pull` where it was "
        "cloned, and copy the file from there"
    )
    source = random.Random(7)
    for _ in range(300):
        rows = [_value(source, 3) for _ in range(source.randrange(5))]
        octets = json.dumps(rows, ensure_ascii=source.random() < 0.5).encode()
        assert [row for _, row in members(_parts(octets, source.randrange(1, 9)), FILE)] == rows


@pytest.mark.parametrize("head", [b"", b"version https://example.org/spec/v1", b" " + POINTER])
def test_other_files_are_not(head):
    refuse_pointer(head, Path("x"))


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (gzip.compress(b"{}", mtime=0), r"is gzip, and its name does not end in \.gz: rename it"),
        (zstandard.compress(b"{}"), "is zstd"),
        (lzma.compress(b"{}"), "is xz"),
        (b"PK\x03\x04", "is a ZIP archive: unpack it"),
        (b"PAR1", r"is Parquet, and its name does not end in \.parquet"),
    ],
)
def test_a_packed_file_without_its_ending_is_named(data, rule):
    with pytest.raises(BadInput, match=rule):
        refuse_packed(data[:HEAD_BYTES], Path("train.jsonl"))
    refuse_packed(b'{"a": 1}', Path("train.jsonl"))
