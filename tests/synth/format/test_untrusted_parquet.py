"""Untrusted Parquet files from this side: how they are opened, their rows, their errors."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format.untrusted_parquet import UntrustedParquet
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.paths import open_below


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten rows in row groups of three."""
    file = tmp_path / "x.parquet"
    table = pa.table({"x": list(range(10)), "y": [f"text {number}" for number in range(10)]})
    pq.write_table(table, file, row_group_size=3)
    return file


def test_row_groups_and_columns_are_chosen(path: Path) -> None:
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


def test_the_row_of_an_error_counts_the_row_groups_before(path: Path) -> None:
    with UntrustedParquet(path, []) as file:
        with pytest.raises(BadInput) as error:
            list(file.batches(2, ["y"], [2, 3], row_bytes=5))
        assert (error.value.row, error.value.file) == (7, str(path))


def test_rows_after_an_early_end_are_read_from_the_beginning(path: Path) -> None:
    with UntrustedParquet(path, []) as file:
        for _ in range(3):
            assert next(iter(file.batches(4, ["x"]))).to_pydict() == {"x": [0, 1, 2, 3]}
        assert sum(map(len, file.batches(4))) == 10


def test_a_column_that_is_there_twice_is_refused(path: Path) -> None:
    table = pq.read_table(path).append_column("x", pa.array(range(10)))
    pq.write_table(table, path)
    with pytest.raises(BadInput, match=r"has the column x 2 times: leave one of them"):
        UntrustedParquet(path, ["y", "x"])
    with UntrustedParquet(path, ["y"]) as file:
        assert file.rows == 10


def test_only_regular_files_are_read(path: Path) -> None:
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


def test_a_file_that_is_replaced_while_it_is_open_stays_the_same(path: Path) -> None:
    with UntrustedParquet(path, []) as file:
        other = path.with_name("other")
        pq.write_table(pa.table({"x": [7]}), other)
        other.replace(path)
        assert sum(map(len, file.batches(4))) == 10
        file.copy(path.with_name("copy"))
    assert pq.read_table(path.with_name("copy")).num_rows == 10


def test_a_refused_file_is_closed(path: Path) -> None:
    path.write_bytes(b"nothing")
    for _ in range(5):
        with pytest.raises(BadInput, match="is not a readable Parquet file"):
            UntrustedParquet(path, [])
    assert open_below(path.parent) == 0
