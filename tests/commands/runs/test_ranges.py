"""Which partitions go into one run, and the tags of the run."""

from __future__ import annotations

import dagster as dg
import pytest

from commands.runs.ranges import MOST, most_together, ranges, tags

KNOWN = [f"p{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("wanted", "most", "expected"),
    [
        ("01234567", 100, ["01234567"]),
        ("01234567", 3, ["012", "345", "67"]),
        ("0134", 3, ["01", "34"]),  # a range would also take the one between
        ("0246", 100, ["0", "2", "4", "6"]),
        ("567", 1, ["5", "6", "7"]),
        ("70", 8, ["0", "7"]),
        ("", 8, []),
    ],
)
def test_a_run_takes_partitions_that_follow_each_other(
    wanted: str, most: int, expected: list[str]
) -> None:
    keys = [f"p{digit}" for digit in wanted]
    found = list(ranges(keys, KNOWN, most))
    assert found == [[f"p{digit}" for digit in digits] for digits in expected]


def test_the_policy_of_the_asset_bounds_a_run() -> None:
    assert most_together(None) == 1
    assert most_together(dg.BackfillPolicy.multi_run(6)) == 6
    assert most_together(dg.BackfillPolicy.multi_run(5000)) == MOST
    assert most_together(dg.BackfillPolicy.single_run()) == MOST


def test_a_run_of_one_partition_has_the_tag_of_one() -> None:
    assert tags([None]) == {}
    assert tags(["a"]) == {"dagster/partition": "a"}
    assert tags(["a", "b", "c"]) == {
        "dagster/asset_partition_range_start": "a",
        "dagster/asset_partition_range_end": "c",
    }
