"""Files beside the tokens: traces and quarantines; and the control tokens, found in text."""

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import harmony_tokens, quarantine, trace
from gristmill.synth.format.quarantine import MOST_NAMED, BadRow, BadRows, QuarantineWriter, packed
from gristmill.synth.format.trace import RowsDigest, Trace, TraceWriter, path


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
def test_the_digest_does_not_depend_on_batches_but_on_nulls(column):
    table = pa.table({"x": column})
    digests = {digest_of(table, rows) for rows in (1, 2, 5)}
    assert len(digests) == 1
    changed = pa.table({"x": [None, *column[1:]]}, schema=table.schema)
    assert digest_of(changed, 5) not in digests


def test_the_digest_has_the_form_of_the_format_page():
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


def test_null_differs_from_the_empty_string_and_names_of_control_tokens_are_found():
    for value, kind in (("", pa.string()), (0, pa.int64()), ([], pa.list_(pa.int32()))):
        null, other = (pa.table({"x": pa.array([v], kind)}) for v in (None, value))
        assert digest_of(null, 1) != digest_of(other, 1)
    for token in range(199_900, 210_000):
        exists = (
            token in harmony_tokens.NAMES or 200_000 <= token < harmony_tokens.PADDED_VOCABULARY
        )
        text = f"<|reserved_{token}|>"
        assert bool(harmony_tokens.TEXT.fullmatch(text)) == (
            exists and token not in harmony_tokens.NAMES
        )
        if exists:
            assert harmony_tokens.TEXT.findall(f"x{harmony_tokens.name(token)}y") == [
                harmony_tokens.name(token)
            ]


def rows(begin: int, stop: int) -> pa.RecordBatch:
    """Trace rows of documents `begin` to `stop` - 1, with two messages each."""
    values = [
        {
            "split": "train",
            "document": number,
            "input": "synth_harmony_shard_00.parquet",
            "row": number + 1,
            "synth_id": f"id {number}",
            "language": None,
            "exercise": "math",
            "offsets": [0, 5, 9],
        }
        for number in range(begin, stop)
    ]
    return pa.RecordBatch.from_pylist(values, schema=trace.schema())


def write(file: Path, edges: list[int]) -> str:
    with trace.TraceWriter(file) as writer:
        for begin, stop in pairwise(edges):
            writer.add(rows(begin, stop))
        return writer.content_sha256()


@pytest.mark.parametrize(
    ("total", "groups"), [(9, [9]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])]
)
def test_row_groups_do_not_depend_on_batches(tmp_path, monkeypatch, total, groups):
    monkeypatch.setattr(trace, "_ROW_GROUP", 10)
    digests = set()
    for name, edges in (
        ("one", [0, total]),
        ("many", [0, 4, 5, total]),
        ("rows", [*range(total + 1)]),
    ):
        file = tmp_path / name / "trace_00.parquet"
        digests.add(write(file, edges))
        parquet = pq.ParquetFile(file)
        sizes = [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)]
        assert sizes == groups
        assert parquet.read()["document"].to_pylist() == list(range(total))
    assert len(digests) == 1


def write_splits(file: Path, documents: list[tuple[str, int]]) -> None:
    """Writes a trace file with a row of each (split, document)."""
    batch = rows(0, len(documents))
    splits, numbers = zip(*documents, strict=True) if documents else ((), ())
    batch = batch.set_column(0, batch.schema.field(0), pa.array(splits, pa.string()))
    batch = batch.set_column(1, batch.schema.field(1), pa.array(numbers, pa.int64()))
    with TraceWriter(file) as writer:
        writer.add(batch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset whose trace has three row groups of 10, 10 and 5 documents."""
    monkeypatch.setattr("gristmill.synth.format.trace._ROW_GROUP", 10)
    write(tmp_path / path("03"), [0, 25])
    return tmp_path


@pytest.mark.parametrize("document", [0, 9, 10, 24])
def test_a_document_leads_to_its_row_in_every_row_group(folder, document):
    traced = trace.trace(folder, "03", "train", document)
    assert traced == Trace(
        input="synth_harmony_shard_00.parquet",
        row=document + 1,
        synth_id=f"id {document}",
        language=None,
        exercise="math",
        offsets=[0, 5, 9],
    )
    assert traced.message_bounds() == [(0, 5), (5, 9)]


@pytest.mark.parametrize(("split", "document"), [("train", 25), ("train", -1), ("valid", 0)])
def test_a_document_that_does_not_exist_is_refused(folder, split, document):
    with pytest.raises(BadInput, match=f"no document {document} in {split} of shard 03"):
        trace.trace(folder, "03", split, document)


def test_a_shard_without_trace_file_is_refused(folder):
    with pytest.raises(BadInput, match=r"trace_00\.parquet: shard 00 has no trace file"):
        trace.trace(folder, "00", "train", 0)


@pytest.mark.parametrize("every", [2, 7, 1000])
def test_few_row_groups_are_read_for_a_document_of_a_large_shard(tmp_path, monkeypatch, every):
    """Every seventh row is valid, and there are row groups without a valid one."""
    monkeypatch.setattr("gristmill.synth.format.trace._ROW_GROUP", 5)
    splits = ["valid" if row % every == every - 1 else "train" for row in range(2500)]
    numbers = [splits[:row].count(split) for row, split in enumerate(splits)]
    write_splits(tmp_path / path("03"), list(zip(splits, numbers, strict=True)))
    read: list[int] = []
    real, batches = pq.ParquetFile.read_row_group, pq.ParquetFile.iter_batches

    def whole(file: pq.ParquetFile, group: int, columns: list[str] | None = None) -> pa.Table:
        read.append(file.metadata.row_group(group).num_rows)
        return real(file, group, columns)

    def first(file: pq.ParquetFile, size: int, **options: Any) -> Iterator[pa.RecordBatch]:
        read.append(size)
        return batches(file, size, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", whole)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", first)
    for row in (0, 1, 4, 5, 6, 999, 1000, 2499):
        read.clear()
        assert trace.trace(tmp_path, "03", splits[row], numbers[row]).row == row + 1
        assert sum(read) <= 2 * 5 + 10  # the row group twice, and the first rows of ten others
    for split in ("train", "valid"):
        with pytest.raises(BadInput, match="no document"):
            trace.trace(tmp_path, "03", split, splits.count(split))


def test_a_trace_without_rows_is_readable_and_one_with_other_columns_is_refused(tmp_path):
    write_splits(tmp_path / path("03"), [])
    with trace.opened(tmp_path / path("03")) as parquet:
        assert parquet.metadata.num_rows == 0
    with pytest.raises(BadInput, match="no document 0 in train of shard 03"):
        trace.trace(tmp_path, "03", "train", 0)
    file = tmp_path / "trace_00.parquet"
    pq.write_table(pa.table({"split": ["train"]}), file)
    with pytest.raises(BadInput, match="does not have the columns of a trace"):
        trace.opened(file)


ROWS = [BadRow(3, "a\udcffb\n", "ValueError: two\nlines"), BadRow(9, None, "Missing synth_id")]


def test_the_file_has_each_row_as_it_was_packed(tmp_path):
    with QuarantineWriter(tmp_path, "07") as writer:
        writer.add(b"")
        assert not (tmp_path / quarantine.path("07")).parent.exists()
        writer.add(packed(ROWS[:1]))
        writer.add(packed(ROWS[1:]))
    lines = (tmp_path / quarantine.path("07")).read_text().splitlines()
    assert lines == [json.dumps({"shard": "07", **row._asdict()}) for row in ROWS]
    assert writer.rows == 2


SET_ASIDE = "[synth.kd_shards], of the smoke test [synth_smoke.kd_shards], in gristmill.toml; it is"
LISTED = (
    "  row 3, synth_id 'a\\udcffb\\n': ValueError: two lines",
    "  row 9, synth_id None: Missing synth_id",
)
NONE_GOOD = "a shard without a good row is not built, whatever `bad_rows` is"
ALL_BAD = f"none of 2 rows can be rendered: correct them, or get the file again: {NONE_GOOD}:"


@pytest.mark.parametrize(
    ("rows", "allowed", "good", "lines"),
    [
        (
            ROWS[1:],
            0,
            1,
            [
                "synth_id None: Missing synth_id (correct the row, or set such rows aside by "
                f"`bad_rows = 1` below {SET_ASIDE} 0)"
            ],
        ),
        (
            ROWS,
            1,
            1,
            [
                "2 rows cannot be rendered: correct them, or set such rows aside by "
                f"`bad_rows = 2` below {SET_ASIDE} 1:",
                *LISTED,
            ],
        ),
        *((ROWS, allowed, 0, [ALL_BAD, *LISTED]) for allowed in (0, 2, 99)),
        (ROWS[1:], 9, 0, [f"synth_id None: Missing synth_id (correct the row: {NONE_GOOD})"]),
    ],
)
def test_too_many_bad_rows_or_no_good_one_are_an_error_that_names_them(rows, allowed, good, lines):
    bad = BadRows(allowed)
    bad.check(Path("shard"), good)
    bad.add(len(rows), [list(row) for row in rows])
    with pytest.raises(BadInput) as caught:
        bad.check(Path("shard"), good)
    assert (caught.value.file, caught.value.row) == ("shard", rows[0].row)
    assert caught.value.rule.splitlines() == lines


def test_a_long_list_is_cut_and_few_faults_are_no_error():
    bad = BadRows(4)
    rows = [BadRow(n, "i" * 500, "r\x1b" * 500) for n in range(1, 18)]
    for _ in range(3):
        bad.add(17, [row.short() for row in rows])
    with pytest.raises(BadInput) as caught:
        bad.check(Path("shard"), good=1)
    first, *lines = caught.value.rule.splitlines()
    assert (
        first.startswith("51 rows ") and first.endswith("it is 4:") and "`bad_rows = 51`" in first
    )
    assert len(lines) == MOST_NAMED + 1
    assert lines[-1] == "  and 31 more of the 51 rows"
    assert all(len(line) < 320 for line in lines)
    assert all(char.isprintable() for line in lines for char in line)
    bad = BadRows(2)
    bad.check(Path("shard"), good=1)
    bad.add(2, ROWS)
    assert not bad.too_many
    bad.check(Path("shard"), good=1)
    bad.add(1, ROWS[:1])
    assert bad.too_many
    assert ROWS[0].short() == ROWS[0]
    long = BadRow(1, "i" * 61, "r" * 1001).short()
    assert (long.synth_id, long.rule) == (
        f"{'i' * 60}… and 1 more character",
        f"{'r' * 1000}… and 1 more character",
    )
