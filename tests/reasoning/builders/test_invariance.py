from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.reasoning.builders import invariance
from gristmill.reasoning.builders.invariance import GATED, REPORTED, Invariance, common, measure
from gristmill.vocabularies.encode import Encoder, encoder
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.indexed_splits import real_records
from tests.reasoning.normalized_files import write


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

    monkeypatch.setattr(invariance, "text_of", text_of)
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
    monkeypatch.setattr(invariance, "LONGEST", 100)
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
