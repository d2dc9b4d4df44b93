from typing import Any

import pytest

from gristmill.reasoning.builders.drift import breaches, changes
from gristmill.reasoning.config import ReportConfig

_SPLIT: dict[str, Any] = {
    "raw_sha256": "ab",
    "examples": 100,
    "total_tokens": 10_000,
    "avg_seq_len": 100.0,
    "pct_with_cot": 50.0,
    "alignment_coverage": 0.9,
}


@pytest.fixture
def config(tmp_path: Any) -> ReportConfig:
    return ReportConfig(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"total_tokens": 10_200, "avg_seq_len": 102.0}, []),
        ({"total_tokens": 9_800, "avg_seq_len": 98.0}, []),
        ({"total_tokens": 10_201}, ["total_tokens 10,000 became 10,201: more than 2.00%"]),
        ({"total_tokens": 9_799}, ["total_tokens 10,000 became 9,799: more than 2.00%"]),
        ({"avg_seq_len": 97.9}, ["avg_seq_len 100 became 97.9: more than 2.00%"]),
        ({"pct_with_cot": 51.0}, []),
        ({"pct_with_cot": 51.1}, ["pct_with_cot 50 became 51.1: more than 1 points"]),
        ({"alignment_coverage": 0.91}, []),
        (
            {"alignment_coverage": 0.889},
            ["alignment_coverage 0.9 became 0.889: more than 1 points"],
        ),
        ({"alignment_coverage": None}, ["alignment_coverage 0.9 became none: more than 1 points"]),
        (
            {"examples": 101},
            ["examples 100 became 101, though the normalised file is the same"],
        ),
        ({"examples": 101, "raw_sha256": "cd"}, []),
    ],
)
def test_changes_within_the_tolerances_are_no_breach(
    config: ReportConfig, change: dict[str, Any], expected: list[str]
) -> None:
    found = breaches({"a": _SPLIT | change}, {"a": _SPLIT}, config)
    assert found == [f"a: {breach}" for breach in expected]


def test_what_was_nothing_and_is_something_is_a_breach(config: ReportConfig) -> None:
    empty = _SPLIT | {"raw_sha256": None, "total_tokens": 0, "avg_seq_len": None}
    found = breaches({"a": _SPLIT}, {"a": empty}, config)
    assert [each.split()[1] for each in found] == ["total_tokens", "avg_seq_len"]
    assert breaches({"a": empty}, {"a": empty}, config) == []


def test_the_tolerances_are_those_of_the_config(tmp_path: Any) -> None:
    config = ReportConfig(tmp_path, total_tokens=0.5, avg_seq_len=0.0, pct_with_cot=30)
    change = {"total_tokens": 14_000, "avg_seq_len": 100.1, "pct_with_cot": 79.0}
    (found,) = breaches({"a": _SPLIT | change}, {"a": _SPLIT}, config)
    assert found == "a: avg_seq_len 100 became 100.1: more than 0.00%"


def test_a_split_that_is_gone_is_a_breach_and_a_new_one_is_not(config: ReportConfig) -> None:
    (found,) = breaches({"new": _SPLIT}, {"old": _SPLIT}, config)
    assert found == "old: is in the baseline, and no longer published"
    assert changes({"new": _SPLIT}, {"old": _SPLIT}) == {}


def test_changes_are_relative_or_in_points() -> None:
    new = _SPLIT | {"total_tokens": 11_000, "alignment_coverage": 0.95, "pct_with_cot": None}
    assert changes({"a": new}, {"a": _SPLIT}) == {
        "a": {
            "total_tokens": 0.1,
            "avg_seq_len": 0.0,
            "pct_with_cot": None,
            "alignment_coverage": 5.0,
        }
    }
