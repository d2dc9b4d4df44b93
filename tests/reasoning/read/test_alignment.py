from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.format import audits, names
from gristmill.reasoning.format.audits import Audit
from gristmill.reasoning.read.alignment import (
    Drawn,
    Example,
    draw,
    example,
    examples,
    place_of,
    week_of,
)
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.indexed_splits import write_aligned

INDEX = f"{names.TOKENIZED}/gsm8k/test/index.jsonl"
_EMPTY = {"question": "", "answer": " ", "cot": None}
_RECORDS = [_EMPTY, *({"question": f"{k}?", "answer": "a\nb", "cot": None} for k in range(4))]
_RECORDS.insert(3, _EMPTY)


@pytest.fixture
def root(tmp_path: Path, vocabulary_root: Path) -> Path:
    write_aligned(tmp_path, "gsm8k", "test", _RECORDS, find(GPT2, vocabulary_root))
    return tmp_path


def folders(root: Path) -> list[Path]:
    return [root / name for name in (names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT)]


def _examples(root: Path) -> list[Example]:
    return list(examples(*folders(root), "gsm8k", "test"))


def test_rows_come_with_their_records(root: Path) -> None:
    found = _examples(root)
    assert [example.row.example_id[-1] for example in found] == ["1", "2", "4", "5"]
    assert [example.record["question"] for example in found] == ["0?", "1?", "2?", "3?"]
    assert found[2].rendered.text == "2?\n\nAnswer:\na\nb"
    assert len(found[0].text_sha256) == 64


@pytest.mark.parametrize("name", [f"{names.ALIGNMENT}/gsm8k/test.align.jsonl", INDEX])
def test_a_row_too_few_is_refused(root: Path, name: str) -> None:
    path = root / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadInput, match="gsm8k_test_000005"):
        _examples(root)


def test_a_record_of_another_text_is_refused(root: Path) -> None:
    path = root / names.NORMALIZED / "gsm8k/test.jsonl"
    path.write_text(path.read_text().replace("2?", "two?"))
    with pytest.raises(BadInput, match="gsm8k_test_000004 is of another text"):
        _examples(root)


def test_records_that_are_gone_are_refused(root: Path) -> None:
    path = root / names.NORMALIZED / "gsm8k/test.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[1])
    with pytest.raises(BadInput, match="gsm8k_test_000001"):
        _examples(root)


def test_a_line_that_is_no_json_is_refused_with_its_number(root: Path) -> None:
    path = root / names.NORMALIZED / "gsm8k/test.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "\n", json.dumps({})[:1] + "\n", *lines[1:]]))
    with pytest.raises(BadInput, match="not JSON") as caught:
        _examples(root)
    assert caught.value.row == 3


def test_one_example_is_found_by_its_id(root: Path) -> None:
    for expected in _examples(root):
        assert example(*folders(root), expected.row.example_id) == expected
    for missing in ("gsm8k_test_000000", "gsm8k_test_000009"):
        with pytest.raises(BadInput, match=f"has no row {missing}"):
            example(*folders(root), missing)


def test_an_example_of_another_text_is_refused(root: Path) -> None:
    path = root / names.NORMALIZED / "gsm8k/test.jsonl"
    path.write_text(path.read_text().replace("2?", "two?"))
    with pytest.raises(BadInput, match="gsm8k_test_000004 is of another text"):
        example(*folders(root), "gsm8k_test_000004")
    path.write_text("\n")
    with pytest.raises(BadInput, match="has no record 4"):
        example(*folders(root), "gsm8k_test_000004")


def test_the_place_of_an_id() -> None:
    assert place_of("cot_collection_train_000123") == ("cot_collection", "train", 123)
    assert place_of("gsm8k_test_1234567") == ("gsm8k", "test", 1234567)


@pytest.mark.parametrize(
    "wrong", ["", "gsm8k_test_", "gsm8k_test_1", "gsm8k_de v_000001", "gsm8k_test_" + "9" * 30]
)
def test_what_is_no_id_is_refused(wrong: str) -> None:
    with pytest.raises(GristmillError, match="is no id"):
        place_of(wrong)


def _records(count: int) -> list[dict[str, str | None]]:
    answers = ["1+1=<<1+1=2>>2\n#### 2", "2\n#### 2", "Step 1: b\n#### 2", "#### 2"]
    return [{"question": f"{k}?", "answer": answers[k % 4], "cot": None} for k in range(count)]


@pytest.fixture
def sampled(tmp_path: Path, vocabulary_root: Path) -> Path:
    for split, count in (("train", 24), ("test", 16)):
        write_aligned(tmp_path, "gsm8k", split, _records(count), find(GPT2, vocabulary_root))
    return tmp_path


def _draw(
    sampled: Path, week: str = "2026-W47", count: int = 5, corpus: str = "gsm8k"
) -> list[Drawn]:
    return draw(
        sampled / names.TOKENIZED,
        sampled / names.ALIGNMENT,
        sampled / "audits",
        corpus,
        week,
        count,
    )


def test_weeks_are_those_of_iso() -> None:
    assert week_of(date(2026, 11, 22)) == "2026-W47"
    assert week_of(date(2027, 1, 1)) == "2026-W53"
    assert week_of(date(2026, 1, 5)) == "2026-W02"


def test_the_least_sure_examples_of_all_splits_come_first(sampled: Path) -> None:
    found = _draw(sampled, count=30)
    sure = [drawn.row.confidence for drawn in found]
    assert sure == [0.85] * 10 + [0.89] * 10 + [1.0] * 10  # those without steps are left out
    assert {drawn.row.example_id.split("_")[1] for drawn in found} == {"train", "test"}
    assert _draw(sampled, count=7) == found[:7]
    assert len(_draw(sampled, count=99)) == 30


def test_another_week_draws_others(sampled: Path) -> None:
    assert _draw(sampled) == _draw(sampled)
    assert {each.row.example_id for each in _draw(sampled)} != {
        each.row.example_id for each in _draw(sampled, "2026-W48")
    }


def test_what_has_an_audit_is_not_drawn_again(sampled: Path) -> None:
    first, second, third, *rest = _draw(sampled)
    for drawn, verdict, sha256 in (
        (first, "right", first.text_sha256),
        (second, "wrong", second.text_sha256),
        (third, "right", "another text"),
    ):
        split = drawn.row.example_id.split("_")[1]
        audit = Audit(drawn.row.example_id, sha256, verdict, "", "", "")
        audits.append(sampled / "audits" / f"gsm8k__{split}.jsonl", audit)
    assert _draw(sampled)[:3] == [third, *rest]


def test_a_corpus_that_is_not_aligned_has_no_sample(sampled: Path) -> None:
    assert _draw(sampled, corpus="wiqa") == []


def test_an_alignment_of_another_index_is_refused(sampled: Path) -> None:
    index = sampled / INDEX
    lines = index.read_text().splitlines(keepends=True)
    for changed in (lines[1:], lines[:-1]):
        index.write_text("".join(changed))
        with pytest.raises(BadInput, match="is not in the index at this place"):
            _draw(sampled)
    assert json.loads(lines[0])["example_id"] == "gsm8k_test_000000"
