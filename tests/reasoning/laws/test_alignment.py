import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import Violation
from gristmill.corpora.corpus import CORPORA, PARTITIONS, corpus_and_split
from gristmill.reasoning.builders.report import coverage_report
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.align import rows
from gristmill.reasoning.laws.alignment import alignment_laws, index_laws
from gristmill.reasoning.laws.report import report_laws
from gristmill.reasoning.render.steps import MARKED, RULES
from gristmill.reasoning.samples import write_drop
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2
from tests.reasoning.indexed_splits import write_aligned
from tests.reasoning.published_root import publish_dropped

Row = dict[str, Any]

_RECORDS = [
    {"question": f"Why, {number}?", "answer": "1+1=<<1+1=2>>2.\nSo\u2019s it.\n#### 2", "cot": None}
    for number in range(30)
]
_RECORDS[3] = {"question": "Why?", "answer": "#### 2", "cot": None}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("built")
    write_aligned(root, "gsm8k", "test", _RECORDS, find(GPT2, vocabulary_root))
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(built, tmp_path / "root"))


def _broken(root: Path, partition: str | None = "gsm8k__test") -> list[Violation]:
    folder = root / names.ALIGNMENT
    return [
        *alignment_laws(folder, partition),
        *index_laws(folder, root / names.NORMALIZED, root / names.TOKENIZED, partition),
    ]


def _change(path: Path, change: Callable[[list[Row]], object]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _aligned(root: Path) -> Path:
    return root / names.ALIGNMENT / "gsm8k/test.align.jsonl"


def test_an_alignment_obeys_all_laws(built: Path) -> None:
    assert _broken(built) == _broken(built, None) == []


def _set(key: str, value: Any, at: int = 7) -> Callable[[list[Row]], object]:
    return lambda rows: rows[at].__setitem__(key, value)


def _add(key: str, number: float) -> Callable[[list[Row]], object]:
    def change(rows: list[Row]) -> None:
        rows[7][key] += number

    return change


def _move(key: str, step: int, end: int, number: int) -> Callable[[list[Row]], object]:
    def change(rows: list[Row]) -> None:
        rows[7][key][step][end] += number

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_set("step_labels", ["Step 1"]), {"lengths"}),
        (_move("text_offset_ranges", 0, 0, -1000), {"ranges", "bounds"}),
        (_move("text_offset_ranges", 0, 1, 3), {"ranges"}),
        (_move("text_offset_ranges", 2, 1, 1), {"bounds"}),
        (_move("text_offset_ranges", 2, 0, 1000), {"ranges", "bounds"}),
        (_move("token_offset_ranges", 0, 1, 3), {"ranges"}),
        (_move("token_offset_ranges", 1, 0, -3), {"ranges"}),
        (_move("token_offset_ranges", 2, 1, 1), {"bounds"}),
        (_move("token_offset_ranges", 2, 0, 100), {"ranges", "bounds"}),
        (_set("step_labels", ["Step 1", "Step 02", "Answer"]), {"labels"}),
        (_set("confidence", 1.5), {"confidence"}),
        (_set("confidence", -0.1), {"confidence"}),
        (_set("confidence", float("nan")), {"confidence"}),
        (_set("confidence", 0.9), {"confidence"}),
        (_set("confidence", 0.8), set()),
        (_set("confidence", 0.0), {"notes"}),
        (_set("notes", "explicit:cot_steps; verified"), set()),
        (_set("notes", "heuristic:lines; seen"), {"notes"}),
        (_set("notes", "guess; verified"), {"notes"}),
        (_set("notes", "no-steps"), {"notes"}),
        (_set("notes", "no-steps; verified", 3), {"notes"}),
        (_set("example_id", "gsm8k_test_000006"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_test_7"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_train_000007"), {"order", "one row each"}),
        (_set("example_id", "gsm8k_test_000009"), {"order", "one row each"}),
        (_set("example_id", "none"), {"order", "one row each"}),
        (_add("sequence_index", 1), {"index"}),
        (_set("shard_path", "x"), {"index"}),
        (_set("confidence", 1), {"readable", "one row each"}),
        (lambda rows: rows.pop(), {"one row each"}),
        (lambda rows: rows.pop(7), {"one row each"}),
        (lambda rows: rows.append(rows[-1]), {"order", "one row each"}),
    ],
)
def test_a_broken_row_is_found(
    root: Path, change: Callable[[list[Row]], object], expected: set[str]
) -> None:
    _change(_aligned(root), change)
    assert {violation.law for violation in _broken(root)} == expected


def test_a_range_of_no_characters_is_found(root: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[7]["text_offset_ranges"][0] = [0, 0]

    _change(_aligned(root), change)
    assert {violation.law for violation in _broken(root)} == {"ranges", "bounds"}


def test_neighbours_may_share_one_token(root: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[7]["token_offset_ranges"] = [[0, 2], [1, 3], [3, 5]]

    _change(_aligned(root), change)
    assert list(alignment_laws(root / names.ALIGNMENT, "gsm8k__test")) == []


@pytest.mark.parametrize(
    ("file", "key", "value", "expected"),
    [
        (f"{names.TOKENIZED}/gsm8k/test/index.jsonl", "num_tokens", 3, {"bounds"}),
        (f"{names.TOKENIZED}/gsm8k/test/index.jsonl", "text_sha256", "0", {"one row each"}),
        (f"{names.NORMALIZED}/gsm8k/test.jsonl", "answer", "another", {"one row each"}),
    ],
)
def test_inputs_of_another_split_are_found(
    root: Path, file: str, key: str, value: Any, expected: set[str]
) -> None:
    _change(root / file, _set(key, value))
    assert {violation.law for violation in _broken(root)} == expected


@pytest.mark.parametrize("name", ["raw/gsm8k/test.jsonl", "tokenized/gpt2/gsm8k/test/index.jsonl"])
def test_a_missing_or_broken_input_is_found(root: Path, name: str) -> None:
    path = root / "reasoning" / name
    path.write_bytes(path.read_bytes()[:-20])
    assert {violation.law for violation in _broken(root)} == {"one row each"}
    path.unlink()
    (violation,) = _broken(root)
    assert violation.law == "one row each" and "is not there: build" in violation.found


def test_a_missing_alignment_is_found(root: Path) -> None:
    _aligned(root).unlink()
    assert {violation.law for violation in _broken(root)} == {"readable", "one row each"}


def test_the_first_twenty_offenders_are_given_and_the_rest_counted(root: Path) -> None:
    _change(_aligned(root), lambda rows: [row.update(sequence_index=99) for row in rows])
    violations = _broken(root)
    assert len(violations) == 21
    assert violations[0].where == "gsm8k/test.align.jsonl:1"
    assert violations[0].found.startswith("gsm8k_test_000000: ")
    assert violations[-1].found == "10 more of 30 rows"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, vocabulary_root: Path) -> None:
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


def test_all_samples_obey_all_laws(samples: Path) -> None:
    assert _broken(samples, None) == []


def test_the_samples_reach_every_rule_and_every_label(samples: Path) -> None:
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


def test_every_sample_split_is_in_the_report(samples: Path, report: dict[str, Any]) -> None:
    assert list(report["splits"]) == list(PARTITIONS)
    assert list(report_laws(samples / names.REPORTS)) == []
    assert report["invariance"]["breaches"] == []
    assert set(report["invariance"]["splits"]) == set(PARTITIONS)


def test_the_report_warns_of_terms_that_are_unknown_or_forbid(report: dict[str, Any]) -> None:
    warned = {warning.partition("__")[0] for warning in report["warnings"] if "terms" in warning}
    assert warned == {"reasoning_traces", "reveal", "trip"}
