"""`[leaks] drop`: rows of training that hold a question of a set are left out of builds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import rows as read_rows
from gristmill.corpora.raw.forgotten import add
from gristmill.corpora.split_file import files
from gristmill.data_root import DataRoot
from gristmill.inbox.marks import FORGOTTEN
from gristmill.provenance import verify
from gristmill.provenance.find_artifacts import artifacts
from gristmill.publish.publish import publish
from gristmill.reasoning.builders import normalize
from gristmill.reasoning.builders.forget import renumbered, tombstones_of
from gristmill.reasoning.format import names
from gristmill.rebuilt import rebuilt
from gristmill.vocabularies.pinned import GPT2, find
from tests.json_lines import jsonl
from tests.leaks import plants
from tests.reasoning.builders.test_forget import build, raw_question, texts
from tests.reasoning.normalized_files import GSM8K
from tests.reasoning.published_root import build_of, built, put_vocabulary

NORMALIZED, TRAIN = "reasoning/normalized", "gsm8k__train"
QUESTIONS, OTHERS = plants.prose(11, 6), plants.prose(12, 40)


def _drop(root: Path, *sets: str) -> None:
    (root / "gristmill.toml").write_text(f"[leaks]\ndrop = {json.dumps(sets)}\n")


def _said(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*words, "--data-root", str(root)])
    return done.exit_code, done.stdout


def _listed(root: Path, key: str = TRAIN) -> list[tuple[str, int, str]]:
    path = root / names.NORMALIZED / names.rejected(key)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [(each["reason"], each["row"], each["rule"]) for each in found]


def _rows(questions: list[str]) -> list[dict[str, str]]:
    return [{"question": each, "answer": f"<<{n}+1={n + 1}>>"} for n, each in enumerate(questions)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Leaks at the rows 4 and 9 of train, and at the end of it."""
    held = [*OTHERS[:3], QUESTIONS[1], *OTHERS[3:7], f"He asked: {QUESTIONS[4]} Well?"]
    jsonl(
        tmp_path / "drops/reasoning/gsm8k/train.jsonl", _rows([*held, *OTHERS[7:20], QUESTIONS[0]])
    )
    jsonl(tmp_path / "drops/reasoning/gsm8k/test.jsonl", _rows(QUESTIONS))
    return tmp_path


def test_no_id_of_gsm8k_names_another_record_where_its_test_questions_are_left_out(
    tmp_path, vocabulary_root
):
    put_vocabulary(tmp_path, find(GPT2, vocabulary_root))
    drop, planted = tmp_path / "drops/reasoning/gsm8k", [7, 400, 401, 1003]
    rows = [json.loads(line) for line in (GSM8K / "train.jsonl").read_text().splitlines()[:1000]]
    test = [json.loads(line) for line in (GSM8K / "test.jsonl").read_text().splitlines()]
    for at in planted:
        rows.insert(at, {**test[at], "answer": rows[at - 1]["answer"]})
    jsonl(drop / "train.jsonl", rows)
    shutil.copyfile(GSM8K / "test.jsonl", drop / "test.jsonl")
    build(tmp_path)
    before = texts(tmp_path)
    _drop(tmp_path, "gsm8k__test")
    build(tmp_path)

    built(tmp_path, NORMALIZED, "gsm8k__test")
    status, said = _said(tmp_path, "leaks", TRAIN, "--against", "gsm8k__test")
    assert (status, said) == (0, "no question of gsm8k__test was found\n")
    listed = {row - 1: rule for reason, row, rule in _listed(tmp_path) if reason == "leak"}
    # Row 20 asks a question of the test with other numbers: docs/leaks.md#measured.
    assert [*listed] == [7, 21, 400, 401, 1003]
    whole = "holds a question of gsm8k__test: drops/reasoning/gsm8k/test.jsonl:{} (100%)"
    assert [listed[at] for at in planted] == [whole.format(at + 1) for at in planted]
    expected = {
        key: value for key, value in before.items() if int(key.rpartition("_")[2]) not in listed
    }
    assert texts(tmp_path) == expected and len(expected) == len(rows) - 5
    for number in (6, 8, 402, 1002):
        asked = raw_question(tmp_path, names.example_id("gsm8k", "train", number))
        assert asked == rows[number]["question"]
    assert verify(tmp_path) == []
    assert [each.violations or each.not_judged for each in rebuilt(artifacts(tmp_path))] == [""] * 6


def test_rows_that_stay_keep_their_numbers_and_nothing_else_is_made_again(root):
    plain = built(root, NORMALIZED, TRAIN)
    digest = build_of(root, NORMALIZED, TRAIN).recipe
    assert [item.path for item in plain.inputs] == ["drops/reasoning/gsm8k/train.jsonl"]
    mine = root / "drops/evals/mine/a.jsonl"
    jsonl(mine, _rows(OTHERS[5:6]))
    _drop(root)
    assert build_of(root, NORMALIZED, TRAIN).recipe == digest

    _drop(root, "gsm8k__test", "mine", "mine")
    record = built(root, NORMALIZED, TRAIN)
    assert record.counts["left_out_by/leak"] == 4 and record.counts["records"] == 19
    text = root / "reasoning/raw/gsm8k/train.jsonl"
    found = [json.loads(line)["question"] for line in text.read_text().splitlines()]
    assert found == [*OTHERS[:5], *OTHERS[6:20]]
    numbers = np.load(text.with_suffix(".numbers.npy")).tolist()
    assert numbers == [n for n in range(22) if n not in (3, 6, 8)]  # the last one leaves no gap
    assert [row for _, row, _ in _listed(root)] == [4, 7, 9, 23]
    assert verify(root) == []

    # Forgotten rows beside them change no other number, in whatever order both came.
    drop = root / "drops/reasoning/gsm8k"
    lake = DataRoot(root)
    with pytest.raises(GristmillError, match="leaves rows out of it: take it out of gristmill"):
        renumbered(lake, "gsm8k", drop, keeps=True)
    named = [("train.jsonl", 2), ("train.jsonl", 11)]
    add(drop, tombstones_of(lake, "gsm8k", named, "asked"), CORPORA["gsm8k"].splits)
    built(root, NORMALIZED, TRAIN)
    numbers = np.load(text.with_suffix(".numbers.npy")).tolist()
    assert numbers == [n for n in range(22) if n not in (1, 3, 6, 8, 10)]
    (drop / FORGOTTEN).unlink()
    assert built(root, NORMALIZED, TRAIN).data_version == record.data_version

    # A split that is a set, and any asset that takes no setting, know nothing of it.
    test = built(root, NORMALIZED, "gsm8k__test")
    assert (test.counts["records"], test.config["leaks"], len(test.inputs)) == (6, "", 1)
    jsonl(mine, _rows([OTHERS[5], OTHERS[0]]))
    assert not publish(build_of(root, NORMALIZED, "gsm8k__test")).rebuilt
    again = publish(build_of(root, NORMALIZED, TRAIN))
    assert again.rebuilt and again.record.counts["left_out_by/leak"] == 5
    assert not publish(build_of(root, NORMALIZED, TRAIN)).rebuilt
    recipe = 'schema = 1\nquestion = "question"\nanswer = "answer"\n'
    mine.with_name("corpus.toml").write_text(recipe)
    (why,) = build_of(root, NORMALIZED, TRAIN).changes(again.record)
    assert why.startswith("config changed (leaks")


def test_what_is_built_again_for_its_bytes_leaves_out_what_its_record_says(root):
    _drop(root, "gsm8k__test")
    built(root, NORMALIZED, TRAIN)
    (root / "gristmill.toml").unlink()
    assert [(each.violations, each.not_judged) for each in rebuilt(artifacts(root))] == [([], "")]


@pytest.mark.parametrize("workers", [1, 2])
def test_pieces_and_parts_leave_out_the_same_rows(tmp_path, monkeypatch, workers):
    recipe = 'schema = 1\nquestion = "question"\nanswer = "answer"\n'
    planted = [
        text for n, text in enumerate(OTHERS) for text in (text, QUESTIONS[n % 6])[: 1 + n % 2]
    ]
    made = []
    for name in ("whole", "parted"):
        root = tmp_path / name
        drop = root / "drops/reasoning/own"
        jsonl(drop / "train.jsonl", _rows(planted))
        jsonl(root / "drops/reasoning/gsm8k/test.jsonl", _rows(QUESTIONS))
        (drop / "corpus.toml").write_text(recipe + "part_bytes = 3000\n" * (name == "parted"))
        _drop(root, "gsm8k__test")
        if name == "parted":
            monkeypatch.setenv("GRISTMILL_PARTS_SECONDS", "0")
            monkeypatch.setattr(read_rows, "_PIECE_BYTES", 2000)
            monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
            if workers == 1:  # it is killed once, and continues
                _killed(root, monkeypatch)
        built(root, NORMALIZED, "own__train", workers=workers)
        several = files(root / "reasoning/raw/own/train.jsonl")
        assert len(several) == (1 if name == "whole" else 4)
        joined = b"".join(path.read_bytes() for path in several)
        numbers = np.load(root / "reasoning/raw/own/train.numbers.npy").tolist()
        origins = (root / "reasoning/raw/origins/own__train.npy").read_bytes()
        made.append((joined, numbers, origins, _listed(root, "own__train")))
        assert verify(root) == []
    assert made[0] == made[1] and len(made[0][3]) == 20
    assert made[0][1] == [n for n, text in enumerate(planted) if text not in QUESTIONS]


def _killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, read_piece = [0], normalize._read_piece

    def killed(task: Any) -> Any:
        made[0] += 1
        if made[0] == 3:
            raise KeyboardInterrupt
        return read_piece(task)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(normalize, "_read_piece", killed)
        built(root, NORMALIZED, "own__train")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gsm8k__tets", r'\[leaks\] drop: no evaluation set is "gsm8k__tets": did you mean '
         r"gsm8k__test\?; the sets are gsm8k__test, mine: correct the name, or put the questions "
         r"into drops/evals/gsm8k__tets/"),
        ("../evals/mine", r'no evaluation set is "../evals/mine"'),
        ("wiqa__test", 'no evaluation set is "wiqa__test"'),
        ("gsm8k__validation", "the set cannot be read: .* has no file of the split validation"),
        ("mine", "mine: .*holds no question"),
    ],
)  # fmt: skip
def test_a_set_that_is_not_there_is_refused_in_words(root, name, said):
    (root / "drops/evals/mine").mkdir(parents=True)
    (root / "drops/evals/mine/a.txt").write_text("\n")
    _drop(root, name)
    with pytest.raises(GristmillError, match=said):
        built(root, NORMALIZED, TRAIN)
    built(root, NORMALIZED, "gsm8k__test")


def test_a_split_of_questions_alone_is_refused_and_a_damaged_set_named(root):
    test = root / "drops/reasoning/gsm8k/test.jsonl"
    shutil.copyfile(test, test.with_name("train.jsonl"))
    _drop(root, "gsm8k__test")
    with pytest.raises(BadInput, match=r"no record of the split is left \(6 leak\)"):
        built(root, NORMALIZED, TRAIN)
    test.write_text("{")
    with pytest.raises(BadInput, match=r"test.jsonl:1: "):
        built(root, NORMALIZED, TRAIN)


def test_conversations_of_train_are_left_out_and_those_of_validation_stay(root):
    drop = root / "drops/chat/talk"
    talks = [[f"tell {n}: {text}", "Yes,\nof course."] for n, text in enumerate(OTHERS)]
    talks[7][1] = QUESTIONS[2].replace(" ", "\n")
    talks[8][0] = f"As a friend asks: {QUESTIONS[3]} Can you say?"
    jsonl(drop / "train.jsonl", [{"m": _turns(each)} for each in talks])
    jsonl(drop / "validation.jsonl", [{"m": _turns(talks[8])}])
    (drop / "corpus.toml").write_text('schema = 1\nkind = "chat"\nmessages = "m"\n')
    plain = built(root, "chat/conversations", "talk__00")
    whole = pq.read_table(root / "chat/conversations/talk__00/shard_00.parquet").to_pylist()
    _drop(root, "gsm8k__test")
    record = built(root, "chat/conversations", "talk__00")
    assert record.counts["left_out_by/leak"] == 2
    assert record.counts["messages"] == plain.counts["messages"] - 4
    found = pq.read_table(root / "chat/conversations/talk__00/shard_00.parquet").to_pylist()
    assert found == [each for n, each in enumerate(whole) if n not in (7, 8)]
    said = (root / "chat/conversations/talk__00/rejected.jsonl").read_text()
    assert [json.loads(line)["row"] for line in said.splitlines()] == [8, 9]
    assert verify(root) == []
    assert [each.not_judged for each in rebuilt(artifacts(root / "chat"))] == [""]
    built(root, NORMALIZED, "gsm8k__test")
    assert _said(root, "leaks", "talk__00")[0] == 1  # validation holds one
    (drop / "validation.jsonl").unlink()
    built(root, "chat/conversations", "talk__00")
    assert _said(root, "leaks", "talk__00") == (0, "no question of gsm8k__test was found\n")


def _turns(said: list[str]) -> list[dict[str, str]]:
    return [
        {"role": role, "content": each}
        for role, each in zip(("user", "assistant"), said, strict=True)
    ]
