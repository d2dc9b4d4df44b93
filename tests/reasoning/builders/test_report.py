import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput, NothingToBuild
from gristmill.reasoning.builders import measured
from gristmill.reasoning.builders.report import ReportSummary, breaches, changes, coverage_report
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.laws.quality import report_laws
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.published_root import SEQ_LEN, change_counts, publish_split

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


_DAY = "2026-11-22"
_GSM8K: list[dict[str, Any]] = [
    {"question": f"How many are {k} and 1?", "answer": f"<<{k}+1={k + 1}>>{k + 1}.\n#### {k + 1}"}
    for k in range(20)
]
_TRIP: list[dict[str, Any]] = [
    {"question": "A or B?", "answer": "A", "program": "Conflict: 1 and 2\nEffect: <|endoftext|>"},
    {"question": "A or B?", "answer": "B", "program": None},
]


@pytest.fixture(scope="module")
def vocabulary(vocabulary_root: Path) -> Path:
    return find(GPT2, vocabulary_root)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary: Path) -> Path:
    root = tmp_path_factory.mktemp("root")
    publish_split(root, "gsm8k", "test", _GSM8K, vocabulary)
    publish_split(root, "trip", "train", _TRIP, vocabulary)
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "root"))


def _report(
    root: Path, vocabulary: Path, baseline: dict[str, Any] | None = None, **more: Any
) -> tuple[ReportSummary, dict[str, Any]]:
    out, run_id = root / f"report-{len(list(root.glob('report-*')))}", more.pop("run_id", "run")
    config = ReportConfig(vocabulary, **more)
    summary = coverage_report(root, out, config, date=_DAY, baseline=baseline, run_id=run_id)
    assert list(report_laws(out, _DAY)) == list(report_laws(out)) == []
    return summary, reports.read(out / f"{_DAY}.json")


def test_a_report_has_the_numbers_of_every_split(root: Path, vocabulary: Path) -> None:
    summary, report = _report(root, vocabulary)
    assert list(report["splits"]) == ["gsm8k__test", "trip__train"]
    split = report["splits"]["gsm8k__test"]
    index = (root / names.TOKENIZED / "gsm8k/test/index.jsonl").read_text().splitlines()
    tokens = sum(json.loads(line)["num_tokens"] for line in index)
    assert split["examples"] == split["eos_tokens"] == split["records"] == 20
    assert (
        split["total_tokens"]
        == summary.total_tokens - report["splits"]["trip__train"]["total_tokens"]
        == tokens
    )
    assert split["avg_seq_len"] == pytest.approx(tokens / 20)
    assert split["pct_with_cot"] == 0.0 and split["alignment_coverage"] == 1.0
    assert split["mean_confidence"] == pytest.approx(0.89) and split["low_confidence_share"] == 1.0
    assert (tokens + 20 + split["pad_tokens"]) == split["sequences"] * SEQ_LEN
    assert split["shards"] == len(list((root / names.TOKENIZED / "gsm8k/test").glob("*.pt")))
    assert split["raw_sha256"] and split["tokenizer_sha256"] == GPT2.sha256
    assert split["confidence"]["0.8"] == 20 and split["licence"] == "MIT"
    trip = report["splits"]["trip__train"]
    assert (trip["pct_with_cot"], trip["alignment_coverage"]) == (50.0, 0.5)
    assert (trip["mean_confidence"], trip["low_confidence_share"]) == (0.5, 0.5)
    assert report["totals"]["examples"] == summary.examples == 22
    assert report["run_id"] == "run" and report["date"] == _DAY
    assert summary.alignment_coverage == {"gsm8k__test": 1.0, "trip__train": 0.5}


def test_unknown_terms_and_control_texts_are_warned_of(root: Path, vocabulary: Path) -> None:
    _, report = _report(root, vocabulary)
    assert report["warnings"] == [
        "trip__train: the terms are unknown: nobody has said that training is allowed",
        "trip__train: 1 literal <|endoftext|> in texts stay text",
    ]
    assert report["totals"]["control_texts"] == 1


def test_a_corpus_that_may_not_be_trained_on_is_warned_of(tmp_path: Path, vocabulary: Path) -> None:
    raw = [{"question": "q", "answer": "a", "rationale": "b. c.", "context": "d"}]
    publish_split(tmp_path, "reveal", "test", raw, vocabulary)
    _, report = _report(tmp_path, vocabulary)
    assert report["warnings"] == [
        "reveal__test: the terms (CC-BY-ND-4.0) forbid training; a setting allows the shards"
    ]


def test_without_a_baseline_the_gate_passes(root: Path, vocabulary: Path) -> None:
    summary, report = _report(root, vocabulary)
    assert report["gate"] == {"passed": True, "baseline": None, "breaches": []}
    assert report["drift"] == {"baseline": None, "changes": {}, "reference": {}}
    assert summary.breaches == 0


def test_drift_from_the_baseline_closes_the_gate(root: Path, vocabulary: Path) -> None:
    _, first = _report(root, vocabulary)
    _, same = _report(root, vocabulary, first)
    assert same["gate"] == {"passed": True, "baseline": _DAY, "breaches": []}
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    summary, drifted = _report(root, vocabulary, first)
    assert not drifted["gate"]["passed"] and summary.breaches == 2
    assert drifted["gate"]["breaches"][0].startswith("gsm8k__test: total_tokens")
    assert drifted["drift"]["changes"]["gsm8k__test"]["total_tokens"] > 1


def test_drift_from_an_older_day_is_accepted_by_naming_the_newer_report(
    root: Path, vocabulary: Path
) -> None:
    first = _report(root, vocabulary)[1] | {"date": "2026-11-21"}
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    _, drifted = _report(root, vocabulary, first)
    assert drifted["gate"]["baseline"] == "2026-11-21" and not drifted["gate"]["passed"]
    _, accepted = _report(root, vocabulary, drifted)
    assert accepted["gate"]["passed"] and accepted["gate"]["baseline"] == _DAY


def test_a_second_build_of_the_day_accepts_no_drift(root: Path, vocabulary: Path) -> None:
    _, first = _report(root, vocabulary)
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    _, drifted = _report(root, vocabulary, first)
    _, again = _report(root, vocabulary, drifted)
    _, later = _report(root, vocabulary, again)
    assert drifted["gate"] == again["gate"] == later["gate"]
    assert not later["gate"]["passed"]


def test_invariance_is_measured_by_split(root: Path, vocabulary: Path) -> None:
    summary, report = _report(root, vocabulary, invariance_sample=7, seed=3)
    found = report["invariance"]
    assert (found["sample"], found["seed"], found["breaches"]) == (7, 3, [])
    assert found["splits"]["gsm8k__test"]["examples"] == 7
    assert found["splits"]["gsm8k__test"]["changed"]["crlf"] == 0.0
    assert "no_annotations" in found["flagged"]["gsm8k__test"]
    assert summary.invariance_breaches == 0
    assert _report(root, vocabulary, invariance_sample=0)[1]["invariance"]["splits"] == {}


def test_a_change_that_normalising_must_absorb_closes_the_gate(
    root: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(measured.GATED, "crlf", lambda text, _: f"{text} and more {text}")
    summary, report = _report(root, vocabulary, invariance_sample=7)
    assert summary.invariance_breaches == len(report["invariance"]["breaches"]) > 0
    assert "crlf changes" in report["invariance"]["breaches"][0]
    assert report["gate"]["breaches"] == report["invariance"]["breaches"]
    assert not report["gate"]["passed"]


def test_a_run_id_is_no_content(root: Path, vocabulary: Path) -> None:
    (one,) = _report(root, vocabulary, run_id="one")[0].files.values()
    (other,) = _report(root, vocabulary, run_id="other")[0].files.values()
    assert one == other and one.content_sha256
    change_counts(root, names.ALIGNMENT, "gsm8k__test", verified=1)
    (changed,) = _report(root, vocabulary)[0].files.values()
    assert changed != one


def test_a_split_that_is_only_normalised_has_no_shares(root: Path, vocabulary: Path) -> None:
    for folder in (names.TOKENIZED, names.ALIGNMENT):
        (root / folder / "provenance/trip__train.json").unlink()
    _, report = _report(root, vocabulary)
    trip = report["splits"]["trip__train"]
    assert trip["records"] == 2 and trip["examples"] == 0 and trip["tokenizer_sha256"] is None
    assert all(trip[key] is None for key in reports.SHARES)
    assert "trip__train" not in report["invariance"]["splits"] and report["warnings"] == []


def test_shards_without_an_alignment_have_no_coverage(root: Path, vocabulary: Path) -> None:
    (root / names.ALIGNMENT / "provenance/gsm8k__test.json").unlink()
    _, report = _report(root, vocabulary)
    split = report["splits"]["gsm8k__test"]
    assert split["alignment_coverage"] == 0.0 and split["mean_confidence"] is None
    assert report["warnings"][0] == "gsm8k__test: no example has steps"


def test_nothing_published_is_nothing_to_build(tmp_path: Path, vocabulary: Path) -> None:
    with pytest.raises(NothingToBuild):
        _report(tmp_path, vocabulary)


def test_a_baseline_that_is_no_report_is_refused(root: Path, vocabulary: Path) -> None:
    with pytest.raises(BadInput, match="name the day of another report"):
        _report(root, vocabulary, {"splits": {}})
