"""The table of outcomes, the reasons below it, and the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.table import Outcome, show

PLACE = Path("/checkout/data/macroxue/packs/d1")
BUILT = Outcome("macroxue/pack", "d1", "built", 1234, 56789, 1.5, place=str(PLACE))
UNCHANGED = Outcome("macroxue/pack", "d2", "unchanged", 1, 48, 0.25, place=str(PLACE))
NOT_BUILT = Outcome("chess/elite_pgn", "2024-01", "not built", reason="not published [404]")
FAILED = Outcome("macroxue/pack", "d3", "failed", reason="line 3: [99] is not a rank")


def printed(capsys: pytest.CaptureFixture[str], *outcomes: Outcome, below: str = "/") -> list[str]:
    show(outcomes, 2.04, Path(below))
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_a_row_has_the_counts_and_the_folder_relative_to_where_the_user_is(capsys):
    lines = printed(capsys, BUILT, below="/checkout")
    (row,) = [line for line in lines if line.startswith("macroxue/pack")]
    assert row.split() == [
        *("macroxue/pack", "d1", "built", "data/macroxue/packs/d1", "1,234", "56,789", "1.50")
    ]
    (row,) = [line for line in printed(capsys, BUILT, below="/other") if "d1" in line]
    assert str(PLACE) in row


def test_a_partition_that_is_not_published_has_its_reason_and_no_numbers(capsys):
    lines = printed(capsys, FAILED, NOT_BUILT)
    assert "failed macroxue/pack d3: line 3: [99] is not a rank" in lines
    assert "not built chess/elite_pgn 2024-01: not published [404]" in lines
    (row,) = [line for line in lines if line.startswith("chess/elite_pgn")]
    assert row.split() == ["chess/elite_pgn", "2024-01", "not", "built"]


def test_nothing_needed_doing_only_if_nothing_was_built_or_failed(capsys):
    summary = "nothing needed doing (2 artifacts, 2.0 s)"
    assert printed(capsys, UNCHANGED, NOT_BUILT)[-1] == summary
    assert printed(capsys, UNCHANGED, BUILT)[-1] == "1 built in 2.0 s; `gristmill ui` shows them"
    assert printed(capsys, UNCHANGED, FAILED)[-1] == "0 built in 2.0 s; `gristmill ui` shows them"
