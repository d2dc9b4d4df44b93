"""Untrusted Parquet files: how they are opened, their rows and errors, hostile files, limits."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import parquet
from gristmill.synth.format.parquet import UntrustedParquet, _describe, _read
from gristmill.synth.samples import write_drop
from gristmill.untrusted import parquet as limits
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.paths import CHECKOUT, open_below
from tests.synth.bombs import GOOD, dictionary_of_one, nested, nulls, write_all


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten rows in row groups of three."""
    file = tmp_path / "x.parquet"
    table = pa.table({"x": list(range(10)), "y": [f"text {number}" for number in range(10)]})
    pq.write_table(table, file, row_group_size=3)
    return file


def test_row_groups_and_columns_are_chosen(path):
    with UntrustedParquet(path, ["x"], ["x"]) as file:
        assert (file.names, file.rows, file.groups) == (["x", "y"], 10, [3, 3, 3, 1])
        assert file.nulls == {"x": [0, 0, 0, 0]}
        assert [batch.to_pydict() for batch in file.batches(2, ["y"], [1, 2])] == [
            {"y": ["text 3", "text 4"]},
            {"y": ["text 5", "text 6"]},
            {"y": ["text 7", "text 8"]},
        ]
        assert [row for batch in file.batches(100) for row in batch.to_pydict()["x"]] == list(
            range(10)
        )
        assert list(file.batches(100, ["x"], [])) == []


def test_the_row_of_an_error_counts_the_row_groups_before(path):
    with UntrustedParquet(path, []) as file:
        with pytest.raises(BadInput) as error:
            list(file.batches(2, ["y"], [2, 3], row_bytes=5))
        assert (error.value.row, error.value.file) == (7, str(path))


def test_rows_after_an_early_end_are_read_from_the_beginning(path):
    with UntrustedParquet(path, []) as file:
        for _ in range(3):
            assert next(iter(file.batches(4, ["x"]))).to_pydict() == {"x": [0, 1, 2, 3]}
        assert sum(map(len, file.batches(4))) == 10


def test_a_column_that_is_there_twice_is_refused(path):
    table = pq.read_table(path).append_column("x", pa.array(range(10)))
    pq.write_table(table, path)
    with pytest.raises(BadInput, match=r"has the column x 2 times: leave one of them"):
        UntrustedParquet(path, ["y", "x"])
    with UntrustedParquet(path, ["y"]) as file:
        assert file.rows == 10


def test_only_regular_files_are_read(path):
    link, pipe = path.with_name("link"), path.with_name("pipe")
    link.symlink_to(path)
    os.mkfifo(pipe)
    with UntrustedParquet(link, []) as file:
        assert file.rows == 10
    with pytest.raises(BadInput, match="link: is a link: a drop may hold regular files"):
        UntrustedParquet(link, [], links=REFUSE_LINKS)
    with UntrustedParquet(link, [], links=LinkRule(True, (str(path.parent),))) as file:
        assert file.rows == 10
    for links in (None, REFUSE_LINKS):
        with pytest.raises(BadInput, match="is a pipe"):
            UntrustedParquet(pipe, [], links=links)
        with pytest.raises(BadInput, match=r"is a device|is a folder|is not a readable"):
            UntrustedParquet(path.parent, [], links=links)
        with pytest.raises(BadInput, match=r"is not a readable Parquet file.*No such file"):
            UntrustedParquet(path.with_name("absent"), [], links=links)
    with pytest.raises(BadInput, match="is a device"):
        UntrustedParquet(Path("/dev/zero"), [])


def test_a_file_that_is_replaced_while_it_is_open_stays_the_same(path):
    with UntrustedParquet(path, []) as file:
        other = path.with_name("other")
        pq.write_table(pa.table({"x": [7]}), other)
        other.replace(path)
        assert sum(map(len, file.batches(4))) == 10
        file.copy(path.with_name("copy"))
    assert pq.read_table(path.with_name("copy")).num_rows == 10


def test_a_refused_file_is_closed(path):
    path.write_bytes(b"nothing")
    for _ in range(5):
        with pytest.raises(BadInput, match="is not a readable Parquet file"):
            UntrustedParquet(path, [])
    assert open_below(path.parent) == 0


READ = {
    "lengths by differences in a block of 2**30",
    "a page that claims 2 GB, not packed",
    "a column chunk in another file",
    "times as INT96",
    "a column whose name is 1 MB",
    "statistics that are wrong",
    "times beyond the calendar",
    "times in a zone that is unknown",
    "views of one long string",
}
"""Hostile files of which nothing is decoded that is wrong."""
RULES = {
    "a dictionary of one string of 10 MB for 1000 rows": ":1: takes too much memory to read in",
    "2**40 rows of nulls": "claims 1,099,511,627,776 rows in 406 bytes: it looks like a decompr",
    "fewer rows than none": "its row groups have -4 rows, and the footer says -4: get it again",
    "more rows than values": "holds 4 rows, but its footer says 1,000: get it again",
    "a column whose name is not UTF-8": r"a column whose name is not UTF-8 (b'qu\xffry'): rename",
    "20,000 columns": "has more than 10,000 columns",
    "indices beyond the dictionary": ":1: is damaged in this row or one after it (Index not in dic",
    "an encrypted footer": "is not a readable Parquet file (Could not read encrypted metadata",
    "a page of a kind that there is not": "holds 0 rows, but its footer says 4: get it again",
}


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def batches(path: Path, row_bytes: int = 1 << 20) -> list[pa.RecordBatch]:
    """What the child would send, read in this process."""
    with UntrustedParquet(path, [], is_own=True) as file:
        return list(file.batches(1000, row_bytes=row_bytes))


@pytest.mark.slow
def test_every_hostile_file_is_read_or_refused_within_a_gibibyte(tmp_path):
    files = dict(write_all(tmp_path))
    assert max(path.stat().st_size for path in files.values()) < 3_000_000
    done = subprocess.run(
        [sys.executable, "-m", "tests.synth.read_bombs", str(1 << 30)],
        cwd=CHECKOUT,
        input="\n".join(map(str, files.values())),
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    answers = dict(zip(files, map(json.loads, done.stdout.splitlines()), strict=True))
    for name, readers in answers.items():
        kinds = {reader: kind for reader, (_, kind) in readers.items()}
        assert set(kinds.values()) <= {"rows", "BadInput", "GristmillError"}, (name, readers)
        assert kinds["read"] == ("rows" if name in READ else "BadInput"), (name, readers)
        for text, kind in readers.values():
            assert kind == "rows" or str(files[name].parent) in text
            assert len(text) < 1000
    for name, rule in RULES.items():
        assert rule in answers[name]["read"][0]


def test_a_damaged_file_is_read_or_refused(tmp_path):
    """A sample of what `make fuzz` does more of."""
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 150)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_read_or_refused(tmp_path):
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 10_000)


def _mutate(path: Path, count: int) -> None:
    whole = path.read_bytes()
    chance = random.Random(7)
    refused = 0
    for number in range(count):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            # Half of the changes are in the footer, where the numbers are.
            first = len(data) - 2500 if chance.random() < 0.5 else 0
            place = chance.randrange(max(first, 0), len(data))
            data[place] = chance.choice(
                (0, 0x7F, 0x80, 0xFF, data[place] ^ 1, chance.randrange(256))
            )
        damaged = path.with_name(f"{number}.parquet")
        damaged.write_bytes(data)
        try:
            with UntrustedParquet(damaged, ["synth_id"], ["synth_id"]) as file:
                for batch in file.batches(3):
                    batch.validate()
        except BadInput as error:
            refused += 1
            assert error.file == str(damaged)
        damaged.unlink()
    assert refused > count // 3


def test_a_file_may_have_many_rows_for_its_bytes_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"
    size = len(nulls(limits.ANY_ROWS).octets())
    most = limits.ANY_ROWS + size
    assert sum(map(len, batches(nulls(most).write(path)))) == most
    with pytest.raises(BadInput, match=f"claims {most + 1:,} rows in {size:,} bytes"):
        batches(nulls(most + 1).write(path))


def test_columns_may_be_nested_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"

    def depth(levels: int) -> int:
        kind = pa.int32()
        for _ in range(levels - 1):
            kind = pa.struct({"x": kind})
        pq.write_table(pa.table({"x": pa.nulls(1, kind)}), path)
        return len(batches(path))

    assert depth(limits.DEPTH) == 1
    with pytest.raises(BadInput, match="has columns nested deeper than 32 levels"):
        depth(limits.DEPTH + 1)
    with pytest.raises(BadInput, match="is not a readable Parquet file"):
        batches(nested(10_000).write(path))


def test_a_file_may_have_many_columns_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"

    def columns(count: int) -> int:
        names = [b"c%d" % number for number in range(count)]
        with opened(replace(GOOD, names=names).write(path)) as descriptor:
            return len(_describe(descriptor, path, [])[0])

    assert columns(limits.COLUMNS) == 10_000
    with pytest.raises(BadInput, match="has more than 10,000 columns"):
        columns(limits.COLUMNS + 1)


def test_a_row_may_take_so_many_bytes(tmp_path):
    path = tmp_path / "x.parquet"
    texts = ["a", "b" * 1000, "c" * 500]
    pq.write_table(pa.table({"x": texts, "y": texts}), path)
    rows = batches(path, row_bytes=2008)
    assert [batch.to_pydict()["y"] for batch in rows] == [["a"], ["b" * 1000], ["c" * 500]]
    with opened(path) as descriptor, pytest.raises(BadInput) as error:
        wanted = {"batch_size": 1, "columns": None, "row_groups": [0]}
        list(_read(descriptor, path, wanted, 70, 2007))
    assert (error.value.row, error.value.rule) == (72, "takes 2,008 bytes: a row may take 2,007")


@pytest.mark.parametrize("form", ["dictionary", "view", "string"])
def test_a_batch_that_is_too_large_is_divided_in_order(tmp_path, form, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 5000)
    texts: list[Any] = [f"{number:03d}" * (100 if number % 7 else 1) for number in range(100)]
    texts[50] = None
    array: pa.Array = pa.array(texts, pa.string_view() if form == "view" else pa.string())
    if form == "dictionary":
        array = array.dictionary_encode()
    pq.write_table(pa.table({"x": array}), tmp_path / "x.parquet")
    divided = batches(tmp_path / "x.parquet")
    assert [value for batch in divided for value in batch.to_pydict()["x"]] == texts
    assert 6 <= len(divided) <= 16
    assert {str(batch.schema.field("x").type) for batch in divided} == {"string"}


def test_rows_may_take_many_times_the_bytes_of_the_file_up_to_a_limit(tmp_path, monkeypatch):
    path = dictionary_of_one(100, 2000).write(tmp_path / "x.parquet")
    size = path.stat().st_size
    taken = 2 * 5 * (1000 * 100 + 1000 * 4)  # a string has an offset of four bytes
    monkeypatch.setattr(limits, "ANY_RATIO_BYTES", taken)
    monkeypatch.setattr(limits, "RATIO", 1)
    assert sum(map(len, batches(path))) == 2000
    monkeypatch.setattr(limits, "ANY_RATIO_BYTES", taken - 1)
    with pytest.raises(BadInput, match=r"x.parquet:1001: holds more than 1 times the bytes of the"):
        batches(path)
    monkeypatch.setattr(limits, "RATIO", taken // size + 1)
    assert sum(map(len, batches(path))) == 2000


def test_the_number_of_nulls_is_that_of_the_footer(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"s": [{"a": 1}] * 4, "x": [1, None, None, 4], "y": ["a", None, "b", "c"]})
    pq.write_table(table, path, row_group_size=2)
    with opened(path) as descriptor:
        _, groups, nulls = _describe(descriptor, path, ["x", "y", "s", "z"])
    assert (groups, nulls) == ([2, 2], {"x": [1, 1], "y": [1, 0]})
    pq.write_table(table, path, write_statistics=False)
    with opened(path) as descriptor:
        assert _describe(descriptor, path, ["x"])[2] == {"x": [None]}


def test_a_file_that_was_replaced_is_opened_again(tmp_path):
    path = tmp_path / "x.parquet"
    for number in range(1, 4):
        pq.write_table(pa.table({f"x{number}": [number] * number}), path)
        assert [batch.to_pydict() for batch in batches(path)] == [{f"x{number}": [number] * number}]
