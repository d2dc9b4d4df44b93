"""Rows that cannot be rendered: their file, and the error that names them."""

import json
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.synth.format.quarantine import (
    MOST_NAMED,
    BadRow,
    BadRows,
    QuarantineWriter,
    packed,
    path,
)

ROWS = [BadRow(3, "a\udcffb\n", "ValueError: two\nlines"), BadRow(9, None, "Missing synth_id")]


def _rule(rows: list[BadRow], count: int, allowed: int) -> str:
    bad = BadRows(allowed)
    bad.add(count, [list(row) for row in rows])
    with pytest.raises(BadInput) as caught:
        bad.check(Path("shard"), good=1)
    assert caught.value.row == rows[0].row
    return caught.value.rule


def test_the_file_has_each_row_as_it_was_packed(tmp_path: Path) -> None:
    with QuarantineWriter(tmp_path, "07") as writer:
        writer.add(b"")
        assert not (tmp_path / path("07")).parent.exists()
        writer.add(packed(ROWS[:1]))
        writer.add(packed(ROWS[1:]))
    lines = (tmp_path / path("07")).read_text().splitlines()
    assert lines == [json.dumps({"shard": "07", **row._asdict()}) for row in ROWS]
    assert writer.rows == 2


def test_one_bad_row_is_named_in_one_sentence() -> None:
    assert _rule(ROWS[1:], 1, 0) == (
        "synth_id None: Missing synth_id (correct the row, or set such rows aside by "
        "`bad_rows = 1` below [synth.kd_shards], of the smoke test [synth_smoke.kd_shards], in "
        "gristmill.toml; it is 0)"
    )


def test_several_bad_rows_are_listed_on_lines_of_their_own() -> None:
    assert _rule(ROWS, 2, 1).splitlines() == [
        "2 rows cannot be rendered: correct them, or set such rows aside by `bad_rows = 2` below "
        "[synth.kd_shards], of the smoke test [synth_smoke.kd_shards], in gristmill.toml; it is 1:",
        "  row 3, synth_id 'a\\udcffb\\n': ValueError: two lines",
        "  row 9, synth_id None: Missing synth_id",
    ]


def test_a_long_list_is_cut_and_its_count_is_exact() -> None:
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


def test_rows_within_the_bound_are_no_error() -> None:
    bad = BadRows(2)
    bad.check(Path("shard"), good=1)
    bad.add(2, ROWS)
    assert not bad.too_many
    bad.check(Path("shard"), good=1)
    bad.add(1, ROWS[:1])
    assert bad.too_many


@pytest.mark.parametrize("allowed", [0, 2, 99])
def test_rows_that_are_all_bad_are_an_error_whatever_the_bound_is(allowed: int) -> None:
    bad = BadRows(allowed)
    bad.check(Path("shard"), good=0)
    bad.add(2, ROWS)
    with pytest.raises(BadInput) as caught:
        bad.check(Path("shard"), good=0)
    assert str(caught.value).splitlines() == [
        "shard:3: none of 2 rows can be rendered: correct them, or get the file again: a shard "
        "without a good row is not built, whatever `bad_rows` is:",
        "  row 3, synth_id 'a\\udcffb\\n': ValueError: two lines",
        "  row 9, synth_id None: Missing synth_id",
    ]


def test_an_only_row_that_is_bad_is_named_in_one_sentence() -> None:
    bad = BadRows(9)
    bad.add(1, [list(ROWS[1])])
    with pytest.raises(BadInput) as caught:
        bad.check(Path("shard"), good=0)
    assert str(caught.value) == (
        "shard:9: synth_id None: Missing synth_id (correct the row: a shard without a good row is "
        "not built, whatever `bad_rows` is)"
    )


def test_the_short_form_keeps_short_texts_whole() -> None:
    assert ROWS[0].short() == ROWS[0]
    long = BadRow(1, "i" * 61, "r" * 1001).short()
    assert (long.synth_id, long.rule) == (
        f"{'i' * 60}… and 1 more character",
        f"{'r' * 1000}… and 1 more character",
    )
