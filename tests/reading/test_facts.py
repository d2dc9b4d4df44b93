"""Lines about files: types, shapes, ranges, lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.reading import reader
from gristmill.reading.reader import Ranges, array_fact, file_facts


@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_the_range_of_a_column_is_that_of_all_rows_of_all_arrays(
    batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_BATCH_BYTES", batch_bytes)
    rows = np.zeros(4, [("run", "<u4"), ("ev", "<f4", (2,))])
    rows["run"] = [7, 3, 4, 2_000]
    rows["ev"][2] = [-0.25, 1 / 3]
    ranges = Ranges()
    ranges.add(rows)
    rows["run"], rows["ev"] = 5, 1e9
    ranges.add(rows[:1])
    assert list(ranges.lines()) == ["run: uint32, 3 to 2,000", "ev: float32, -0.25 to 1e+09"]


def test_an_array_has_its_type_its_shape_and_its_range() -> None:
    tokens = np.arange(2_400, dtype=np.uint16).reshape(1_200, 2)
    assert array_fact("inputs.npy", tokens) == "inputs.npy: uint16 [1,200, 2], 0 to 2,399"
    assert array_fact("empty.npy", tokens[:0]) == "empty.npy: uint16 [0, 2]"


def test_text_files_have_lines_and_bytes_and_a_missing_one_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    (tmp_path / "many").write_text("a\n" * 2_000 + "b")
    (tmp_path / "folder").mkdir()
    assert list(file_facts(tmp_path, ["one", "gone", "folder", "many"])) == [
        "one: 1 line, 2 bytes",
        "many: 2,000 lines, 4,001 bytes",
    ]
