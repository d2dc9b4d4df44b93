"""Records keep their ids when rows are forgotten, erased, or left out by a newer drop."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gristmill.browse.source import Record
from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.forgotten import Tombstone, add
from gristmill.data_root import DataRoot
from gristmill.inbox.marks import FORGOTTEN
from gristmill.provenance.trace_inputs import NotTraced
from gristmill.reasoning import show
from gristmill.reasoning.builders import align
from gristmill.reasoning.builders.forget import _gone, renumbered, tombstones_of
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import Numbers, free_numbers
from gristmill.reasoning.format.published import NORMALIZED
from gristmill.reasoning.laws.quality import index_laws
from gristmill.reasoning.laws.shards import shard_laws
from gristmill.reasoning.read.trace import example_origins, record_origins
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.normalized_files import GSM8K
from tests.reasoning.published_root import CORPUS, PARTITION, SPLIT, built, put_vocabulary, worked

SPLITS = CORPORA[CORPUS].splits


def write_rows(root: Path, rows: list[dict[str, Any]]) -> Path:
    drop = root / "drops/reasoning" / CORPUS
    drop.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in rows]
    (drop / f"{SPLIT}.jsonl").write_text("".join(lines))
    return drop


def build(root: Path) -> None:
    built(root, "reasoning/normalized", PARTITION)
    built(root, "reasoning/gpt2_shards", PARTITION, seq_len=64, tokens_per_shard=512, world_size=3)
    built(root, "reasoning/alignment", PARTITION)
    built(root, "reasoning/spans", PARTITION, control_traces=5)


def lines(root: Path, path: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (root / path).read_bytes().splitlines())


def texts(root: Path) -> dict[str, list[str]]:
    """By id the text that index, alignment and spans give it, and its rank."""
    index = {
        row["example_id"]: [row["text_sha256"], str(row["rank"])]
        for row in lines(root, f"{names.TOKENIZED}/{CORPUS}/{SPLIT}/index.jsonl")
    }
    aligned = [
        row["example_id"] for row in lines(root, f"{names.ALIGNMENT}/{CORPUS}/{SPLIT}.align.jsonl")
    ]
    assert aligned == [*index]
    for row in lines(root, f"{names.SPANS}/{CORPUS}/{SPLIT}.spans.jsonl"):
        index[row["example_id"]].append(row["ann_text"])
    return index


def raw_question(root: Path, example: str) -> str:
    """The question of the raw row that the trace of an example leads to."""
    steps = [*example_origins(root / names.TOKENIZED, PARTITION, example)]
    facts = steps[-1].facts()
    raw = (root / str(facts["raw_file"])).read_bytes().splitlines()
    assert "raw_note" not in facts
    return str(json.loads(raw[int(str(facts["raw_row"])) - 1])["question"])


def tombstones(root: Path, numbers: list[int]) -> list[Tombstone]:
    named = {(f"{SPLIT}.jsonl", number + 1) for number in numbers}
    return tombstones_of(DataRoot(root), CORPUS, named, "asked")


def forget(root: Path, numbers: list[int]) -> None:
    made = tombstones(root, numbers)
    add(root / "drops/reasoning" / CORPUS, made, SPLITS)


def check_forgotten(root: Path, rows: list[dict[str, Any]], gone: list[int], some: int) -> None:
    """Forget records, then erase their rows: no id of another record, and equal bytes."""
    drop = write_rows(root, rows)
    build(root)
    before, jsonl = texts(root), root / names.NORMALIZED / names.normalized(CORPUS, SPLIT)
    assert not (root / names.NORMALIZED / names.numbers(CORPUS, SPLIT)).exists()
    ids = [names.example_id(CORPUS, SPLIT, number) for number in gone]
    expected = {key: value for key, value in before.items() if key not in ids}
    forget(root, gone)
    build(root)
    assert texts(root) == expected
    kept = [row for at, row in enumerate(rows) if at not in gone]
    files = sorted((root / names.NORMALIZED / CORPUS).iterdir())
    held = [path.read_bytes() for path in files]
    assert [path.name for path in files] == [f"{SPLIT}.jsonl", f"{SPLIT}.numbers.npy"]

    write_rows(root, kept)
    build(root)
    assert [path.read_bytes() for path in files] == held
    assert texts(root) == expected
    folders = root / names.NORMALIZED, root / names.TOKENIZED
    assert [*shard_laws(folders[1], PARTITION)] == []
    assert [*index_laws(root / names.ALIGNMENT, folders[1], PARTITION)] == []
    for example in random.Random(1).sample([*expected], some):
        number = int(example.rpartition("_")[2])
        assert raw_question(root, example) == rows[number]["question"]
        facts = [step.facts() for step in record_origins(folders[0], PARTITION, number)]
        assert (facts[0]["line"], facts[1]["raw_row"]) == (Numbers(jsonl).place(number) + 1,) * 2
    (table,) = show.tables(NORMALIZED, folders[0], None)  # type: ignore[arg-type]
    assert table.sample is not None and table.named is not None
    assert table.sample(Record(5, {}, b""))[0] == str(Numbers(jsonl).of(5))
    assert table.named(ids[0]) == ()
    assert [table.named(each) for each in expected] == [*range(len(expected))]
    with pytest.raises(BadInput, match="has no example"):
        raw_question(root, ids[0])
    with pytest.raises(NotTraced, match=f"has no record {gone[0]} any more"):
        [*record_origins(folders[0], PARTITION, gone[0])]
    assert (drop / FORGOTTEN).read_text().count(rows[gone[0]]["question"]) == 0


def test_so_many_numbers_stay_free_that_most_rows_keep_theirs():
    draw = random.Random(2)
    for most in (3, 50) * 200:
        old = [draw.randrange(most).to_bytes() for _ in range(draw.randrange(20))]
        new = [row for row in old if draw.random() < 0.7]
        gone = _gone(old, new)
        after = dict(zip(free_numbers(gone, len(new)).tolist(), new, strict=True))
        assert len(gone) == len(old) - len(new)
        assert {at: old[at] for at in after} == after
    for new, moved in (
        ("9012345", []),
        ("912045", []),
        ("901345", []),
        ("92345", [0]),
        ("0192", [3, 4, 5]),
    ):
        assert _gone([*b"012345"], [*new.encode()]) == moved, new  # type: ignore[list-item]


@pytest.fixture
def root(tmp_path: Path, vocabulary_root: Path) -> Path:
    put_vocabulary(tmp_path / "root", find(GPT2, vocabulary_root))
    return tmp_path / "root"


def test_no_id_names_another_record_once_rows_are_forgotten_and_erased(root, monkeypatch):
    monkeypatch.setattr(align, "_PART_BYTES", 2000)
    check_forgotten(root, worked(40), [3, 7, 8], 12)


@pytest.mark.slow
def test_no_id_of_gsm8k_names_another_record(root):
    rows = [*map(json.loads, (GSM8K / "train.jsonl").read_text().splitlines())]
    check_forgotten(root, rows, [16, 1234, 7000], 100)
    assert len(texts(root)) == len(rows) - 3 == 7470


def test_equal_rows_are_forgotten_together_and_each_keeps_its_number(root):
    rows = worked(6)
    rows[4] = dict(reversed(rows[1].items()))  # the order of its keys does not matter
    drop = write_rows(root, rows)
    built(root, "reasoning/normalized", PARTITION)
    forget(root, [4])
    assert [(each["row"], each["number"]) for each in lines(drop, FORGOTTEN)] == [(2, 1), (5, 4)]
    assert (root / ".gristmill/key").stat().st_mode & 0o777 == 0o600
    record = built(root, "reasoning/normalized", PARTITION)
    today = next(lines(drop, FORGOTTEN))["date"]
    assert record.counts[f"forgotten_by/{today}"] == 2
    jsonl = root / names.NORMALIZED / names.normalized(CORPUS, SPLIT)
    assert Numbers(jsonl).between(0, 4).tolist() == [0, 2, 3, 5]
    assert [each.number for each in tombstones(root, [5])] == [5]
    assert tombstones(root, [1, 6]) == []
    text = (drop / FORGOTTEN).read_text()
    (drop / FORGOTTEN).write_text(text.replace('"number":4', '"number":6'))
    with pytest.raises(BadInput, match=r"forgotten.jsonl:2: number 6 of train is out of range"):
        built(root, "reasoning/normalized", PARTITION)
    (drop / FORGOTTEN).write_text(text)
    write_rows(root, rows[1:])
    with pytest.raises(GristmillError, match=r"changed after .* was built: build it first"):
        tombstones(root, [5])
    shutil.rmtree(root / ".gristmill")
    with pytest.raises(BadInput, match=r"forgotten.jsonl:1: its hash is of another key"):
        built(root, "reasoning/normalized", PARTITION)


def test_forgotten_rows_behind_all_others_leave_no_gap(root):
    drop = write_rows(root, worked(4))
    numbers = root / names.NORMALIZED / names.numbers(CORPUS, SPLIT)
    for gone, has_gap in ((0, True), (3, False)):
        (drop / FORGOTTEN).unlink(missing_ok=True)
        built(root, "reasoning/normalized", PARTITION)
        forget(root, [gone])
        record = built(root, "reasoning/normalized", PARTITION)
        assert (record.counts["records"], record.counts["raw_rows"]) == (3, 3)
        assert numbers.exists() == has_gap


def test_a_new_version_of_a_drop_says_how_many_ids_move_or_keeps_them(root):
    rows = worked(30)
    drop = write_rows(root, rows)
    built(root, "reasoning/normalized", PARTITION)
    forget(root, [20])
    lake = DataRoot(root)
    assert tombstones(root, [20]) == []
    assert renumbered(lake, CORPUS, drop, keeps=True) == [
        f"{PARTITION}: 1 rows left, 0 of 30 ids name another record"
    ]
    assert [each["number"] for each in lines(drop, FORGOTTEN)] == [20]
    built(root, "reasoning/normalized", PARTITION)
    before = [*lines(root, f"{names.NORMALIZED}/{CORPUS}/{SPLIT}.jsonl")]
    staged = drop.with_name(f".{CORPUS}.copying")
    shutil.copytree(drop, staged)
    rows[12]["question"] = "Edited?"
    new = [row for at, row in enumerate(rows) if at not in (2, 3)]
    (staged / f"{SPLIT}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in new))
    said = renumbered(lake, CORPUS, staged, keeps=False)
    assert said == [
        f"{PARTITION}: 3 rows left, 25 of 29 ids name another record; --keep-numbers writes "
        "tombstones against it"
    ]
    said = renumbered(lake, CORPUS, staged, keeps=True)
    # That of the edited row.
    assert said == [f"{PARTITION}: 3 rows left, 1 of 29 ids name another record"]
    found = [(each["number"], each["hash"] is None) for each in lines(staged, FORGOTTEN)]
    assert found == [(2, True), (3, True), (20, False)]
    assert renumbered(lake, "other", staged, keeps=True) == []
    shutil.rmtree(drop)
    staged.rename(drop)
    built(root, "reasoning/normalized", PARTITION)
    numbers = Numbers(root / names.NORMALIZED / names.normalized(CORPUS, SPLIT))
    after = dict(enumerate([*lines(root, f"{names.NORMALIZED}/{CORPUS}/{SPLIT}.jsonl")]))
    by_number = {numbers.of(at): row["question"] for at, row in after.items()}
    old = {at + (at >= 20): row["question"] for at, row in enumerate(before)}
    assert by_number == {at: q for at, q in old.items() if at not in (2, 3)} | {12: "Edited?"}
    (drop / f"{SPLIT}.jsonl").write_text("")
    assert "ids are not compared: " in renumbered(lake, CORPUS, drop, keeps=False)[0]
    with pytest.raises(BadInput):
        renumbered(lake, CORPUS, drop, keeps=True)
