from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gristmill.reasoning.format import reports
from gristmill.reasoning.laws.report import report_laws
from tests.reasoning.format.test_reports import REPORT

_SPLIT: dict[str, Any] = {
    **dict.fromkeys(reports.COUNTS, 4),
    **dict.fromkeys(reports.SHARES, 0.5),
    **dict.fromkeys(reports.HASHES),
    "examples": 8,
    "pct_with_cot": 50.0,
}


def _report() -> dict[str, Any]:
    splits = {"gsm8k__test": dict(_SPLIT), "gsm8k__train": dict(_SPLIT)}
    totals = {key: 2 * _SPLIT[key] for key in reports.COUNTS}
    return deepcopy(REPORT) | {"splits": splits, "totals": totals}


def _with_dataset(
    change: Callable[[dict[str, Any]], object],
) -> Callable[[dict[str, Any]], object]:
    """Adds a dataset of two splits behind the totals, and changes it."""

    def add(report: dict[str, Any]) -> None:
        keys = (*reports.DATASET_COUNTS, *reports.ALIGNED_COUNTS, *reports.MEASURED)
        split = {key: _SPLIT[key] for key in keys}
        unknown = dict.fromkeys((*reports.UNSPLIT, "pct_with_cot"))
        splits = {"gsm8k__test": dict(split), "gsm8k__train": split | unknown}
        counts = (*reports.DATASET_COUNTS, *reports.ALIGNED_COUNTS)
        totals = {key: 2 * _SPLIT[key] for key in counts}
        dataset = {"tokenizer": "a", "tokenizer_sha256": "b", "splits": splits, "totals": totals}
        change(dataset)
        rest = {key: report.pop(key) for key in reports.KEYS[reports.KEYS.index("totals") + 1 :]}
        report.update({"datasets": {"mine": dataset}} | rest)

    return add


def _broken(folder: Path, change: Callable[[dict[str, Any]], object]) -> set[str]:
    report = _report()
    change(report)
    reports.path(folder, "2026-11-22").write_bytes(reports.to_bytes(report))
    found = {violation.law for violation in report_laws(folder)}
    assert found == {violation.law for violation in report_laws(folder, "2026-11-22")}
    return found


def _split(key: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda report: report["splits"]["gsm8k__test"].__setitem__(key, value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda report: None, set()),
        (lambda report: report.update(date="2026-11-21"), {"date"}),
        (lambda report: report["splits"].update(gsm8k_dev=_SPLIT), {"splits", "totals"}),
        (lambda report: report["totals"].update(shards=9), {"totals"}),
        (lambda report: report["totals"].pop("shards"), {"totals"}),
        (_split("with_cot", 5), {"totals", "ratios"}),
        (_split("pct_with_cot", 50.1), {"ratios"}),
        (_split("avg_seq_len", None), {"ratios"}),
        (_split("alignment_coverage", 0.6), {"ratios"}),
        (_split("mean_confidence", 1.1), {"ratios"}),
        (_split("low_confidence_share", -0.1), {"ratios"}),
        (_split("mean_confidence", None), set()),
        (lambda report: report["gate"].update(baseline="2026-11-01"), {"gate"}),
        (lambda report: report["gate"].update(passed=False, breaches=["a"]), set()),
        (lambda report: report["gate"].update(passed=False), {"readable"}),
    ],
)
def test_a_broken_report_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], expected: set[str]
) -> None:
    assert _broken(tmp_path, change) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda dataset: None, set()),
        (lambda dataset: dataset["totals"].update(with_cot=99), set()),  # one split has null
        (lambda dataset: dataset["totals"].update(shards=9), {"totals"}),
        (lambda dataset: dataset["totals"].pop("spans"), {"totals"}),
        (lambda dataset: dataset["splits"]["gsm8k__test"].update(pad_tokens=5), {"totals"}),
        (lambda dataset: dataset["splits"]["gsm8k__test"].update(avg_seq_len=0.6), {"ratios"}),
        (lambda dataset: dataset["splits"]["gsm8k__test"].update(pct_with_cot=None), {"ratios"}),
        (
            lambda dataset: dataset["splits"].update(more=dataset["splits"].pop("gsm8k__test")),
            {"splits"},
        ),
    ],
)
def test_a_broken_dataset_of_a_report_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], expected: set[str]
) -> None:
    assert _broken(tmp_path, _with_dataset(change)) == expected


def test_a_split_without_examples_has_no_shares(tmp_path: Path) -> None:
    def change(report: dict[str, Any]) -> None:
        report["splits"]["gsm8k__test"].update(
            dict.fromkeys(reports.SHARES), examples=0, total_tokens=0
        )
        for key in ("examples", "total_tokens"):
            report["totals"][key] -= _SPLIT[key]

    assert _broken(tmp_path, change) == set()


def test_a_missing_report_is_found(tmp_path: Path) -> None:
    assert [violation.law for violation in report_laws(tmp_path, "2026-11-22")] == ["readable"]
    assert list(report_laws(tmp_path)) == []
