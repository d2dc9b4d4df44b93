"""Laws of alignments, reports, spans and exports: each thing that breaks them is found."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest

from gristmill.contract import Violation
from gristmill.corpora.corpus import CORPORA, PARTITIONS, corpus_and_split
from gristmill.provenance import Record
from gristmill.reasoning.builders.report import coverage_report
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.align import rows
from gristmill.reasoning.laws.quality import alignment_laws, index_laws, report_laws
from gristmill.reasoning.render.steps import MARKED, RULES
from gristmill.reasoning.samples import write_drop
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.exported_root import FORMATS, broken, build_dataset
from tests.reasoning.format.test_reports import REPORT
from tests.reasoning.normalized_files import write_aligned
from tests.reasoning.published_root import built as built_asset
from tests.reasoning.published_root import publish_dropped

Row = dict[str, Any]

_RECORDS = [
    {"question": f"Why, {number}?", "answer": "1+1=<<1+1=2>>2.\nSo\u2019s it.\n#### 2", "cot": None}
    for number in range(30)
]
_RECORDS[3] = {"question": "Why?", "answer": "#### 2", "cot": None}
_RANGES = ("text_offset_ranges", "token_offset_ranges", "step_labels")
_NOTHING = {**{key: [] for key in _RANGES}, "confidence": 0.0, "notes": "no-steps"}
"""What a row says of an example without steps."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("built")
    write_aligned(root, "gsm8k", "test", _RECORDS, find(GPT2, vocabulary_root))
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "root"))


def _broken(root: Path, partition: str | None = "gsm8k__test") -> list[Violation]:
    folder = root / names.ALIGNMENT
    return [
        *alignment_laws(folder, partition),
        *index_laws(folder, root / names.TOKENIZED, partition),
    ]


def _change(path: Path, change: Callable[[list[Row]], object]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _aligned(root: Path) -> Path:
    return root / names.ALIGNMENT / "gsm8k/test.align.jsonl"


def test_good_alignments_obey_and_neighbours_may_share_a_token(built, root):
    assert _broken(built) == _broken(built, None) == []
    _change(_aligned(root), _set("token_offset_ranges", [[0, 2], [1, 3], [3, 5]]))
    assert list(alignment_laws(root / names.ALIGNMENT, "gsm8k__test")) == []


def _set(key: str, value: Any, at: int = 7) -> Callable[[list[Row]], object]:
    return lambda rows: rows[at].__setitem__(key, value)


def _move(key: str, step: int, end: int, number: int) -> Callable[[list[Row]], object]:
    def change(rows: list[Row]) -> None:
        rows[7][key][step][end] += number

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_set("step_labels", ["Step 1"]), {"lengths"}),
        (_move("text_offset_ranges", 0, 0, -1000), {"ranges"}),
        (_move("text_offset_ranges", 0, 1, 3), {"ranges"}),
        (lambda rows: rows[7]["text_offset_ranges"].__setitem__(0, [0, 0]), {"ranges"}),
        (_move("text_offset_ranges", 2, 0, 1000), {"ranges"}),
        (_move("token_offset_ranges", 0, 1, 3), {"ranges"}),
        (_move("token_offset_ranges", 1, 0, -3), {"ranges"}),
        (_move("token_offset_ranges", 2, 1, 1), {"bounds"}),
        (_move("token_offset_ranges", 2, 0, 100), {"ranges"}),
        (_set("step_labels", ["Step 1", "Step 02", "Answer"]), {"labels"}),
        (_set("confidence", 1.5), {"confidence"}),
        (_set("confidence", -0.1), {"confidence"}),
        (_set("confidence", float("nan")), {"readable", "one row each"}),
        (_set("confidence", 0.9), {"confidence"}),
        (_set("confidence", 0.8), set()),
        (_set("confidence", 0.0), {"notes"}),
        (_set("notes", "explicit:cot_steps; verified"), set()),
        (_set("notes", "heuristic:lines; seen"), {"notes"}),
        (_set("notes", "guess; verified"), {"notes"}),
        (_set("notes", "no-steps"), {"notes"}),
        (_set("notes", "no-steps; verified", 3), {"notes"}),
        (_set("confidence", 0.5, 3), {"notes"}),
        (_set("step_labels", ["Step 1"], 3), {"lengths"}),
        (lambda rows: rows[7].update(_NOTHING), set()),
        (_set("example_id", "gsm8k_test_000006"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_test_7"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_train_000007"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_test_000009"), {"order", "one row each"}),
        (_set("example_id", "none"), {"order", "one row each"}),
        (lambda rows: rows[7].update(sequence_index=rows[7]["sequence_index"] + 1), {"index"}),
        (_set("shard_path", "x"), {"index"}),
        (_set("confidence", 1), {"readable", "one row each"}),
        (lambda rows: rows.pop(), {"one row each"}),
        (lambda rows: rows.pop(7), {"one row each"}),
        (lambda rows: rows.append(rows[-1]), {"order", "one row each"}),
    ],
)
def test_a_broken_row_is_found(root, change, expected):
    _change(_aligned(root), change)
    assert {violation.law for violation in _broken(root)} == expected


@pytest.mark.parametrize(
    ("file", "key", "value", "expected"),
    [
        (f"{names.TOKENIZED}/gsm8k/test/index.jsonl", "num_tokens", 3, {"bounds"}),
        (f"{names.TOKENIZED}/gsm8k/test/index.jsonl", "example_id", "0", {"one row each"}),
    ],
)
def test_inputs_of_another_split_are_found(root, file, key, value, expected):
    _change(root / file, _set(key, value))
    assert {violation.law for violation in _broken(root)} == expected


def test_a_missing_alignment_and_a_broken_input_are_found(root):
    path = root / names.TOKENIZED / "gsm8k/test/index.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert {violation.law for violation in _broken(root)} == {"one row each"}
    path.unlink()
    (violation,) = _broken(root)
    assert violation.law == "one row each" and "is not there: build" in violation.found
    _aligned(root).unlink()
    assert {violation.law for violation in _broken(root)} == {"readable", "one row each"}


def test_the_first_twenty_offenders_are_given_and_the_rest_counted(root):
    _change(_aligned(root), lambda rows: [row.update(sequence_index=99) for row in rows])
    violations = _broken(root)
    assert len(violations) == 21
    assert violations[0].where == "gsm8k/test.align.jsonl:1"
    assert violations[0].found.startswith("gsm8k_test_000000: ")
    assert violations[-1].found == "10 more of 30 rows"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path, vocabulary_root):
    peaks = []
    for split, repeat in (("test", 1), ("test", 20), ("train", 160)):
        root = tmp_path / f"{split}-{repeat}"
        write_aligned(root, "gsm8k", split, _RECORDS * repeat, find(GPT2, vocabulary_root))
        tracemalloc.start()
        assert _broken(root, f"gsm8k__{split}") == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.25 * peaks[1]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """All sample drops, normalised, tokenised and aligned."""
    root, vocabulary = tmp_path_factory.mktemp("root"), find(GPT2, vocabulary_root)
    for corpus in CORPORA.values():
        write_drop(root / "drops/reasoning" / corpus.name, corpus.name)
        for split in corpus.splits:
            publish_dropped(root, corpus.name, split, vocabulary)
    return root


@pytest.fixture(scope="module")
def report(samples: Path) -> dict[str, Any]:
    out = samples / names.REPORTS
    config = ReportConfig(samples / "tokenizer" / GPT2.relative, invariance_sample=5)
    coverage_report(samples, out, config, date="2026-11-22")
    return reports.read(out / "2026-11-22.json")


def test_all_samples_obey_all_laws_and_reach_every_rule(samples):
    assert _broken(samples, None) == []
    rules, labels, sure = set[str](), set[str](), set[float]()
    for key in PARTITIONS:
        corpus, split = corpus_and_split(key)
        for row in rows(samples / names.ALIGNMENT / names.alignment(corpus.name, split)):
            rules.add(row.rule)
            labels.update(label.partition(" ")[0] for label in row.step_labels)
            sure.add(row.confidence)
    assert rules == {*RULES} - {MARKED}
    assert labels == {"Step", "Answer", "Choice", "Conflict", "Effect", "Precondition"}
    assert sure == {0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.89, 1.0}


def test_every_sample_split_is_in_the_report_which_warns_of_terms(samples, report):
    assert list(report["splits"]) == list(PARTITIONS)
    assert list(report_laws(samples / names.REPORTS)) == []
    assert report["invariance"]["breaches"] == []
    assert set(report["invariance"]["splits"]) == set(PARTITIONS)
    warned = {warning.partition("__")[0] for warning in report["warnings"] if "terms" in warning}
    assert warned == {"reasoning_traces", "reveal", "trip"}


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


def _with_dataset(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
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


def _broken_of_report(folder: Path, change: Callable[[dict[str, Any]], object]) -> set[str]:
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
def test_a_broken_report_is_found(tmp_path, change, expected):
    assert _broken_of_report(tmp_path, change) == expected


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
def test_a_broken_dataset_of_a_report_is_found(tmp_path, change, expected):
    assert _broken_of_report(tmp_path, _with_dataset(change)) == expected


def test_a_split_without_examples_has_no_shares_and_a_missing_report_is_found(tmp_path):
    def change(report: dict[str, Any]) -> None:
        report["splits"]["gsm8k__test"].update(
            dict.fromkeys(reports.SHARES), examples=0, total_tokens=0
        )
        for key in ("examples", "total_tokens"):
            report["totals"][key] -= _SPLIT[key]

    assert _broken_of_report(tmp_path, change) == set()
    (tmp_path := tmp_path / "next").mkdir()
    assert [violation.law for violation in report_laws(tmp_path, "2026-11-22")] == ["readable"]
    assert list(report_laws(tmp_path)) == []


Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    chosen = {"tokenizer": "tiny"}
    return root, built_asset(root, "reasoning/spans", "gsm8k__train", **chosen)


def _changed(number: int, **values: object) -> Callable[[Rows], object]:
    return lambda rows: rows[number].update(values)


def _range(unit: str, name: str, value: object) -> Callable[[Rows], object]:
    return lambda rows: rows[0][unit].update({name: value})


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (lambda _: None, []),
        (lambda rows: rows.append(dict(rows[-1])), ["order"]),
        (lambda rows: rows.reverse(), ["order"]),
        (lambda rows: rows[0].pop("C"), ["readable"]),
        (_changed(0, ann_idx="0"), ["readable"]),
        (_changed(1, part="neither"), ["parts"]),
        (_range("bytes", "outer_eq", [1]), ["readable"]),
    ],
)
def test_rows_that_break_a_law_are_found(change, laws, published):
    root, record = published
    path = root / "reasoning/spans/gsm8k/train.spans.jsonl"
    before = path.read_bytes()
    rows = [orjson.loads(line) for line in before.splitlines()]
    change(rows)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    try:
        found = broken(root, record, shared=True)
    finally:
        path.write_bytes(before)
    assert sorted({each.partition(":")[0] for each in found}) == laws


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    return root, built_asset(root, "reasoning/exports", "mine", formats=FORMATS, file_tokens=400)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_without_its_files_is_found(name, exported, tmp_path):
    root = tmp_path / "data"
    shutil.copytree(exported[0], root)
    assert broken(root, exported[1], shared=False) == []
    shutil.rmtree(root / "reasoning/exports/mine" / name)
    (found,) = broken(root, exported[1], shared=False)
    assert found.startswith("files: there is no ")
