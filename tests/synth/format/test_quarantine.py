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


def test_the_file_has_each_row_as_it_was_packed(tmp_path):
    with QuarantineWriter(tmp_path, "07") as writer:
        writer.add(b"")
        assert not (tmp_path / path("07")).parent.exists()
        writer.add(packed(ROWS[:1]))
        writer.add(packed(ROWS[1:]))
    lines = (tmp_path / path("07")).read_text().splitlines()
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


def test_a_long_list_is_cut_and_its_count_is_exact():
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


def test_rows_within_the_bound_are_no_error():
    bad = BadRows(2)
    bad.check(Path("shard"), good=1)
    bad.add(2, ROWS)
    assert not bad.too_many
    bad.check(Path("shard"), good=1)
    bad.add(1, ROWS[:1])
    assert bad.too_many


def test_the_short_form_keeps_short_texts_whole():
    assert ROWS[0].short() == ROWS[0]
    long = BadRow(1, "i" * 61, "r" * 1001).short()
    assert (long.synth_id, long.rule) == (
        f"{'i' * 60}… and 1 more character",
        f"{'r' * 1000}… and 1 more character",
    )
