"""Spans of arithmetic by the tokens of GPT-2 and of others, and their parts."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.builders.exports import calibration
from gristmill.reasoning.builders.spans import write_spans
from gristmill.reasoning.config import SpansConfig
from gristmill.reasoning.format import index, names
from gristmill.reasoning.render.annotations import rows_of
from gristmill.vocabularies.pinned import GPT2
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned
from tests.reasoning.normalized_files import write

PARTITION = "gsm8k__train"


@pytest.fixture(scope="module")
def gpt2(vocabulary_root: Path) -> Tokenizer:
    from gristmill.vocabularies.pinned import find

    return of_pinned(GPT2, find(GPT2, vocabulary_root))


def found(
    root: Path, answers: list[str], tokenizer: Tokenizer, **values: object
) -> list[dict[str, Any]]:
    """The rows of records with such answers; the raw rows count down, of two files."""
    write(root / names.normalized("gsm8k", "train"), [{"answer": each} for each in answers])
    path = root / names.origins(PARTITION)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    with index.OriginsWriter(path) as file:
        for number in range(len(answers)):
            file.write([number % 2, len(answers) - number])
    shutil.rmtree(root / "out", ignore_errors=True)
    config = SpansConfig(**values)  # type: ignore[arg-type]
    write_spans(root, PARTITION, root / "out", config, tokenizer)
    return [*rows_of(root / "out" / names.spans("gsm8k", "train"))]


@pytest.mark.parametrize(
    ("annotation", "pieces", "skipped"),
    [
        ("<<48/2=24>>", ["24"], ""),
        ("<<3*1234=3702>>", ["370", "2"], "multi_token_result"),
        ("<<2*5= 10 >>", [" 10", " >>"], "multi_token_result"),
    ],
)
def test_a_token_is_in_a_part_where_they_share_a_byte(annotation, pieces, skipped, gpt2, tmp_path):
    (row,) = found(tmp_path, [f"é 😀 = {annotation}5"], gpt2)
    text = f"\né 😀 = {annotation}5"
    ids = np.frombuffer(gpt2.encode([text]).ids[0], "<i4")
    of_row = {
        name: b"".join(gpt2.token_bytes[each] for each in ids[slice(*pair)]).decode()
        for name, pair in row["tokens"].items()
        if name in ("result", "inner_eq", "outer_eq")
    }
    assert of_row["result"] == "".join(pieces)
    assert (row["result_token_count"], row["skipped"]) == (len(pieces), skipped)
    assert gpt2.token_bytes[row["result_token_id"]].decode() == pieces[0]
    assert "=" in of_row["inner_eq"]
    assert "=" in of_row["outer_eq"]
    for name in ("whole", "expression", "result", "inner_eq", "outer_eq"):
        by_character = text[slice(*row["characters"][name])]
        assert text.encode()[slice(*row["bytes"][name])].decode() == by_character


def test_rows_name_the_raw_row_and_tokens_behind_those_that_are_read_are_skipped(gpt2, tmp_path):
    made = found(tmp_path, ["<<1+1=2>><<2+2=4>>", "none", "<<3+3=6>>"], gpt2)
    keys = ("trace_id", "example_id", "example_idx", "raw_file", "ann_idx")
    assert [tuple(each[key] for key in keys) for each in made] == [
        ("gsm8k_train_0_00002", "gsm8k_train_000000", 2, 0, 0),
        ("gsm8k_train_0_00002", "gsm8k_train_000000", 2, 0, 1),
        ("gsm8k_train_0_00000", "gsm8k_train_000002", 0, 0, 0),
    ]
    answers = ["<<1+1=2>> <<1+2=3>>"]
    one, other = found(tmp_path, answers, gpt2)
    most = one["tokens"]["result"][1]
    assert (one["skipped"], other["skipped"]) == ("", "")
    again = found(tmp_path, answers, gpt2, most_tokens=most)
    assert [each["skipped"] for each in again] == ["", "token_alignment"]


def test_thirty_rows_of_ten_traces_calibrate_with_nine(gpt2, tmp_path):
    made = found(tmp_path, ["<<1=1>><<2=2>><<3=3>>"] * 10, gpt2)
    parts = [each["part"] for each in made]
    assert (parts.count("calibration"), parts.count("evaluation")) == (9, 21)
    ids = sorted({each["trace_id"] for each in made})
    Random(20260303).shuffle(ids)
    chosen = {each["trace_id"] for each in made if each["part"] == "calibration"}
    assert chosen == {*ids[:3]}


@pytest.mark.parametrize(
    ("traces", "share", "count"), [(1, 0.3, 0), (2, 0.0, 1), (2, 1.0, 1), (5, 0.3, 2), (10, 1, 9)]
)
def test_one_trace_at_least_calibrates_and_one_is_left(traces, share, count):
    ids = [str(number) for number in range(traces)]
    assert len(calibration(ids, SpansConfig(calibration=float(share)))) == count


def test_a_tokenizer_without_places_is_refused(gpt2, tmp_path):
    from dataclasses import replace

    with pytest.raises(BadInput, match=r"no places of tokens.*it adds spaces.*name another"):
        found(tmp_path, ["<<1=1>>"], replace(gpt2, no_offsets="it adds spaces"))
