"""The daily report: drift, counts, invariance, the gate; token datasets by split, and warnings."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import BadInput, NothingToBuild
from gristmill.data_root import DataRoot
from gristmill.provenance import Record, record_path
from gristmill.reasoning.builders import report
from gristmill.reasoning.builders.report import (
    GATED,
    REPORTED,
    Invariance,
    ReportSummary,
    breaches,
    changes,
    common,
    coverage_report,
    measure,
)
from gristmill.reasoning.builds import reports_now
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import align, index, names, reports
from gristmill.reasoning.laws.quality import report_laws
from gristmill.vocabularies.encode import Encoder, encoder
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning import published_root
from tests.reasoning.exported_root import build_dataset, publish_dataset
from tests.reasoning.normalized_files import real_records, write
from tests.reasoning.published_root import SEQ_LEN, change_counts, publish_split
from tests.report_day import working_on

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
        ({"examples": 101}, ["examples 100 became 101, though the normalised file is the same"]),
        ({"examples": 101, "raw_sha256": "cd"}, []),
    ],
)
def test_changes_within_the_tolerances_are_no_breach(config, change, expected):
    found = breaches({"a": _SPLIT | change}, {"a": _SPLIT}, config)
    assert found == [f"a: {breach}" for breach in expected]


def test_what_is_new_is_a_breach_and_a_new_split_is_not(config):
    empty = _SPLIT | {"raw_sha256": None, "total_tokens": 0, "avg_seq_len": None}
    found = breaches({"a": _SPLIT}, {"a": empty}, config)
    assert [each.split()[1] for each in found] == ["total_tokens", "avg_seq_len"]
    assert breaches({"a": empty}, {"a": empty}, config) == []
    (found,) = breaches({"new": _SPLIT}, {"old": _SPLIT}, config)
    assert found == "old: is in the baseline, and no longer published"
    assert changes({"new": _SPLIT}, {"old": _SPLIT}) == {}
    unknown, known = _SPLIT | {"pct_with_cot": None}, _SPLIT
    one, other = ({"a__b": each, "mine/a__b": each} for each in (unknown, known))
    for now, before in ((one, other), (other, one)):
        assert [each.partition(" ")[0] for each in breaches(now, before, config)] == ["a__b:"]


def test_the_tolerances_are_those_of_the_config_and_changes_are_relative_or_in_points(tmp_path):
    config = ReportConfig(tmp_path, total_tokens=0.5, avg_seq_len=0.0, pct_with_cot=30)
    change = {"total_tokens": 14_000, "avg_seq_len": 100.1, "pct_with_cot": 79.0}
    (found,) = breaches({"a": _SPLIT | change}, {"a": _SPLIT}, config)
    assert found == "a: avg_seq_len 100 became 100.1: more than 0.00%"
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
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary: Path) -> Path:
    root = tmp_path_factory.mktemp("root")
    publish_split(root, "gsm8k", "test", _GSM8K, vocabulary)
    publish_split(root, "trip", "train", _TRIP, vocabulary)
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "root"))


def _report(
    root: Path, vocabulary: Path, baseline: dict[str, Any] | None = None, **more: Any
) -> tuple[ReportSummary, dict[str, Any]]:
    out, run_id = root / f"report-{len(list(root.glob('report-*')))}", more.pop("run_id", "run")
    config = ReportConfig(vocabulary, **more)
    summary = coverage_report(root, out, config, date=_DAY, baseline=baseline, run_id=run_id)
    assert list(report_laws(out, _DAY)) == list(report_laws(out)) == []
    return summary, reports.read(out / f"{_DAY}.json")


def test_a_report_has_the_numbers_of_every_split(root, vocabulary):
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


def test_unknown_terms_and_control_texts_are_warned_of(root, vocabulary):
    _, report = _report(root, vocabulary)
    assert report["warnings"] == [
        "trip__train: the terms are unknown: nobody has said that training is allowed",
        "trip__train: 1 literal <|endoftext|> in texts stay text",
    ]
    assert report["totals"]["control_texts"] == 1


def test_a_corpus_that_may_not_be_trained_on_is_warned_of(tmp_path, vocabulary):
    raw = [{"question": "q", "answer": "a", "rationale": "b. c.", "context": "d"}]
    publish_split(tmp_path, "reveal", "test", raw, vocabulary)
    _, report = _report(tmp_path, vocabulary)
    assert report["warnings"] == [
        "reveal__test: the terms (CC-BY-ND-4.0) forbid training; a setting allows the shards"
    ]


def test_without_a_baseline_the_gate_passes_and_one_that_is_no_report_is_refused(root, vocabulary):
    summary, report = _report(root, vocabulary)
    assert report["gate"] == {"passed": True, "baseline": None, "breaches": []}
    assert report["drift"] == {"baseline": None, "changes": {}, "reference": {}}
    assert summary.breaches == 0
    with pytest.raises(BadInput, match="name the day of another report"):
        _report(root, vocabulary, {"splits": {}})


def test_drift_from_the_baseline_closes_the_gate(root, vocabulary):
    _, first = _report(root, vocabulary)
    _, same = _report(root, vocabulary, first)
    assert same["gate"] == {"passed": True, "baseline": _DAY, "breaches": []}
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    summary, drifted = _report(root, vocabulary, first)
    assert not drifted["gate"]["passed"] and summary.breaches == 2
    assert drifted["gate"]["breaches"][0].startswith("gsm8k__test: total_tokens")
    assert drifted["drift"]["changes"]["gsm8k__test"]["total_tokens"] > 1


def test_drift_from_an_older_day_is_accepted_by_naming_the_newer_report(root, vocabulary):
    first = _report(root, vocabulary)[1] | {"date": "2026-11-21"}
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    _, drifted = _report(root, vocabulary, first)
    assert drifted["gate"]["baseline"] == "2026-11-21" and not drifted["gate"]["passed"]
    _, accepted = _report(root, vocabulary, drifted)
    assert accepted["gate"]["passed"] and accepted["gate"]["baseline"] == _DAY


def test_a_second_build_of_the_day_accepts_no_drift(root, vocabulary):
    _, first = _report(root, vocabulary)
    change_counts(root, names.TOKENIZED, "gsm8k__test", text_tokens=10_000)
    _, drifted = _report(root, vocabulary, first)
    _, again = _report(root, vocabulary, drifted)
    _, later = _report(root, vocabulary, again)
    assert drifted["gate"] == again["gate"] == later["gate"]
    assert not later["gate"]["passed"]


def test_invariance_is_measured_by_split(root, vocabulary):
    summary, report = _report(root, vocabulary, invariance_sample=7, seed=3)
    found = report["invariance"]
    assert (found["sample"], found["seed"], found["breaches"]) == (7, 3, [])
    assert found["splits"]["gsm8k__test"]["examples"] == 7
    assert found["splits"]["gsm8k__test"]["changed"]["crlf"] == 0.0
    assert "no_annotations" in found["flagged"]["gsm8k__test"]
    assert summary.invariance_breaches == 0
    assert _report(root, vocabulary, invariance_sample=0)[1]["invariance"]["splits"] == {}


def test_a_change_that_normalising_must_absorb_closes_the_gate(root, vocabulary, monkeypatch):
    monkeypatch.setitem(GATED, "crlf", lambda text, _: f"{text} and more {text}")
    summary, report = _report(root, vocabulary, invariance_sample=7)
    assert summary.invariance_breaches == len(report["invariance"]["breaches"]) > 0
    assert "crlf changes" in report["invariance"]["breaches"][0]
    assert report["gate"]["breaches"] == report["invariance"]["breaches"]
    assert not report["gate"]["passed"]


def test_a_run_id_is_no_content(root, vocabulary):
    (one,) = _report(root, vocabulary, run_id="one")[0].files.values()
    (other,) = _report(root, vocabulary, run_id="other")[0].files.values()
    assert one == other and one.content_sha256
    change_counts(root, names.ALIGNMENT, "gsm8k__test", verified=1)
    (changed,) = _report(root, vocabulary)[0].files.values()
    assert changed != one


def test_a_split_that_is_only_normalised_has_no_shares(root, vocabulary):
    for folder in (names.TOKENIZED, names.ALIGNMENT):
        (root / folder / "provenance/trip__train.json").unlink()
    _, report = _report(root, vocabulary)
    trip = report["splits"]["trip__train"]
    assert trip["records"] == 2 and trip["examples"] == 0 and trip["tokenizer_sha256"] is None
    assert all(trip[key] is None for key in reports.SHARES)
    assert "trip__train" not in report["invariance"]["splits"] and report["warnings"] == []


def test_shards_without_an_alignment_have_no_coverage(root, vocabulary):
    (root / names.ALIGNMENT / "provenance/gsm8k__test.json").unlink()
    _, report = _report(root, vocabulary)
    split = report["splits"]["gsm8k__test"]
    assert split["alignment_coverage"] == 0.0 and split["mean_confidence"] is None
    assert report["warnings"][0] == "gsm8k__test: no example has steps"


def test_nothing_published_is_nothing_to_build(tmp_path, vocabulary):
    with pytest.raises(NothingToBuild):
        _report(tmp_path, vocabulary)


@pytest.fixture(scope="module")
def encode(vocabulary_root: Path) -> Encoder:
    return encoder(GPT2, find(GPT2, vocabulary_root))


def _slow(one: Sequence[int], other: Sequence[int]) -> int:
    row = [0] * (len(other) + 1)
    for value in one:
        before = row
        row = [0]
        for place, each in enumerate(other):
            row.append(before[place] + 1 if each == value else max(row[-1], before[place + 1]))
    return row[-1]


_IDS = st.lists(st.integers(0, 4), max_size=80)


@given(_IDS, _IDS)
def test_the_common_ids_are_a_longest_common_subsequence(one, other):
    assert common(one, other) == common(other, one) == _slow(one, other)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("no_final_period", "A. B. \n", "A. B \n"),
        ("no_final_period", "A. B", "A. B"),
        ("single_spaces", "a  b   c", "a b c"),
        ("curly_quotes", "don't", "don\u2019t"),
        ("double_space_after_stop", "a. b! c?  d", "a.  b!  c?  d"),
        ("space_at_line_ends", "a\nb", "a \nb"),
        ("no_break_space", "a b c", "a\u00a0b c"),
        ("no_annotations", "1+1=<<1+1=2>>2", "1+1=2"),
        ("one_doubled_space", "ab", "ab"),
        ("one_doubled_space", "a b", "a  b"),
        ("crlf", "a\nb", "a\r\nb"),
        ("edge_whitespace", "", ""),
        ("byte_order_mark", "", ""),
        ("trailing_newline", "", ""),
    ],
)
def test_what_a_perturbation_does(name, text, expected):
    assert {**GATED, **REPORTED}[name](text, Random(0)) == expected


def _measured(
    several: Path, corpus: str, records: list[dict[str, Any]], encode: Encoder, sample: int = 50
) -> Invariance:
    jsonl = write(several / corpus / "test.jsonl", records)
    return measure(jsonl, corpus, "test", len(records), sample, 0, encode)


def test_what_normalising_absorbs_changes_nothing_and_the_sample_is_drawn_by_seed(tmp_path, encode):
    found = _measured(tmp_path, "gsm8k", real_records("gsm8k", "test"), encode, 300)
    assert found.examples == 300 and found.left_out == 0
    assert {name: found.changed[name] for name in GATED} == dict.fromkeys(GATED, 0.0)
    assert found.breaches() == {}
    assert found.changed["no_annotations"] == pytest.approx(0.168, abs=0.02)
    assert found.changed["no_final_period"] < 0.001
    assert {"no_annotations", "no_break_space"} <= set(found.flagged()) <= set(REPORTED)
    records = [{"question": f"a b {k} c", "answer": "d'e." * k, "cot": None} for k in range(40)]
    jsonl = write(tmp_path / "gsm8k/test.jsonl", records)
    one, same, other = (measure(jsonl, "gsm8k", "test", 40, 5, seed, encode) for seed in (0, 0, 1))
    assert one == same != other
    assert one.examples == 5


@pytest.mark.parametrize("corpus", ["wiqa", "reasoning_traces"])
def test_lists_and_chains_of_thought_are_perturbed_too(tmp_path, encode, corpus):
    found = _measured(tmp_path, corpus, real_records(corpus, "train"), encode)
    assert found.breaches() == {} and found.changed["no_break_space"] > 0


def test_a_pipeline_that_absorbs_nothing_is_a_breach(tmp_path, encode, monkeypatch):
    def text_of(record: dict[str, Any]) -> str:
        return f"{record['question']}\n\nAnswer:\n{record['answer']}"

    monkeypatch.setattr(report, "text_of", text_of)
    records = [{"question": "a b\nc", "answer": "d", "cot": None}]
    found = _measured(tmp_path, "gsm8k", records, encode)
    assert set(found.breaches()) == {"edge_whitespace", "trailing_newline"}


def test_long_and_empty_records_are_left_out(tmp_path, encode, monkeypatch):
    monkeypatch.setattr(report, "LONGEST", 100)
    records: list[dict[str, Any]] = [
        {"question": "a" * 101, "answer": "", "cot": None},
        {"question": "", "answer": "", "cot": None},
        {"question": "a", "answer": "", "cot": None},
    ]
    found = _measured(tmp_path, "gsm8k", records, encode)
    assert (found.examples, found.left_out) == (1, 1)


def test_blank_lines_and_splits_without_records_change_nothing(tmp_path, encode):
    records = [{"question": f"{k}?", "answer": "b", "cot": None} for k in range(5)]
    jsonl = write(tmp_path / "gsm8k/test.jsonl", records)
    whole = measure(jsonl, "gsm8k", "test", 5, 3, 0, encode)
    jsonl.write_text(jsonl.read_text().replace("\n", "\n \n", 3))
    assert measure(jsonl, "gsm8k", "test", 5, 3, 0, encode) == whole
    assert whole.examples == 3
    found = _measured(tmp_path, "gsm8k", [], encode)
    assert found.examples == 0 and set(found.changed.values()) == {0.0}


_TEST, _TRAIN = "gsm8k__test", "gsm8k__train"
WITH_COT = {_TRAIN: 6, _TEST: 3}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset mine of two splits with alignments, and one of one split; no GPT-2 at all."""
    several = tmp_path_factory.mktemp("several")
    build_dataset(several, outputs=["bin", "alignment"], tokens_per_shard=320)
    publish_dataset(several, "single", corpora=[_TRAIN])
    # The answers of the drop are no CoT.
    for key, count in WITH_COT.items():
        change_record(several, names.NORMALIZED, key, counts={"with_cot": count})
    for name, count in (("mine", sum(WITH_COT.values())), ("single", WITH_COT[_TRAIN])):
        change_record(several, f"{names.TOKENS}/{name}", None, counts={"with_cot": count})
    return several


@pytest.fixture
def several(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "several"))


def report_of(several: Path, baseline: dict[str, Any] | None = None) -> dict[str, Any]:
    out = several / f"report-{len(list(several.glob('report-*')))}"
    config = ReportConfig(several / "none")
    summary = coverage_report(several, out, config, date=_DAY, baseline=baseline)
    assert list(report_laws(out, _DAY)) == []
    report = reports.read(out / f"{_DAY}.json")
    tokens = {name: each["totals"]["total_tokens"] for name, each in report["datasets"].items()}
    assert summary.dataset_tokens == tokens
    return report


def change_record(several: Path, folder: str, partition: str | None, **values: Any) -> None:
    path = record_path(several / folder, partition, shared=partition is not None)
    record = Record.model_validate_json(path.read_bytes())
    values["counts"] = record.counts | values.get("counts", {})
    path.write_bytes(record.model_copy(update=values).sealed().to_bytes())


def change_manifest(several: Path, split: str, **values: int) -> None:
    path = several / names.TOKENS / "mine" / names.MANIFEST
    entries = json.loads(path.read_bytes())
    next(each for each in entries if each["split"] == split).update(values)
    path.write_text(json.dumps(entries))


def test_a_dataset_has_the_numbers_of_its_files_by_split(several):
    report = report_of(several)
    assert list(report["datasets"]) == ["mine", "single"]
    folder, mine = several / names.TOKENS / "mine", report["datasets"]["mine"]
    assert list(mine["splits"]) == [_TRAIN, _TEST] and mine["tokenizer"] == "tiny"
    assert (
        mine["tokenizer_sha256"]
        == json.loads((folder / "provenance.json").read_bytes())["tokenizer"]["sha256"]
    )
    for key, split in mine["splits"].items():
        own = folder / names.split_index("gsm8k", key.partition("__")[2])
        rows = list(index.objects(own))
        tokens = sum(row["num_tokens"] for row in rows)
        aligned = list(align.rows(folder / names.alignment("gsm8k", own.parent.name)))
        assert split["examples"] == split["eos_tokens"] == len(rows) == 12
        assert split["total_tokens"] == tokens and split["avg_seq_len"] == round(tokens / 12, 9)
        assert split["shards"] == len(list(own.parent.glob("*.bin"))) == 2
        ids = sum(path.stat().st_size // 2 for path in own.parent.glob("*.bin"))
        assert split["sequences"] * 64 == ids == tokens + 12 + split["pad_tokens"]
        assert split["spans"] == sum(len(row.step_labels) for row in aligned) > 0
        assert split["aligned"] == sum(bool(row.step_labels) for row in aligned) > 0
        assert split["alignment_coverage"] == round(split["aligned"] / 12, 9)
        assert split["with_cot"] == WITH_COT[key]
        assert split["pct_with_cot"] == 100 * WITH_COT[key] / 12
        assert split["skipped_empty"] == split["control_texts"] == 0
        assert split["raw_sha256"] == report["splits"][key]["raw_sha256"] is not None
        assert report["splits"][key]["shards"] == 0
    assert mine["totals"]["examples"] == 24 and mine["totals"]["with_cot"] == 9
    single = report["datasets"]["single"]["splits"][_TRAIN]
    assert "aligned" not in single and single["alignment_coverage"] is None
    assert report["warnings"] == [] and report["invariance"]["splits"] == {}


def test_a_report_is_published_where_no_shards_of_gpt2_are(several):
    with working_on("2026-11-28"):
        assert reports_now(DataRoot(several)) == ["2026-11-28"]
        record = published_root.built(several, "reasoning/qc_report", "2026-11-28")
    datasets = [each.partition for each in record.inputs if each.asset == "reasoning/tokens"]
    assert datasets == ["mine", "single"] and record.tokenizer is None
    assert record.counts["dataset_tokens/mine"] > 0
    shutil.rmtree(several / names.NORMALIZED)
    report = report_of(several)
    assert report["splits"] == {} and report["datasets"]["mine"]["totals"]["examples"] == 24
    shutil.rmtree(several / names.TOKENS)
    with pytest.raises(NothingToBuild):
        report_of(several)


def test_counts_over_all_splits_are_null_where_a_normalised_split_is_newer(several):
    first = report_of(several)
    change_record(several, names.NORMALIZED, _TRAIN, data_version="0" * 64)
    for name in ("mine", "single"):
        counts = {"skipped_empty": 2, "control_texts": 3}
        change_record(several, f"{names.TOKENS}/{name}", None, counts=counts)
    report = report_of(several, first)
    mine, single = (report["datasets"][name]["splits"][_TRAIN] for name in ("mine", "single"))
    unknown = ("with_cot", "skipped_empty", "control_texts", "pct_with_cot")
    assert [mine[key] for key in unknown] == [None] * 4
    assert [single[key] for key in unknown] == [6, 2, 3, 50.0]
    assert report["gate"]["breaches"] == []
    assert report["warnings"] == [
        f"{name}: 3 literal end tokens of tiny in texts stay text" for name in ("mine", "single")
    ]
    assert report_of(several, report)["gate"]["passed"]


def test_drift_of_a_dataset_closes_the_gate(several):
    first = report_of(several)
    assert report_of(several, first)["gate"] == {"passed": True, "baseline": _DAY, "breaches": []}
    change_manifest(several, "test", text_tokens=99_000)
    change_record(several, f"{names.TOKENS}/mine", None, counts={"text_tokens": 99_000})
    out = several / "drifted"
    coverage_report(several, out, ReportConfig(several / "none"), date=_DAY, baseline=first)
    report = reports.read(out / f"{_DAY}.json")
    one, other = report["gate"]["breaches"]
    assert one.startswith("mine/gsm8k__test: total_tokens ") and "avg_seq_len" in other
    assert report["drift"]["changes"]["mine/gsm8k__test"]["total_tokens"] > 10
    assert reports.reference(report) == reports.reference(first)


def test_a_dataset_that_is_gone_is_a_breach_and_a_new_one_is_not(several):
    first = report_of(several)
    without = {key: value for key, value in first.items() if key != "datasets"}
    assert report_of(several, without)["gate"]["passed"]
    assert set(reports.reference(without)) == {_TRAIN, _TEST}
    shutil.rmtree(several / names.TOKENS / "single")
    assert report_of(several, first)["gate"]["breaches"] == [
        "single/gsm8k__train: is in the baseline, and no longer published"
    ]


def test_terms_and_missing_steps_of_a_dataset_are_warned_of(several):
    path = several / names.NORMALIZED / "provenance" / f"{_TEST}.json"
    path.unlink()  # the name alone is left
    for name in ("test", "train"):
        rows = several / names.TOKENS / "mine" / names.alignment("gsm8k", name)
        values = [json.loads(line) for line in rows.read_text().splitlines()]
        empty = {"text_offset_ranges": [], "token_offset_ranges": [], "step_labels": []}
        rows.write_text("".join(json.dumps(each | empty) + "\n" for each in values))
    folder = several / names.TOKENS / "mine"
    (folder / names.MANIFEST).write_text(
        (folder / names.MANIFEST).read_text().replace('"gsm8k"', '"my_maths"')
    )
    record = json.loads((folder / "provenance.json").read_bytes())
    for each in record["inputs"]:
        each["partition"] = each["partition"].replace("gsm8k", "my_maths")
    (folder / "provenance.json").write_bytes(Record.model_validate(record).sealed().to_bytes())
    (folder / "gsm8k").rename(folder / "my_maths")
    assert report_of(several)["warnings"] == [
        f"mine/my_maths__{split}: {warning}"
        for split in ("train", "test")
        for warning in (
            "the terms are unknown: nobody has said that training is allowed",
            "no example has steps",
        )
    ]


def test_a_manifest_that_cannot_be_read_is_named(several):
    (several / names.TOKENS / "mine" / names.MANIFEST).write_text("[")
    with pytest.raises(BadInput, match=r"mine/manifest\.json: is no JSON"):
        report_of(several)
