import json
from datetime import date
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.config import AlignConfig
from gristmill.reasoning.format import audits
from gristmill.reasoning.format.audits import Audit
from gristmill.reasoning.read.audit_sample import Drawn, draw, week_of
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2
from tests.reasoning.indexed_splits import write_split


def _records(count: int) -> list[dict[str, str | None]]:
    answers = ["1+1=<<1+1=2>>2\n#### 2", "2\n#### 2", "Step 1: b\n#### 2", "#### 2"]
    return [{"question": f"{k}?", "answer": answers[k % 4], "cot": None} for k in range(count)]


@pytest.fixture
def root(tmp_path: Path, vocabulary_root: Path) -> Path:
    vocabulary = find(GPT2, vocabulary_root)
    for split, count in (("train", 24), ("test", 16)):
        jsonl = write_split(tmp_path, "gsm8k", split, _records(count), vocabulary)
        out = tmp_path / split
        align(jsonl, tmp_path / "tokenized", out, AlignConfig(vocabulary))
        target = tmp_path / "aligned" / "gsm8k" / f"{split}.align.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        (out / "gsm8k" / f"{split}.align.jsonl").rename(target)
    return tmp_path


def _draw(root: Path, week: str = "2026-W47", count: int = 5, corpus: str = "gsm8k") -> list[Drawn]:
    return draw(root / "tokenized", root / "aligned", root / "audits", corpus, week, count)


def test_weeks_are_those_of_iso() -> None:
    assert week_of(date(2026, 11, 22)) == "2026-W47"
    assert week_of(date(2027, 1, 1)) == "2026-W53"
    assert week_of(date(2026, 1, 5)) == "2026-W02"


def test_the_least_sure_examples_of_all_splits_come_first(root: Path) -> None:
    found = _draw(root, count=30)
    sure = [drawn.row.confidence for drawn in found]
    assert sure == [0.85] * 10 + [0.89] * 10 + [1.0] * 10  # those without steps are left out
    assert {drawn.row.example_id.split("_")[1] for drawn in found} == {"train", "test"}
    assert _draw(root, count=7) == found[:7]
    assert len(_draw(root, count=99)) == 30


def test_another_week_draws_others(root: Path) -> None:
    assert _draw(root) == _draw(root)
    assert {each.row.example_id for each in _draw(root)} != {
        each.row.example_id for each in _draw(root, "2026-W48")
    }


def test_what_has_an_audit_is_not_drawn_again(root: Path) -> None:
    first, second, third, *rest = _draw(root)
    for drawn, verdict, sha256 in (
        (first, "right", first.text_sha256),
        (second, "wrong", second.text_sha256),
        (third, "right", "another text"),
    ):
        split = drawn.row.example_id.split("_")[1]
        audit = Audit(drawn.row.example_id, sha256, verdict, "", "", "")
        audits.append(root / "audits" / f"gsm8k__{split}.jsonl", audit)
    assert _draw(root)[:3] == [third, *rest]


def test_a_corpus_that_is_not_aligned_has_no_sample(root: Path) -> None:
    assert _draw(root, corpus="wiqa") == []


def test_an_alignment_of_another_index_is_refused(root: Path) -> None:
    index = root / "tokenized/gsm8k/test/index.jsonl"
    lines = index.read_text().splitlines(keepends=True)
    for changed in (lines[1:], lines[:-1]):
        index.write_text("".join(changed))
        with pytest.raises(BadInput, match="is not in the index at this place"):
            _draw(root)
    assert json.loads(lines[0])["example_id"] == "gsm8k_test_000000"
