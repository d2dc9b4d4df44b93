"""Months and endings in names, month lists, and the months that are due."""

from datetime import date

import pytest

from gristmill.chess import due_months, parse_month_list
from gristmill.chess.raw.file_names import check_month, is_month, month_before, month_in
from gristmill.contract import BadInput


def test_month_lists() -> None:
    text = (
        "# elite\n\n2025-01\n https://x/lichess_elite_2025-02.zip?raw=1\n2025-01\n"
        "see lichess_elite_2024-12.zip\n"
    )
    assert parse_month_list(text) == ["2025-01", "2025-02", "2024-12"]
    for bad in ("2025-1", "lichess_elite_2025-01.zip.part", "2025-13"):
        with pytest.raises(BadInput, match=r"Unsupported month entry|not a month"):
            parse_month_list(bad)
    with pytest.raises(BadInput, match="no months"):
        parse_month_list("# nothing\n")


def test_a_month_is_distinguished_from_the_name_of_a_collection() -> None:
    assert is_month("2024-12")
    assert is_month("2024-13") and not is_month("elite_2024-01") and not is_month("2024-1")


def test_due_months_of_a_tick() -> None:
    year = [f"2024-{m:02d}" for m in range(3, 13)] + ["2025-01", "2025-02"]
    tick = date(2025, 3, 5)
    assert due_months(tick, set(year)) == []
    assert due_months(tick, set(year) - {"2024-03", "2025-02"}) == ["2024-03", "2025-02"]
    assert due_months(date(2020, 8, 1), set()) == ["2020-06", "2020-07"]
    # Months that never come do not keep the others waiting: four weeks ask for all twelve.
    asked: set[str] = set()
    for week in range(4):
        due = due_months(date.fromordinal(tick.toordinal() + 7 * week), set())
        assert len(due) == 3
        asked.update(due)
    assert asked == set(year)
    assert due_months(tick, set()) == due_months(tick, [])


def test_the_month_of_a_name_and_the_month_before() -> None:
    assert month_in("x_2024-01.pgn") == "2024-01"
    assert month_in("12024-01.pgn") is None
    assert month_in("2024-01_2024-02.pgn") is None
    assert (month_before("2024-01"), month_before("2024-10")) == ("2023-12", "2024-09")
    assert check_month("2020-06") == "2020-06"
    for month in ("2020-05", "2024-00", "2024-13"):
        with pytest.raises(BadInput, match="not a month"):
            check_month(month)
