"""The row digest of columns of every type, and its independence of batches."""

import hashlib
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gristmill.synth.format.trace import RowsDigest


def digest_of(table: pa.Table, rows: int) -> str:
    digest = RowsDigest()
    for batch in table.to_batches(rows):
        digest.update(batch)
    return digest.hexdigest()


@pytest.mark.parametrize(
    "column",
    [
        [b"\xff", None, b"b", b"c", b"\x00"],
        [{"a": "x"}, None, {"a": None}, {"a": ""}, {"a": "y"}],
        [["x"], [], None, ["y", None], [""]],
        [1, None, 0, None, -5],
        [1.5, None, float("nan"), 0.0, 2.0],
        [datetime(2026, 1, 1), None, None, None, None],
    ],
)
def test_the_digest_does_not_depend_on_batches_but_on_nulls(column: list[Any]) -> None:
    table = pa.table({"x": column})
    digests = {digest_of(table, rows) for rows in (1, 2, 5)}
    assert len(digests) == 1
    changed = pa.table({"x": [None, *column[1:]]}, schema=table.schema)
    assert digest_of(changed, 5) not in digests


def test_the_digest_has_the_form_of_the_format_page() -> None:
    table = pa.table(
        {
            "s": ["ab", None, ""],
            "n": [7, None, -1],
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
        }
    )
    columns = {
        "s": (np.array([2, -1, 0], "<i4").tobytes(), b"ab"),
        "n": (np.array([1], "<i8").tobytes(), np.array([7, 0, -1], "<i8").tobytes()),
        "l": (np.array([2, -1, 0], "<i4").tobytes(), np.array([1, 2], "<i4").tobytes()),
    }
    lines = ""
    for name, (sizes, values) in columns.items():
        hashes = hashlib.sha256(sizes).hexdigest() + hashlib.sha256(values).hexdigest()
        lines += f"{name}\0{hashes}\n"
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert [digest_of(table, rows) for rows in (1, 3)] == [expected, expected]


def test_null_differs_from_the_empty_string_and_from_0() -> None:
    for value, kind in (("", pa.string()), (0, pa.int64()), ([], pa.list_(pa.int32()))):
        null, other = (pa.table({"x": pa.array([v], kind)}) for v in (None, value))
        assert digest_of(null, 1) != digest_of(other, 1)
