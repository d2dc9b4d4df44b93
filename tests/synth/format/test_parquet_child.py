"""Hostile Parquet files: each is read or refused within 1 GiB, and the limits are exact."""

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
from gristmill.synth.format import batch_bytes
from gristmill.synth.format.batch_bytes import bytes_apart, divided, longest
from gristmill.synth.format.parquet_child import Wanted, describe, read
from gristmill.synth.format.untrusted_parquet import UntrustedParquet
from gristmill.synth.samples import write_drop
from gristmill.untrusted import parquet as limits
from tests.paths import CHECKOUT
from tests.synth.bombs import GOOD, dictionary_of_one, nested, nulls, write_all

READ = {
    "lengths by differences in a block of 2**30",
    "a page that claims 2 GB, not packed",
    "2**62 values",
    "a column chunk in another file",
    "times as INT96",
    "a column whose name is 1 MB",
    "a column whose name is empty",
    "statistics that are wrong",
    "an encrypted footer's algorithm",
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


def batches(path: Path, **wanted: Any) -> list[pa.RecordBatch]:
    """What the child would send, read in this process."""
    with opened(path) as descriptor:
        groups = list(range(len(describe(descriptor, path, []).groups)))
        all_rows = Wanted(1000, None, groups, 0, 1 << 20)
        streams = list(read(descriptor, path, replace(all_rows, **wanted)))
    return [pa.ipc.open_stream(stream).read_next_batch() for stream in streams]


@pytest.mark.slow
def test_every_hostile_file_is_read_or_refused_within_a_gibibyte(tmp_path: Path) -> None:
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


def test_a_damaged_file_is_read_or_refused(tmp_path: Path) -> None:
    """A sample of what `make fuzz` does more of."""
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 150)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 10_000)


def _mutate(path: Path, count: int) -> None:
    from gristmill.synth.format.untrusted_parquet import UntrustedParquet

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


def test_a_file_may_have_many_rows_for_its_bytes_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    size = len(nulls(limits.ANY_ROWS).octets())
    most = limits.ANY_ROWS + size
    assert sum(map(len, batches(nulls(most).write(path)))) == most
    with pytest.raises(BadInput, match=f"claims {most + 1:,} rows in {size:,} bytes"):
        batches(nulls(most + 1).write(path))


def test_columns_may_be_nested_up_to_a_limit(tmp_path: Path) -> None:
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


def test_a_file_may_have_many_columns_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"

    def columns(count: int) -> int:
        names = [b"c%d" % number for number in range(count)]
        with opened(replace(GOOD, names=names).write(path)) as descriptor:
            return len(describe(descriptor, path, []).schema)

    assert columns(limits.COLUMNS) == 10_000
    with pytest.raises(BadInput, match="has more than 10,000 columns"):
        columns(limits.COLUMNS + 1)


def test_a_row_may_take_so_many_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = ["a", "b" * 1000, "c" * 500]
    pq.write_table(pa.table({"x": texts, "y": texts}), path)
    rows = batches(path, row_bytes=2008)
    assert [batch.to_pydict()["y"] for batch in rows] == [["a"], ["b" * 1000], ["c" * 500]]
    with opened(path) as descriptor, pytest.raises(BadInput) as error:
        wanted = Wanted(1, None, [0], 70, 2007)
        list(read(descriptor, path, wanted))
    assert (error.value.row, error.value.rule) == (72, "takes 2,008 bytes: a row may take 2,007")


@pytest.mark.parametrize("form", ["dictionary", "view", "string", "binary dictionary"])
def test_a_batch_that_is_too_large_is_divided_in_order(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_bytes, "BATCH_BYTES", 5000)
    texts: list[Any] = [f"{number:03d}" * (100 if number % 7 else 1) for number in range(100)]
    texts[50] = None
    array: pa.Array = pa.array(texts)
    if form == "view":
        array = pa.array(texts, pa.string_view())
    elif form == "dictionary":
        array = pa.array(texts).dictionary_encode()
    elif form == "binary dictionary":
        array = pa.array([text and text.encode() for text in texts]).dictionary_encode()
    pq.write_table(pa.table({"x": array}), tmp_path / "x.parquet")
    divided = batches(tmp_path / "x.parquet")
    values = [value for batch in divided for value in batch.to_pydict()["x"]]
    assert [value.decode() if isinstance(value, bytes) else value for value in values] == texts
    assert 6 <= len(divided) <= 16
    kinds = {str(batch.schema.field("x").type) for batch in divided}
    assert kinds == (
        {"dictionary<values=binary, indices=int32, ordered=0>"} if "bin" in form else {"string"}
    )


def test_values_of_nested_columns_count_more_than_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_bytes, "BATCH_BYTES", 100 * 64)
    lists = pa.array([[0] * 10] * 100, pa.list_(pa.int8()))
    structs = pa.array([{"a": 1, "b": [True]}] * 100)
    pairs = pa.array([[("a", 1), ("b", None)], None] * 50, pa.map_(pa.string(), pa.int8()))
    for column in (lists, structs, pairs):
        pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
        divided = batches(tmp_path / "x.parquet")
        assert [row for batch in divided for row in batch.to_pydict()["x"]] == column.to_pylist()
        assert len(divided) >= 2


def test_rows_may_take_many_times_the_bytes_of_the_file_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_number_of_nulls_is_that_of_the_footer(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"s": [{"a": 1}] * 4, "x": [1, None, None, 4], "y": ["a", None, "b", "c"]})
    pq.write_table(table, path, row_group_size=2)
    with opened(path) as descriptor:
        described = describe(descriptor, path, ["x", "y", "s", "z"])
    assert described.nulls == {"x": [1, 1], "y": [1, 0]}
    assert described.groups == [2, 2]
    pq.write_table(table, path, write_statistics=False)
    with opened(path) as descriptor:
        assert describe(descriptor, path, ["x"]).nulls == {"x": [None]}


def test_a_file_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for number in range(1, 4):
        pq.write_table(pa.table({f"x{number}": [number] * number}), path)
        assert [batch.to_pydict() for batch in batches(path)] == [{f"x{number}": [number] * number}]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": ["x", "y", "z"], "b": ["x", "y", "z"]}, 3),
        ({"a": ["x", None, "z"], "b": ["x", "y", "z"]}, 2),
        ({"a": ["x", None, None], "b": [None, None, None]}, None),
        ({"a": ["x", None, "z"], "b": ["x", None, "z"]}, None),
        ({"a": ["x", "", "z"], "b": ["x", "y", "z"]}, None),
        ({"a": ["x", "y", "z"], "b": [None, None, None]}, 0),
        ({"a": ["x", "y", "z"]}, None),
        ({"a": [], "b": []}, 0),
    ],
)
def test_rows_with_texts_are_counted_by_the_footer_where_it_says_so(
    tmp_path: Path, columns: dict[str, list[str | None]], expected: int | None
) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    for size in (1, 5):
        pq.write_table(table, path, row_group_size=size)
        with UntrustedParquet(path, []) as file:
            counted = file.filled_at_most(["a", "b"])
            if size == 5:
                assert counted == expected
            if counted is not None:
                assert counted == file.filled(10, ["a", "b"])
    pq.write_table(table, path, write_statistics=False)
    with UntrustedParquet(path, []) as file:
        assert file.filled_at_most(["a", "b"]) == (None if len(table) else 0)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x" * 70, None, "", "é" * 90]).slice(1),
        pa.array([None, None], pa.string()),
        pa.array([], pa.large_string()),
        pa.array(["a" * 99, "b"], pa.large_string()),
        pa.array(["a" * 99, "b", "b"]).dictionary_encode(),
        pa.array([[1, 2], [3]]),
    ],
)
def test_no_value_takes_more_bytes_than_the_longest(array: pa.Array) -> None:
    sizes = [bytes_apart(array.slice(at, 1)) for at in range(len(array))]
    assert max(sizes, default=0) <= longest(array) <= max(bytes_apart(array), 64 + 180)


def test_a_batch_of_many_rows_is_divided_only_where_one_of_them_may_be_too_long() -> None:
    whole = pa.record_batch({"a": ["x" * 50] * 100, "b": ["y" * 50] * 100})
    parts = [len(part) for part, _ in divided(whole, Path("x"), 0, 300)]
    assert parts == [100]
    parts = [len(part) for part, _ in divided(whole, Path("x"), 0, 200)]
    assert sum(parts) == 100 and max(parts) <= 2
    with pytest.raises(BadInput, match="takes 108 bytes: a row may take 107"):
        list(divided(whole, Path("x"), 0, 107))
