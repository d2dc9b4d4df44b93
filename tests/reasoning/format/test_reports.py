import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import reports

_SPLIT = {
    **dict.fromkeys(reports.COUNTS, 1),
    **dict.fromkeys(reports.SHARES, 0.5),
    **dict.fromkeys(reports.HASHES),
}
REPORT: dict[str, Any] = {
    "schema_version": 1,
    "date": "2026-11-22",
    "run_id": None,
    "splits": {"gsm8k__test": _SPLIT},
    "totals": {},
    "invariance": {},
    "warnings": [],
    "drift": {"baseline": None, "reference": {}},
    "gate": {"passed": True, "baseline": None, "breaches": []},
}


DATASET: dict[str, Any] = {
    "tokenizer": "tiny",
    "tokenizer_sha256": "ab",
    "splits": {
        "gsm8k__test": {
            **dict.fromkeys(reports.DATASET_COUNTS, 1),
            **dict.fromkeys(("pct_with_cot", "avg_seq_len"), 0.5),
            "alignment_coverage": None,
            "raw_sha256": "cd",
        }
    },
    "totals": {},
}


def _with_dataset(report: dict[str, Any], **change: Any) -> dict[str, Any]:
    """A report with the dataset mine in its place. change: of the dataset."""
    found = {}
    for key, value in report.items():
        found[key] = value
        if key == "totals":
            found["datasets"] = {"mine": DATASET | change}
    return found


def _of_dataset(**change: Any) -> dict[str, Any]:
    return {"splits": {"gsm8k__test": DATASET["splits"]["gsm8k__test"] | change}}


def _split(**change: Any) -> dict[str, Any]:
    return {"splits": {"gsm8k__test": _SPLIT | change}}


def _reference(**change: Any) -> dict[str, Any]:
    split = {key: _SPLIT[key] for key in reports.MEASURED} | change
    return {"drift": {"baseline": "2026-11-22", "reference": {"gsm8k__test": split}}}


def test_baselines_stand_for_numbers_and_reports_hold_no_nan() -> None:
    expected = {key: _SPLIT[key] for key in reports.MEASURED}
    assert reports.reference(REPORT) == {"gsm8k__test": expected}
    other = _reference(examples=7)
    other["drift"]["baseline"] = "2026-11-21"
    assert reports.reference(REPORT | other) == {"gsm8k__test": expected}
    report = REPORT | _reference(examples=7)
    assert reports.problem(report) is None
    assert reports.reference(report)["gsm8k__test"]["examples"] == 7
    with pytest.raises(ValueError, match="JSON compliant"):
        reports.to_bytes(REPORT | {"totals": float("nan")})
    assert reports.ratio(1, 3) == 0.333333333 and reports.ratio(1, 3, 100) == 33.333333333
    assert reports.ratio(1, 0) is reports.ratio(None, 3) is None
    assert reports.ratio(0, 3) == 0


def test_a_report_with_a_dataset_is_read_and_its_splits_are_a_baseline(tmp_path: Path) -> None:
    path = reports.path(tmp_path, "2026-11-22")
    path.write_bytes(reports.to_bytes(_with_dataset(REPORT)))
    report = reports.read(path)
    assert list(reports.all_splits(report)) == ["gsm8k__test", "mine/gsm8k__test"]
    found = reports.reference(report)["mine/gsm8k__test"]
    assert tuple(found) == reports.MEASURED and found["raw_sha256"] == "cd"
    assert reports.all_splits(REPORT) == REPORT["splits"]
    assert reports.problem(REPORT | {"datasets": {}}) is not None  # at the end


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({}, None),
        (_of_dataset(with_cot=None, skipped_empty=None, control_texts=None), None),
        (_of_dataset(aligned=1, spans=2, alignment_coverage=0.5), None),
        *(({"tokenizer": each}, "tokenizer is of another kind") for each in (None, 1)),
        ({"more": 1}, "mine: is not an object with the keys"),
        *(({key: []}, f"{key} is no object") for key in ("splits", "totals")),
        ({"splits": {"a": 1}}, "mine: splits: a is no object"),
        *((_of_dataset(**{key: -1}), key) for key in ("examples", "with_cot", "aligned", "spans")),
        *((_of_dataset(**{key: [1]}), key) for key in ("avg_seq_len", "raw_sha256")),
    ],
)
def test_a_dataset_of_another_form_is_refused(change: dict[str, Any], where: str | None) -> None:
    found = reports.problem(_with_dataset(REPORT, **change))
    assert found is None if where is None else where in str(found)


@pytest.mark.parametrize("datasets", [[], {"mine": 1}])
def test_datasets_that_are_no_objects_are_refused(datasets: Any) -> None:
    assert reports.problem(_with_dataset(REPORT) | {"datasets": datasets}) is not None


def test_a_split_of_a_dataset_without_a_count_is_refused() -> None:
    split = _with_dataset(REPORT)["datasets"]["mine"]["splits"]["gsm8k__test"]
    for key in (*reports.DATASET_COUNTS, *reports.MEASURED):
        less = {name: value for name, value in split.items() if name != key}
        change = {"splits": {"gsm8k__test": less}}
        assert f"{key} is missing" in str(reports.problem(_with_dataset(REPORT, **change)))


def test_a_report_is_read_back(tmp_path: Path) -> None:
    path = reports.path(tmp_path, "2026-11-22")
    path.write_bytes(reports.to_bytes(REPORT))
    assert reports.read(path) == REPORT
    assert path.read_bytes().endswith(b"}\n")
    assert path.name == "2026-11-22.json"
    (tmp_path := tmp_path / "next").mkdir()
    for name in ("2026-11-22.json", "2026-02-01.json", "manifest.json", "2026-1-1.json"):
        (tmp_path / name).touch()
    assert reports.dates(tmp_path) == ["2026-02-01", "2026-11-22"]
    assert reports.dates(tmp_path / "none") == []
    (tmp_path := tmp_path / "next").mkdir()
    with pytest.raises(BadInput, match="no such report"):
        reports.read(tmp_path / "2026-11-22.json")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"schema_version": 2}, "schema_version"),
        *(({"date": each}, "date is of another kind") for each in ("today", 1)),
        ({"splits": []}, "splits is no object"),
        ({"splits": {"a": 1}}, "splits: a is no object"),
        *((_split(examples=each), "examples is of") for each in (-1, 1.0, 1 << 63)),
        *((_split(avg_seq_len=each), "avg_seq_len") for each in ("1", float("inf"), float("nan"))),
        ({"totals": None}, "totals is no object"),
        (_split(raw_sha256=1), "raw_sha256 is of another kind"),
        *(({"drift": each}, "drift") for each in ([], {"reference": {}}, {"baseline": None})),
        ({"drift": {"baseline": None, "reference": {"a": {}}}}, "drift: reference: a"),
        (_reference(raw_sha256=1), "drift: reference"),
        *((_reference(total_tokens=each), "total_tokens is of") for each in (1.5, -1)),
        (_reference(avg_seq_len="1"), "drift: reference"),
        (_reference(more=1), "drift: reference has other keys"),
        ({"gate": {}}, "gate: passed is missing"),
        ({"gate": {"passed": True}}, "gate: breaches is missing"),
        ({"gate": {"passed": False, "breaches": [1]}}, "gate: breaches"),
        ({"gate": {"passed": False, "breaches": []}}, "do not agree"),
        ({"gate": {"passed": True, "breaches": ["a"]}}, "do not agree"),
        ({"more": 1}, "an object with the keys"),
    ],
)
def test_a_broken_report_is_refused(tmp_path: Path, change: dict[str, Any], where: str) -> None:
    path = tmp_path / "2026-11-22.json"
    path.write_text(json.dumps(REPORT | change))
    with pytest.raises(BadInput, match=where):
        reports.read(path)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "2026-11-22.json").write_bytes(data)
    with pytest.raises(BadInput):
        reports.read(tmp_path / "2026-11-22.json")
