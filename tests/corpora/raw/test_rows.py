"""What a JSON file is by its beginning.

The rows of JSON files, and of every other format.
"""

import errno
import gzip
import json
import lzma
import random
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA, corpus_of_table
from gristmill.corpora.raw.rows import held_under, one_or_lines, row_bytes, rows, unpacked
from gristmill.corpora.raw.texts import Unfit
from gristmill.hashing import NamedFile
from gristmill.untrusted import walk
from gristmill.untrusted.json_text import HEAD_BYTES
from gristmill.untrusted.limits import LIMITS, Limits
from tests.bombs import lines_of
from tests.corpora import bombs
from tests.reasoning.drops import packed, rows_found

ROWS = [{"question": "q", "answer": "a"}]


def _kind(value: bytes, limits: Limits = LIMITS) -> bool:
    """Whether the text is one value; its parts come a byte at a time, and come back whole."""
    parts = (value[at : at + 1] for at in range(len(value)))
    is_whole, texts = one_or_lines(parts, Path("gsm8k.json"), limits)
    assert b"".join(texts) == value
    return is_whole


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("value", "named", "command"),
    [
        ({"train": ROWS, "test": ROWS}, "the splits train, test", ".train[]' gsm8k.json > train"),
        ({"Dev": {"7": ROWS[0]}}, "the splits Dev", ".Dev[]' gsm8k.json > validation"),
        (
            {"test": [], "dev": [], "train": ROWS, "more": 1},
            "the splits test, dev, train",
            ".test[]' gsm8k.json > test",
        ),
    ],
)
def test_splits_as_keys_are_named_with_what_to_write(value, named, command, indent):
    with pytest.raises(BadInput) as error:
        _kind(json.dumps(value, indent=indent).encode())
    assert str(error.value) == (
        f"gsm8k.json: holds {named} under their names: write a file for each split, as with "
        f"`jq -c '{command}.jsonl`"
    )


def test_the_longest_of_several_lists_has_the_rows_and_a_split_too_large_is_named():
    row = {"features": [{"name": "question"}], "rows": [{"row": each} for each in ROWS * 2]}
    assert "in a list under 'rows'" in (held_under(row, ("question",)) or "")
    text = json.dumps({"train": ROWS * 99, "test": ROWS}).encode()
    with pytest.raises(BadInput, match=r"holds splits under their names: .*train"):
        _kind(text, Limits(line_bytes=1000))


MANY: Any = [{"input": f"q{n}", "target": "t"} for n in range(9)]
HEAD: Any = {"canary": "c", "keywords": ["a"], "metrics": [{"name": "m"}], "long": "x" * 5000}
UNDER: dict[str, tuple[Any, str]] = {
    "examples": ({**HEAD, "examples": MANY}, "a list under 'examples'.*jq"),
    "rows alone": ({"examples": MANY}, "a list under 'examples'"),
    "by their ids": (
        {**HEAD, "data": {f"i{n}": row for n, row in enumerate(MANY)}},
        "under .data., a row",
    ),
}


@pytest.mark.parametrize("indent", [1, 4])
@pytest.mark.parametrize("begin", ["{\n", "{ "])
@pytest.mark.parametrize(("value", "rule"), UNDER.values(), ids=UNDER)
def test_rows_under_a_key_of_a_long_object_are_named(tmp_path, value, rule, begin, indent):
    text = begin + json.dumps(value, indent=indent)[1:].lstrip()
    for name, octets in (("x.json", text.encode()), ("x.json.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(octets)
        with pytest.raises(BadInput, match=rule):
            list(rows(tmp_path / name, CORPORA["gsm8k"]))


def test_an_object_of_one_line_or_with_a_member_beyond_the_limit_is_one_too(tmp_path):
    (path := tmp_path / "x.json").write_text(json.dumps({**HEAD, "examples": MANY}))
    limits = Limits(line_bytes=5100)
    with pytest.raises(BadInput, match="a list under 'examples'"):
        list(rows(path, CORPORA["gsm8k"], limits=limits))
    path.write_text(json.dumps({"a": 1, "examples": MANY * 50}, indent=1))
    with pytest.raises(
        BadInput, match=r"is one object, with a member of more than 5100 bytes: wri"
    ):
        list(rows(path, CORPORA["gsm8k"], limits=limits))


def test_lines_stay_lines_and_a_first_object_is_in_the_first_mebibyte(tmp_path):
    (path := tmp_path / "x.json").write_text('{"question": "a",\n{"question": "b"}\n')
    assert [isinstance(row, Unfit) for _, row in rows(path, CORPORA["gsm8k"])] == [True, False]
    members: dict[str, Any] = {"0": "x" * 3_000_000, "1": "y", "2": A}
    assert rows_found(tmp_path / "x.json", json.dumps(members).encode()) == [(1, members)]


@pytest.mark.parametrize(
    "value",
    [
        b'{"test": ["assert f"], "prompt": "p"}\n',
        b'{"test": "t", "train": []}',
        b'{"test": [], "train": 1}',
        b'{"train": []}\n{"train": []}\n',
        b'{"train": [}\n',
        b'{"train": [',
        b'{"questions": []}',
    ],
)
def test_rows_with_the_column_of_a_split_stay_lines(value):
    assert not _kind(value)


@pytest.mark.parametrize("value", [b"[]", b' [{"train": []}]', b'{"0": {"train": []}}'])
def test_one_value_is_no_lines(value):
    assert _kind(value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"version": "1", "data": [{"q": 1}]}, r"a list under 'data'.*jq -c '\.\[\"data\"\]\[\]'"),
        ({f"id{n}": {"q": n} for n in range(3)}, "holds a row under each of its keys"),
    ],
)
def test_rows_below_the_keys_of_one_object_are_named(tmp_path, value, rule):
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a"}
    corpus, path = corpus_of_table(table), tmp_path / "x.json"
    path.write_text(json.dumps(value))
    with pytest.raises(BadInput, match=rule):
        list(rows(path, corpus))
    path.write_text(json.dumps(value | {"q": 1}))
    assert len(list(rows(path, corpus))) == 1
    path.write_text(json.dumps({"other": 1}))
    assert len(list(rows(path, corpus))) == 1


PACKINGS = ("gz", "bz2", "xz", "zst")


GSM8K = CORPORA["gsm8k"]
A, B = {"question": "a", "answer": "b"}, {"question": "c", "answer": [1, 2.5]}


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
@pytest.mark.parametrize(
    "octets",
    [
        json.dumps([A, B]).encode(),
        json.dumps([A, B], indent=2).encode(),
        b" " * 100 + json.dumps([A, B]).encode() + b"\n\n",
        b"\xef\xbb\xbf" + json.dumps([A, B]).encode(),
        json.dumps({"0": A, "17": B}).encode(),
        json.dumps({"0": A, "1": B}, indent=1).encode(),
        json.dumps(A).encode() + b"\n" + json.dumps(B).encode() + b"\n",
        json.dumps(A).encode() + b"\r\n" + json.dumps(B).encode(),
        b"\xef\xbb\xbf" + json.dumps(A).encode() + b"\n" + json.dumps(B).encode(),
    ],
)
def test_every_form_of_json_has_the_same_rows(tmp_path, name, octets):
    assert rows_found(tmp_path / name, octets) == [(1, A), (2, B)]


@pytest.mark.parametrize("octets", [b"", b"\n \n", b"[]", b"[ ]\n", b"\xef\xbb\xbf"])
def test_a_file_may_hold_no_row(tmp_path, octets):
    assert rows_found(tmp_path / "x.json", octets) == []


@pytest.mark.parametrize("first", [b"", b"\xef\xbb\xbf", b"\r"])
def test_lines_may_end_in_cr_alone(tmp_path, first):
    path, text = tmp_path / "x.jsonl", first + b"\r".join([json.dumps(A).encode()] * 3) + b"\r"
    begin = len(first) if first == b"\r" else 0
    assert rows_found(path, text) == [(number + begin, A) for number in (1, 2, 3)]
    at = row_bytes(path, GSM8K, 2 + begin)["raw_bytes"]
    begin, end = map(int, str(at).split("-"))
    assert json.loads(text[begin:end]) == A


def test_a_cr_within_an_object_and_a_mark_before_names_end_no_line(tmp_path):
    text = b'{\r"question": "a",\r"answer": "b"\r}\r'
    assert rows_found(tmp_path / "x.jsonl", text) == [(1, A)]
    assert rows_found(tmp_path / "x.jsonl", b"[" + text + b",\r" + text + b"]") == [(1, A), (2, A)]
    damaged = json.dumps(A).encode() + b"\r" + json.dumps(A).encode() + b"\n"
    assert rows_found(tmp_path / "x.jsonl", damaged) == [(1, "json")]
    path = tmp_path / "x_train.tsv"
    path.write_bytes(MARK + b"source\ttarget\nq\ta\nr\tb\n")
    assert [number for number, _ in rows(path, CORPORA["cot_collection"])] == [1, 2]
    assert _bytes(path, 2, "cot_collection") == b"r\tb"
    found = rows_found(tmp_path / "x.jsonl", b"\n" + json.dumps(A).encode() + b"\n \r\n{}\n")
    assert found == [(2, A), (4, {})]


TWICE = (
    '{"question": "a", "answer": "b", "question": "c"}',
    '{"question":"a","answer":"b","answer":"b"}',
    '{"question" :"a","answer":"x","answer"  : "b"}',
    '{"question": "a", "answer": {"text": "b", "text": "c"}}',
    '{"question": "a", "answer": [{"more": {"b": 1, "b": 2}}]}',
    '{"question": "\\u003a", "answer": "b", "answer": "b"}',
    '{"question": "a", "answer": "\\u003a", "answer": ":"}',
    '{"question": "a", "answer": 1, "answer": 12345678901234567890}',
)


@pytest.mark.parametrize("row", TWICE)
def test_a_row_with_a_key_twice_is_refused(tmp_path, row):
    path, good = tmp_path / "x.jsonl", json.dumps(A)
    path.write_text(f"{good}\n{row}\n{good}\n")
    found = list(rows(path, GSM8K))
    assert isinstance(found[1][1], Unfit) and found[0][1] == found[2][1] == A
    name = "question" if row.endswith('"c"}') else "answer"
    assert found[1][1].rule == f"has a key twice, {name!r} or one in it: leave one of them"
    assert rows_found(path, f"[{good}, {row}]".encode()) == [(1, A), (2, "json")]


@pytest.mark.parametrize(
    "more",
    ['"a": 1, "a": 2', '"a": "x", "a": "x"', '"n": {"a": 1, "a": 1}', '"n": NaN', '"n": 1e999'],
)
@pytest.mark.parametrize("text", ["b", ': \\": \\u003a', "ä:"])
def test_columns_that_are_not_read_do_not_matter(tmp_path, more, text):
    row = f'{{"question": "{text}", {more}, "answer": "b"}}'
    for octets in (f"{row}\n", f"[{row}]"):
        ((_, value),) = rows_found(tmp_path / "x.jsonl", octets.encode())
        assert (value["question"], value["answer"]) == (json.loads(f'"{text}"'), "b")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "json"),
        (b'{"a": "\x01"}', "json"),
        (b'{"a": "\xff"}', "utf8"),
        (b"\xff", "utf8"),
        (b'{"a": ' + b"[" * 256 + b"]" * 256 + b"}", "json"),
        (b'{"a": 1' + b"0" * 400 + b"}", "json"),
        (b"17", "object"),
        (b"null", "object"),
        (b'["a"]', "object"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_alone(tmp_path, line, reason):
    good = json.dumps(A).encode() + b"\n"
    assert rows_found(tmp_path / "x.jsonl", good + line + b"\n" + good) == [
        (1, A),
        (2, reason),
        (3, A),
    ]


def test_members_that_are_no_object_and_long_lines_are_refused_alone(tmp_path):
    assert rows_found(tmp_path / "x.json", b'[{"a": 1}, 3, {"b": 2}]') == [
        (1, {"a": 1}),
        (2, "object"),
        (3, {"b": 2}),
    ]
    good = json.dumps(A).encode() + b"\n"
    limits = Limits(values=100)
    line = b'{"answer": "b", "question": [' + b"{}," * 50 + b"{}]}\n"
    found = rows_found(tmp_path / "x.jsonl", good + line + good, limits=limits)
    assert found == [(1, A), (2, "json"), (3, A)]
    steps = {"question": "a, b", "answer": ["one, two"] * 90}
    assert rows_found(tmp_path / "x.jsonl", json.dumps(steps).encode(), limits=limits) == [
        (1, steps)
    ]


@pytest.mark.parametrize("first", [None, 5, "x{", [], [A, {"0": A}], "x" * 3000])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_first_member_that_is_no_object_is_refused_alone(tmp_path, first, indent):
    members = {"0": first, "1": None, "2": A, "x": B}
    found = rows_found(tmp_path / "x.json", json.dumps(members, indent=indent).encode())
    assert found == [(1, "object"), (2, "object"), (3, A), (4, B)]


@pytest.mark.parametrize(
    "line",
    [{"0": None, **A}, {"0": 1, "1": "x"}, {"0": [A]}, {"0": 1, "\u0663": A}, {"0": 1, "x": A}],
)
def test_lines_may_have_numbers_as_columns(tmp_path, line):
    octets = json.dumps(line).encode() + b"\n"
    assert rows_found(tmp_path / "x.json", octets) == [(1, line)]
    assert rows_found(tmp_path / "x.json", octets * 2 + b"x") == [(1, line), (2, line), (3, "json")]


def test_numbers_are_those_of_the_standard_library_and_zero_bytes_no_utf_16(tmp_path):
    line = b'{"a": 123456789012345678901234567890, "b": 1.0, "c": -0, "d": 1e5, "e": [0.1]}'
    ((_, found),) = rows_found(tmp_path / "x.jsonl", line)
    assert found == json.loads(line)
    assert [type(value) for value in found.values()] == [int, float, int, float, list]
    (tmp_path / "x.jsonl").write_bytes(b'{"question":"a","answer":"b"}\n' * 3 + b"\0" * 600)
    *good, (number, last) = rows(tmp_path / "x.jsonl", GSM8K)
    assert (len(good), number) == (3, 4)
    assert isinstance(last, Unfit)
    assert last.rule == "is zero bytes alone, as a write that broke off leaves: get it again"


@pytest.mark.parametrize(
    ("octets", "rule"),
    [
        (b'[{"a": 1}', "ends too early"),
        (b'[{"a": 1}] x', "text after"),
        (b'[{"a": }]', "not JSON"),
        (b"{" + b'"0": {"a": 1}, 3}', "key in quotes"),
        (b'[{"a": "' + b"x" * 300 + b'"}]', "more than 200 bytes"),
        (b'{"a": "' + b"x" * 300 + b'"}', "more than 200 bytes"),
        (b" " * 300, "200 blank bytes"),
    ],
)
def test_a_file_that_is_damaged_or_too_large_fails(tmp_path, octets, rule):
    with pytest.raises(BadInput, match=rule):
        rows_found(tmp_path / "x.json", octets, limits=Limits(line_bytes=200))


def test_long_arrays_take_no_more_memory_and_members_have_no_bytes(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"[" + b",".join([json.dumps({"a": "x" * 5000}).encode()] * 1500) + b"]")
    tracemalloc.start()
    assert sum(1 for _ in rows(path, GSM8K)) == 1500
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2
    for mark in (b"", MARK):
        path.write_bytes(mark + b'[\n{"question":"a"},\n{"question":"b"}]')
        assert [number for number, _ in rows(path, GSM8K)] == [1, 2]
        assert row_bytes(path, GSM8K, 2) == {}
    path.write_bytes(MARK + b'{\n"0": {"question": "a"},\n"1": {"question": "b"}}')
    assert row_bytes(path, GSM8K, 2) == {}


@pytest.mark.parametrize("octets", [b"[0, {}, %s]", b'{"0": {}, "1": {}, "2": %s}'])
def test_a_member_of_too_many_values_fails_the_file(tmp_path, octets):
    value = b'{"question": [' + b"{}," * 100 + b"{}]}"
    with pytest.raises(BadInput, match="more than 100 values") as raised:
        rows_found(tmp_path / "x.json", octets % value, limits=Limits(values=100))
    assert raised.value.row == 3


@pytest.mark.slow
def test_small_files_of_many_values_are_read_in_bounded_memory(tmp_path):
    bombs.write(tmp_path)
    lines = lines_of("tests.corpora.bombs", tmp_path)
    said = {name: rule for name, _, _, rule in lines}
    # Arrow ends in its own way within the limit.
    assert said.pop("lists_train.parquet").startswith("refused: ")
    line = "row; more than 1,048,576 values: brackets and commas are counted"
    member = line.replace("row; ", "row; refused: ")
    row = "refused: a row with more than 1,048,576 delimiters, those in quotes included"
    assert said == {
        "cells_train.csv": row,
        "cells_train.tsv": row,
        "flan_train.tsv": "row; has 60000001 columns where 3 are expected",
        "header_train.csv": row,
        "keys_train.json": member,
        "lists_train.jsonl": line,
        "no_json_train.jsonl": line,
        "numbers_train.json": member,
        "numbers_train.jsonl": line,
        "objects_train.json": member,
        "objects_train.jsonl": f"{line}; row",
        "objects_train.jsonl.gz": line,
    }


MARK = b"\xef\xbb\xbf"
LINES = b'\xef\xbb\xbf{"question":"a","answer":"b"}\r\n\n{"question":"c","answer":"\xc3\xa4"}'
TABLE = b'question,answer\r\n\r\n"a\nb, c",d\r\n\n"say ""no""",\xc3\xa4\n'


def _bytes(path: Path, row: int, corpus: str = "gsm8k") -> bytes:
    ((name, value),) = row_bytes(path, CORPORA[corpus], row).items()
    octets = path.read_bytes()
    if path.suffix == ".gz":
        octets = gzip.decompress(octets)
    assert name == ("raw_unpacked_bytes" if path.suffix == ".gz" else "raw_bytes")
    begin, end = map(int, str(value).split("-"))
    return octets[begin:end]


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.jsonl.gz"])
def test_the_bytes_of_a_line_are_the_object(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES) if name.endswith(".gz") else LINES)
    found = dict(rows(path, GSM8K))
    assert list(found) == [1, 3]
    for row, value in found.items():
        assert json.loads(_bytes(path, row)) == value
    assert row_bytes(path, GSM8K, 4) == {}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_the_bytes_of_a_record_of_a_table_may_be_several_lines(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TABLE) if name.endswith(".gz") else TABLE)
    assert [number for number, _ in rows(path, GSM8K)] == [1, 2]
    assert _bytes(path, 1) == b'"a\nb, c",d'
    assert _bytes(path, 2) == b'"say ""no""",\xc3\xa4'
    assert row_bytes(path, GSM8K, 3) == {}


def test_the_bytes_of_a_table_without_a_header_are_lines(tmp_path):
    path = tmp_path / "ecqa_train.tsv"
    path.write_bytes(b"a\tb\tc\n\nd\te\tf\r\n")
    assert [number for number, _ in rows(path, CORPORA["cot_collection"])] == [1, 3]
    assert _bytes(path, 3, "cot_collection") == b"d\te\tf"


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl.gz"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_a_text_in_utf_16_is_refused_by_its_name(tmp_path, name, encoding, mark):
    octets = f'{mark}{{"question": "Où?"}}\n'.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(octets) if name.endswith(".gz") else octets)
    with pytest.raises(BadInput, match=f"{name}: is UTF-16: save it as UTF-8"):
        list(rows(tmp_path / name, GSM8K))


@pytest.mark.parametrize("inner", [gzip.compress, lambda octets: b"PAR1" + octets])
def test_what_was_packed_twice_is_refused(tmp_path, inner):
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(inner(b'{"question":"a"}\n')))
    with pytest.raises(BadInput, match="is packed twice: unpack it once, and give it the ending"):
        list(rows(tmp_path / "x.jsonl.gz", GSM8K))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"question": ["a", "b"], "answer": ["c", "d"]}\n\n', "holds its columns"),
        (
            b'{"question": {"0": "a", "1": "b"}, "answer": {"0": "c", "1": "d"}}',
            "holds its columns",
        ),
        (b'{"question": {"0": "a"}, "answer": {"0": "c"}}', "holds its columns"),
        (b'{\n "version": 1,\n "data": []\n}', ":1: its first object has several lines"),
        (b'\xef\xbb\xbf{\r\n "question": "a"\r\n}\r\n', "its first object has several lines"),
    ],
)
def test_objects_that_are_no_rows_refuse_the_file(tmp_path, text, reason):
    path = tmp_path / "x.json"
    path.write_bytes(text)
    with pytest.raises(BadInput, match=f"{reason}.*write an object a line .* or one array"):
        list(rows(path, GSM8K))


@pytest.mark.parametrize(
    "text",
    [
        b'{"question": ["a", "b"], "answer": ["c", "d"]}\n{"question": "q", "answer": "a"}',
        b'{"question": ["a", "b"], "answer": "c"}',
        b'{"question": ["a", "b"], "answer": ["c"]}',
        b'{"question": ["a"], "answer": ["c"]}',
        b'{"question": {"text": "a"}, "answer": {"text": "c"}}',
        b'{"question": {}, "answer": {}}',
        b'{"question": ["a", "b"]}',
    ],
)
def test_rows_of_lists_and_objects_are_read(tmp_path, text):
    path = tmp_path / "x.jsonl"
    path.write_bytes(text)
    assert [value for _, value in rows(path, GSM8K)] == [
        json.loads(line) for line in text.splitlines()
    ]


def _text(path: Path, octets: bytes, limits: Limits = LIMITS) -> bytes:
    path.write_bytes(octets)
    with unpacked(path, limits=limits) as texts:
        return b"".join(texts)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 2_100_000])
def test_a_text_comes_back_whole(tmp_path, packing, size):
    text = random.Random(1).randbytes(size // 20) + bytes(size - size // 20)
    path = tmp_path / f"x.jsonl.{packing}"
    assert _text(path, packed(text, packing)) == text
    assert _text(path, packed(text[:9], packing) + packed(text, packing)) == text[:9] + text


def test_a_plain_file_and_a_link_are_read_and_skipped_frames_are_skipped(tmp_path):
    assert _text(tmp_path / "x.jsonl", b"\x1f\x8a") == b"\x1f\x8a"
    (tmp_path / "store").mkdir()
    (tmp_path / "store/blob").write_bytes(gzip.compress(LINES))
    (tmp_path / "x.jsonl.gz").symlink_to(tmp_path / "store/blob")
    assert row_bytes(tmp_path / "x.jsonl.gz", GSM8K, 3) == {"raw_unpacked_bytes": "35-65"}
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    octets = skipped + packed(b"a", "zst") + skipped + packed(b"b", "zst")
    assert _text(tmp_path / "x.jsonl.zst", octets) == b"ab"


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_cut_and_every_empty_file_is_refused(tmp_path, packing):
    whole = packed(b"some text " * 20, packing)
    for length in range(len(whole)):
        with pytest.raises(BadInput, match="get it again"):
            _text(tmp_path / f"x.jsonl.{packing}", whole[:length])


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_changed_bytes_arefound(tmp_path, packing):
    whole = bytearray(packed(random.Random(2).randbytes(500), packing))
    whole[len(whole) // 2] ^= 1
    with pytest.raises(BadInput, match="broken"):
        _text(tmp_path / f"x.jsonl.{packing}", bytes(whole))


@pytest.mark.parametrize("packing", PACKINGS)
def test_limits_hold(tmp_path, packing):
    octets = packed(bytes(100_000), packing)
    path = tmp_path / f"x.jsonl.{packing}"
    assert len(_text(path, octets)) == 100_000
    with pytest.raises(BadInput, match="decompression bomb"):
        _text(path, octets, Limits(any_ratio_bytes=1000, ratio=2))
    with pytest.raises(BadInput, match="has more than 5 bytes"):
        _text(path, octets, Limits(bytes=5))


@pytest.mark.parametrize("log", [28, 31])
def test_a_long_window_of_zstd_is_read(tmp_path, log):
    parameters = zstandard.ZstdCompressionParameters(window_log=log, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    octets = packer.compress(b"some text " * 999) + packer.flush()
    assert zstandard.get_frame_parameters(octets).window_size == 1 << log
    assert _text(tmp_path / "x.jsonl.zst", octets) == b"some text " * 999


def test_a_packed_file_that_needs_too_much_memory_says_how_to_pack_it(tmp_path):
    # A frame that begins with a window of 4 GiB.
    with pytest.raises(BadInput, match=r"too much memory to unpack .*`zstd -d --long=31 \| zstd`"):
        _text(tmp_path / "x.jsonl.zst", b"\x28\xb5\x2f\xfd\x00\xb0" + bytes(20))
    # The header of a block that says a dictionary of 1 GiB, which a packer would allocate.
    octets = bytearray(lzma.compress(b"a"))
    octets[16] = 36
    octets[20:24] = zlib.crc32(octets[12:20]).to_bytes(4, "little")
    with pytest.raises(BadInput, match=r"too much memory to unpack .*`xz -d \| xz -6`"):
        _text(tmp_path / "x.jsonl.xz", bytes(octets))


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_not_packed_as_its_name_says_is_refused(tmp_path, packing):
    path = tmp_path / f"x.jsonl.{packing}"
    with pytest.raises(BadInput, match=r"or none: give it the ending of what it is, or pack it"):
        _text(path, b'{"question": 1}')
    with pytest.raises(BadInput, match=r"has bytes behind its \w+ data that are none: pack it"):
        _text(path, packed(b"a", packing) + b"garbage")
    with pytest.raises(BadInput, match="is a Git LFS pointer"):
        _text(path, b"version https://git-lfs.github.com/spec/v1\n")


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "_MEMBERS", 3)
    for packing in PACKINGS:
        path = tmp_path / f"x.jsonl.{packing}"
        assert _text(path, packed(b"a", packing) * 3) == b"aaa"
        with pytest.raises(BadInput, match="more than 3"):
            _text(path, packed(b"a", packing) * 4)


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_parts_are_short_and_padding_behind_members_is_no_text(tmp_path, packing):
    path = tmp_path / f"x.jsonl.{packing}"
    path.write_bytes(packed(bytes(3 << 20), packing) + bytes(512) + packed(b"a", packing) + b"\0")
    with unpacked(path) as texts:
        sizes = [len(text) for text in texts]
    assert max(sizes) == 1 << 20
    assert sum(sizes) == (3 << 20) + 1


def test_links_and_pipes_are_refused(tmp_path):
    (tmp_path / "x.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="is a link"), unpacked(tmp_path / "x.jsonl"):
        pass


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
def test_an_error_of_the_disk_is_no_damage(tmp_path, packing, monkeypatch):
    path = tmp_path / f"a.jsonl.{packing}"
    path.write_bytes(packed(b"x" * 100, packing))

    read = NamedFile.read

    def failing(file: NamedFile, size: int) -> bytes:
        if size != HEAD_BYTES:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read(file, size)

    monkeypatch.setattr(NamedFile, "read", failing)
    with pytest.raises(OSError, match=r"Input/output error: .*a\.jsonl"):
        _text(path, path.read_bytes())
