"""The bytes of a raw row are those that the reader reads as this row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.raw.rows import row_bytes, rows

GSM8K = CORPORA["gsm8k"]
LINES = b'\xef\xbb\xbf{"question":"a","answer":"b"}\r\n\n{"question":"c","answer":"\xc3\xa4"}'
TABLE = b'question,answer\r\n\r\n"a\nb, c",d\r\n\n"say ""no""",\xc3\xa4\n'


def _bytes(path: Path, row: int, corpus: str = "gsm8k") -> bytes:
    ((name, value),) = row_bytes(path, CORPORA[corpus], row).items()
    octets = path.read_bytes()
    if path.suffix == ".gz":
        octets = gzip.decompress(octets)
    assert name == ("raw_row_bytes_unpacked" if path.suffix == ".gz" else "raw_row_bytes")
    begin, end = map(int, str(value).split("-"))
    return octets[begin:end]


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.jsonl.gz"])
def test_the_bytes_of_a_line_are_the_object(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES) if name.endswith(".gz") else LINES)
    found = dict(rows(path, GSM8K))
    assert list(found) == [1, 3]
    for row, value in found.items():
        assert json.loads(_bytes(path, row).removeprefix(b"\xef\xbb\xbf")) == value
    assert row_bytes(path, GSM8K, 4) == {}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_the_bytes_of_a_record_of_a_table_may_be_several_lines(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TABLE) if name.endswith(".gz") else TABLE)
    assert [number for number, _ in rows(path, GSM8K)] == [1, 2]
    assert _bytes(path, 1) == b'"a\nb, c",d'
    assert _bytes(path, 2) == b'"say ""no""",\xc3\xa4'
    assert row_bytes(path, GSM8K, 3) == {}


def test_the_bytes_of_a_table_without_a_header_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "ecqa_train.tsv"
    path.write_bytes(b"a\tb\tc\n\nd\te\tf\r\n")
    assert [number for number, _ in rows(path, CORPORA["cot_collection"])] == [1, 3]
    assert _bytes(path, 3, "cot_collection") == b"d\te\tf"


def test_members_of_an_array_have_no_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'[{"question":"a"},\n{"question":"b"}]')
    assert row_bytes(path, GSM8K, 2) == {}


def test_a_link_is_read_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/blob").write_bytes(gzip.compress(LINES))
    (tmp_path / "x.jsonl.gz").symlink_to(tmp_path / "store/blob")
    assert row_bytes(tmp_path / "x.jsonl.gz", GSM8K, 3) == {"raw_row_bytes_unpacked": "35-65"}
