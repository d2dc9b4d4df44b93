"""Datasets of any tokenizer: ids, forms, index and manifest, by ranks, and what is refused.

Token datasets in the daily report: counts by split, drift, warnings, and roots without GPT-2.
"""

from __future__ import annotations

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
from gristmill.reasoning.builders import measured
from gristmill.reasoning.builders.measured import (
    GATED,
    REPORTED,
    Invariance,
    common,
    measure,
    measured_alike,
)
from gristmill.reasoning.builders.report import coverage_report
from gristmill.reasoning.builds import reports_now, today
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import align, index, names, reports
from gristmill.reasoning.laws.quality import report_laws
from gristmill.vocabularies.encode import Encoder, encoder
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.exported_root import build_dataset, publish_dataset
from tests.reasoning.indexed_splits import real_records
from tests.reasoning.normalized_files import write
from tests.reasoning.published_root import built


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
def test_the_common_ids_are_a_longest_common_subsequence(one: list[int], other: list[int]) -> None:
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
def test_what_a_perturbation_does(name: str, text: str, expected: str) -> None:
    assert {**GATED, **REPORTED}[name](text, Random(0)) == expected


def _measured(
    root: Path,
    corpus: str,
    records: list[dict[str, Any]],
    encode: Encoder,
    sample: int = 50,
) -> Invariance:
    jsonl = write(root / corpus / "test.jsonl", records)
    return measure(jsonl, corpus, "test", len(records), sample, 0, encode)


def test_what_normalising_absorbs_changes_nothing_and_the_rest_is_flagged(
    tmp_path: Path, encode: Encoder
) -> None:
    found = _measured(tmp_path, "gsm8k", real_records("gsm8k", "test"), encode, 300)
    assert found.examples == 300 and found.left_out == 0
    assert {name: found.changed[name] for name in GATED} == dict.fromkeys(GATED, 0.0)
    assert found.breaches() == {}
    assert found.changed["no_annotations"] == pytest.approx(0.168, abs=0.02)
    assert found.changed["no_final_period"] < 0.001
    assert {"no_annotations", "no_break_space"} <= set(found.flagged()) <= set(REPORTED)


@pytest.mark.parametrize("corpus", ["wiqa", "reasoning_traces"])
def test_lists_and_chains_of_thought_are_perturbed_too(
    tmp_path: Path, encode: Encoder, corpus: str
) -> None:
    found = _measured(tmp_path, corpus, real_records(corpus, "train"), encode)
    assert found.breaches() == {} and found.changed["no_break_space"] > 0


def test_a_pipeline_that_absorbs_nothing_is_a_breach(
    tmp_path: Path, encode: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def text_of(record: dict[str, Any]) -> str:
        return f"{record['question']}\n\nAnswer:\n{record['answer']}"

    monkeypatch.setattr(measured, "text_of", text_of)
    records = [{"question": "a b\nc", "answer": "d", "cot": None}]
    found = _measured(tmp_path, "gsm8k", records, encode)
    assert set(found.breaches()) == {"edge_whitespace", "trailing_newline"}


def test_the_sample_is_drawn_by_seed(tmp_path: Path, encode: Encoder) -> None:
    records = [{"question": f"a b {k} c", "answer": "d'e." * k, "cot": None} for k in range(40)]
    jsonl = write(tmp_path / "gsm8k/test.jsonl", records)
    one, same, other = (measure(jsonl, "gsm8k", "test", 40, 5, seed, encode) for seed in (0, 0, 1))
    assert one == same != other
    assert one.examples == 5


def test_long_and_empty_records_are_left_out(
    tmp_path: Path, encode: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "LONGEST", 100)
    records: list[dict[str, Any]] = [
        {"question": "a" * 101, "answer": "", "cot": None},
        {"question": "", "answer": "", "cot": None},
        {"question": "a", "answer": "", "cot": None},
    ]
    found = _measured(tmp_path, "gsm8k", records, encode)
    assert (found.examples, found.left_out) == (1, 1)


def test_blank_lines_are_no_records(tmp_path: Path, encode: Encoder) -> None:
    records = [{"question": f"{k}?", "answer": "b", "cot": None} for k in range(5)]
    jsonl = write(tmp_path / "gsm8k/test.jsonl", records)
    whole = measure(jsonl, "gsm8k", "test", 5, 3, 0, encode)
    jsonl.write_text(jsonl.read_text().replace("\n", "\n \n", 3))
    assert measure(jsonl, "gsm8k", "test", 5, 3, 0, encode) == whole
    assert whole.examples == 3


def test_a_split_without_records_changes_nothing(tmp_path: Path, encode: Encoder) -> None:
    found = _measured(tmp_path, "gsm8k", [], encode)
    assert found.examples == 0 and set(found.changed.values()) == {0.0}


_DAY = "2026-11-22"
_TEST, _TRAIN = "gsm8k__test", "gsm8k__train"
WITH_COT = {_TRAIN: 6, _TEST: 3}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset mine of two splits with alignments, and one of one split; no GPT-2 at all."""
    root = tmp_path_factory.mktemp("root")
    build_dataset(root, outputs=["bin", "alignment"], tokens_per_shard=320)
    publish_dataset(root, "single", corpora=[_TRAIN])
    # The answers of the drop are no CoT.
    for key, count in WITH_COT.items():
        change_record(root, names.NORMALIZED, key, counts={"with_cot": count})
    for name, count in (("mine", sum(WITH_COT.values())), ("single", WITH_COT[_TRAIN])):
        change_record(root, f"{names.TOKENS}/{name}", None, counts={"with_cot": count})
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "root"))


def report_of(root: Path, baseline: dict[str, Any] | None = None) -> dict[str, Any]:
    out = root / f"report-{len(list(root.glob('report-*')))}"
    config = ReportConfig(root / "none")
    summary = coverage_report(root, out, config, date=_DAY, baseline=baseline)
    assert list(report_laws(out, _DAY)) == []
    report = reports.read(out / f"{_DAY}.json")
    tokens = {name: each["totals"]["total_tokens"] for name, each in report["datasets"].items()}
    assert summary.dataset_tokens == tokens
    return report


def change_record(root: Path, folder: str, partition: str | None, **values: Any) -> None:
    path = record_path(root / folder, partition, shared=partition is not None)
    record = Record.model_validate_json(path.read_bytes())
    values["counts"] = record.counts | values.get("counts", {})
    path.write_bytes(record.model_copy(update=values).sealed().to_bytes())


def change_manifest(root: Path, split: str, **values: int) -> None:
    path = root / names.TOKENS / "mine" / names.MANIFEST
    entries = json.loads(path.read_bytes())
    next(each for each in entries if each["split"] == split).update(values)
    path.write_text(json.dumps(entries))


def test_a_dataset_has_the_numbers_of_its_files_by_split(root: Path) -> None:
    report = report_of(root)
    assert list(report["datasets"]) == ["mine", "single"]
    folder, mine = root / names.TOKENS / "mine", report["datasets"]["mine"]
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


def test_a_report_is_published_where_no_shards_of_gpt2_are(root: Path) -> None:
    assert reports_now(DataRoot(root)) == [today().isoformat()]
    record = built(root, "reasoning/qc_report", today().isoformat())
    datasets = [each.partition for each in record.inputs if each.asset == "reasoning/tokens"]
    assert datasets == ["mine", "single"] and record.tokenizer is None
    assert record.counts["dataset_tokens/mine"] > 0
    shutil.rmtree(root / names.NORMALIZED)
    report = report_of(root)
    assert report["splits"] == {} and report["datasets"]["mine"]["totals"]["examples"] == 24
    shutil.rmtree(root / names.TOKENS)
    with pytest.raises(NothingToBuild):
        report_of(root)


def test_what_the_record_counts_over_all_splits_is_null_where_the_normalised_split_is_newer(
    root: Path,
) -> None:
    first = report_of(root)
    change_record(root, names.NORMALIZED, _TRAIN, data_version="0" * 64)
    for name in ("mine", "single"):
        counts = {"skipped_empty": 2, "control_texts": 3}
        change_record(root, f"{names.TOKENS}/{name}", None, counts=counts)
    report = report_of(root, first)
    mine, single = (report["datasets"][name]["splits"][_TRAIN] for name in ("mine", "single"))
    unknown = ("with_cot", "skipped_empty", "control_texts", "pct_with_cot")
    assert [mine[key] for key in unknown] == [None] * 4
    assert [single[key] for key in unknown] == [6, 2, 3, 50.0]
    assert report["gate"]["breaches"] == []
    assert report["warnings"] == [
        f"{name}: 3 literal end tokens of tiny in texts stay text" for name in ("mine", "single")
    ]
    assert report_of(root, report)["gate"]["passed"]


def test_only_a_dataset_may_not_know_its_share_with_cot() -> None:
    unknown, known = {"pct_with_cot": None}, {"pct_with_cot": 50.0}
    now, before = {"a__b": unknown, "mine/a__b": unknown}, {"a__b": known, "mine/a__b": known}
    assert measured_alike(now, before) == (now, {"a__b": known, "mine/a__b": unknown})
    assert measured_alike(before, now) == ({"a__b": known, "mine/a__b": unknown}, now)
    assert measured_alike(before, {}) == (before, {})


def test_drift_of_a_dataset_closes_the_gate(root: Path) -> None:
    first = report_of(root)
    assert report_of(root, first)["gate"] == {"passed": True, "baseline": _DAY, "breaches": []}
    change_manifest(root, "test", text_tokens=99_000)
    change_record(root, f"{names.TOKENS}/mine", None, counts={"text_tokens": 99_000})
    out = root / "drifted"
    coverage_report(root, out, ReportConfig(root / "none"), date=_DAY, baseline=first)
    assert {each.law for each in report_laws(out)} == {"totals"}  # other metas than the record
    report = reports.read(out / f"{_DAY}.json")
    one, other = report["gate"]["breaches"]
    assert one.startswith("mine/gsm8k__test: total_tokens ") and "avg_seq_len" in other
    assert report["drift"]["changes"]["mine/gsm8k__test"]["total_tokens"] > 10
    assert reports.reference(report) == reports.reference(first)


def test_a_dataset_that_is_gone_is_a_breach_and_a_new_one_is_not(root: Path) -> None:
    first = report_of(root)
    without = {key: value for key, value in first.items() if key != "datasets"}
    assert report_of(root, without)["gate"]["passed"]
    assert set(reports.reference(without)) == {_TRAIN, _TEST}
    shutil.rmtree(root / names.TOKENS / "single")
    assert report_of(root, first)["gate"]["breaches"] == [
        "single/gsm8k__train: is in the baseline, and no longer published"
    ]


def test_terms_and_missing_steps_of_a_dataset_are_warned_of(root: Path) -> None:
    path = root / names.NORMALIZED / "provenance" / f"{_TEST}.json"
    path.unlink()  # the name alone is left
    for name in ("test", "train"):
        rows = root / names.TOKENS / "mine" / names.alignment("gsm8k", name)
        values = [json.loads(line) for line in rows.read_text().splitlines()]
        empty = {"text_offset_ranges": [], "token_offset_ranges": [], "step_labels": []}
        rows.write_text("".join(json.dumps(each | empty) + "\n" for each in values))
    folder = root / names.TOKENS / "mine"
    (folder / names.MANIFEST).write_text(
        (folder / names.MANIFEST).read_text().replace('"gsm8k"', '"my_maths"')
    )
    record = json.loads((folder / "provenance.json").read_bytes())
    for each in record["inputs"]:
        each["partition"] = each["partition"].replace("gsm8k", "my_maths")
    (folder / "provenance.json").write_bytes(Record.model_validate(record).sealed().to_bytes())
    (folder / "gsm8k").rename(folder / "my_maths")
    assert report_of(root)["warnings"] == [
        f"mine/my_maths__{split}: {warning}"
        for split in ("train", "test")
        for warning in (
            "the terms are unknown: nobody has said that training is allowed",
            "no example has steps",
        )
    ]


def test_a_manifest_that_cannot_be_read_is_named(root: Path) -> None:
    (root / names.TOKENS / "mine" / names.MANIFEST).write_text("[")
    with pytest.raises(BadInput, match=r"mine/manifest\.json: is no JSON"):
        report_of(root)
