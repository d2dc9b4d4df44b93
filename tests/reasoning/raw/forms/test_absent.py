"""Columns that a `corpus.toml` names and no row has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.builders.normalize import NormalizeSummary, normalize
from gristmill.reasoning.config import CorpusConfig
from gristmill.reasoning.raw.drops import corpus_of

ROW = {
    "problem": "q",
    "generated_solution": "<think>t</think>a",
    "answer": "a",
    "problem_source": "x",
}
HEAD = 'schema = 1\nname = "mine"\n'
PLAIN = HEAD + 'question = "problem"\nanswer = "answer"\n'


def built(folder: Path, text: str, rows: list[dict[str, Any]] | None = None) -> NormalizeSummary:
    """The summary of the split train of a drop with this `corpus.toml`."""
    drop = folder / "mine"
    drop.mkdir(parents=True, exist_ok=True)
    (drop / "corpus.toml").write_text(text)
    if rows is not None:
        (drop / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = CorpusConfig(corpus=corpus_of(drop).table)
    return normalize(drop, folder / "out", config, split="train")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            PLAIN + 'cot = { think = "generated_soluton" }',
            'cot: no row has a column "generated_soluton": did you mean "generated_solution"?',
        ),
        (
            PLAIN.replace("question", 'extras = ["origin"]\norigin = "problem_sorce"\nquestion'),
            'origin: no row has a column "problem_sorce": did you mean "problem_source"?',
        ),
        (PLAIN + 'keep = [{ column = "anwser", not_in = ["b"] }]', 'keep: .*mean "answer"'),
        (PLAIN + 'keep = [{ column = "anwser", in = ["a"] }]', 'keep: .*mean "answer"'),
        (PLAIN + 'dedup = ["problm"]', 'dedup: .*mean "problem"'),
        (PLAIN + 'split = { by = "problm", test = 0.1 }', 'split: .*mean "problem"'),
        (PLAIN + 'id = "problm.x"', 'id: .*mean "problem"'),
        (PLAIN + 'cot = { first = ["x1", "x2"] }', 'cot: .* "x1": name another one .*"answer", "g'),
        (HEAD + 'texts = "{problem}{anwser}"', 'texts: .*mean "answer"'),
        (
            HEAD + '[[form]]\nname = "two"\nquestion = "problem"\nanswer = "answer"\n'
            'cot = { template = "{thought} {answer}" }\nparts = { thought = "problm" }',
            'cot: no row has a column "problm"',
        ),
    ],
)
def test_a_column_that_no_row_has_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(BadInput, match=rule.replace("?", r"\?")) as error:
        built(tmp_path, text, [ROW] * 3)
    assert str(error.value).startswith(f"{tmp_path / 'mine' / 'corpus.toml'}: ")


def test_a_column_that_some_row_has_or_that_may_be_absent_is_taken(tmp_path: Path) -> None:
    text = PLAIN + (
        'id = "id"\nkeep = [{ column = "error", present = false }]\n'
        'cot = { first = ["answer", "more"] }\n'
    )
    assert built(tmp_path, text, [ROW, {**ROW, "id": "1"}]).records == 2
    forms = (
        HEAD + '[[form]]\nname = "one"\nwhen = ["other"]\nquestion = "other"\nanswer = "gone"\n'
        '[[form]]\nname = "two"\nunless = ["gone"]\nquestion = "problem"\nanswer = "answer"\n'
    )
    assert built(tmp_path / "forms", forms, [ROW]).records == 1


def test_columns_of_parquet_that_are_not_read_are_meant(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "mine" / "train.parquet")
    with pytest.raises(BadInput, match='did you mean "generated_solution"'):
        built(tmp_path, PLAIN + 'cot = { think = "generated_soluton" }')
