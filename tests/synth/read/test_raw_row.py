"""The raw row of a Harmony row, and how little is read to find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.synth.format import parquet
from gristmill.synth.raw.files import TEXTS
from gristmill.synth.read import raw_row
from gristmill.synth.read.raw_row import (
    Wanted,
    by_counting,
    by_ids,
    by_reading,
    has_all_texts,
    one_row,
)

Row = tuple[str | None, str | None]
"""synth_id and reasoning of a raw row."""


def _write(path: Path, rows: Sequence[Row], row_group_size: int = 4) -> Path:
    ids, reasonings = ([row[at] for row in rows] for at in (0, 1))
    texts = ([f"q {n}" for n in range(len(rows))], reasonings, ["a"] * len(rows))
    columns = dict(zip(TEXTS, texts, strict=True))
    table = pa.table(
        {"synth_id": pa.array(ids, pa.string())}
        | {name: pa.array(values, pa.string()) for name, values in columns.items()}
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def _kept(files: Sequence[Sequence[Row]]) -> list[tuple[int, int]]:
    return [(n, at) for n, rows in enumerate(files) for at, row in enumerate(rows) if row[1]]


def _wanted(files: Sequence[Sequence[Row]], row: int, neighbours: int = 8) -> Wanted:
    ids = [files[number][at][0] for number, at in _kept(files)]
    octets = [None if each is None else each.encode() for each in ids]
    first = max(0, row - neighbours)
    return Wanted(row, octets[first:row][::-1], octets[row], octets[row + 1 :][:neighbours])


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, tuple[str, ...]]]:
    """(file, row group, columns) of everything that is read but footers."""
    read: list[tuple[str, int, tuple[str, ...]]] = []
    real = parquet.batches

    def noted(
        path: Path, shard: Any, size: int, columns: Sequence[str], groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        read.extend((path.name, group, tuple(columns)) for group in groups)
        return real(path, shard, size, columns, groups)

    monkeypatch.setattr(parquet, "batches", noted)
    return read


def _check_all(files: list[list[Row]], tmp_path: Path, unknown: Sequence[int] = ()) -> None:
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    for row, place in enumerate(_kept(files)):
        wanted = _wanted(files, row)
        assert by_counting(paths, wanted) == by_reading(paths, wanted) == place
        assert by_ids(paths, wanted) == (None if row in unknown else place), row
    past = Wanted(len(_kept(files)), [], None, [])
    assert by_counting(paths, past) is None


def _rows(name: str, count: int, missing: dict[int, str | None]) -> list[Row]:
    return [(f"{name} {n}", missing.get(n, "why")) for n in range(count)]


def test_rows_are_found_among_rows_without_a_text(tmp_path: Path) -> None:
    files = [
        _rows("a", 10, {0: None, 3: "", 4: None, 5: "", 6: None, 7: ""}),
        _rows("b", 9, {}),
        _rows("c", 10, dict.fromkeys(range(10), "")),
        _rows("d", 5, {4: None}),
    ]
    _check_all(files, tmp_path)


def test_equal_ids_lead_to_no_wrong_row(tmp_path: Path) -> None:
    """In other row groups the neighbours tell them apart; in one row group nothing does."""
    files = [_rows("a", 12, {1: "", 6: None})]
    files[0][2] = ("twin", "why")
    files[0][9] = ("twin", "why")
    _check_all(files, tmp_path)
    files[0][10] = ("twin", "why")
    unknown = [at for at, (_, row) in enumerate(_kept(files)) if row in (9, 10)]
    _check_all(files, tmp_path, unknown)


def test_rows_without_an_id_are_counted(tmp_path: Path) -> None:
    files = [_rows("a", 8, {0: ""})]
    files[0][5] = (None, "why")
    _check_all(files, tmp_path, unknown=[4])
    bare = pq.read_table(tmp_path / "0.parquet").drop_columns(["synth_id"])
    pq.write_table(bare, tmp_path / "bare.parquet")
    assert by_ids([tmp_path / "bare.parquet"], _wanted(files, 3)) is None
    assert by_counting([tmp_path / "bare.parquet"], _wanted(files, 3)) == (0, 4)


def test_a_long_run_of_rows_without_a_text_beside_the_row_is_counted(tmp_path: Path) -> None:
    rows = _rows("a", 150, dict.fromkeys(range(10, 100), ""))
    path = _write(tmp_path / "a.parquet", rows, row_group_size=1000)
    for row, expected in ((3, 3), (9, None), (10, None), (30, 120)):
        found = by_ids([path], _wanted([rows], row, neighbours=2))
        assert found == (None if expected is None else (0, expected))
        assert by_counting([path], _wanted([rows], row)) == _kept([rows])[row]


def test_only_the_row_group_of_the_row_is_read(
    tmp_path: Path, read_groups: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    """Nulls are in footers, so the row groups before it are not read, however many there are."""
    files = [_rows(name, 400, dict.fromkeys(range(0, 400, 8))) for name in "abc"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    kept = _kept(files)
    for row in (0, 500, len(kept) - 1):
        read_groups.clear()
        number, at = kept[row]
        assert by_ids(paths, _wanted(files, row)) == (number, at)
        expected = [(f"{number}.parquet", at // 4, ("synth_id",))]
        assert read_groups in (expected, [])
    read_groups.clear()
    by_counting(paths, _wanted(files, len(kept) - 1))
    assert len(read_groups) == 3 * 50


def test_nothing_is_read_where_no_text_is_missing(
    tmp_path: Path, read_groups: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    files = [_rows(name, 40, {}) for name in "ab"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    assert by_ids(paths, _wanted(files, 57)) == (1, 17)
    assert read_groups == []


def test_a_footer_that_counts_too_few_nulls_leads_to_no_wrong_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is at or after the place that the footers give, so it is found."""
    monkeypatch.setattr(raw_row, "_fewest_without", lambda *_: 0)
    files = [_rows(name, 40, dict.fromkeys(range(0, 40, 8))) for name in "ab"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    for row in range(len(_kept(files))):
        assert by_ids(paths, _wanted(files, row)) == _kept(files)[row]


@pytest.mark.parametrize(("value", "full"), [("x", True), (None, False), ("", False)])
def test_a_footer_says_whether_all_texts_are_there(
    tmp_path: Path, value: str | None, full: bool
) -> None:
    path = _write(tmp_path / "a.parquet", [("1", "r"), ("2", value)])
    with pq.ParquetFile(path) as shard:
        assert has_all_texts(shard, 0) is full
        assert one_row(path, shard, 0, 1, ["synth_id"]) == {"synth_id": "2"}


def test_an_equal_id_before_the_earliest_place_of_the_row_is_no_other_row(tmp_path: Path) -> None:
    rows = _rows("a", 4, {3: ""})
    rows[0], rows[2] = ("twin", "why"), ("twin", "why")
    path = _write(tmp_path / "a.parquet", rows)
    assert by_ids([path], _wanted([rows], 2)) == (0, 2)
    assert by_ids([path], _wanted([rows], 0)) is None
