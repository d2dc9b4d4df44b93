"""Which split a file of a drop belongs to, and which drops are refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.raw import drops

GSM8K, TRIP, WIQA = CORPORA["gsm8k"], CORPORA["trip"], CORPORA["wiqa"]


def _drop(root: Path, corpus: str, *names: str) -> Path:
    drop = root / corpus
    drop.mkdir(parents=True)
    for name in names:
        (drop / name).touch()
    return drop


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train.jsonl", ["train"]),
        ("test-00000-of-00001.parquet", ["test", "00000", "of", "00001"]),
        ("ClozeDev.json", ["cloze", "dev"]),
        ("aqua_train.tsv", ["aqua", "train"]),
        ("GSM8K_Backward.jsonl", ["gsm", "8", "k", "backward"]),
        ("wiqa_hf_flat_1.jsonl", ["wiqa", "hf", "flat", "1"]),
        ("TRAIN2.CSV.GZ", ["train", "2"]),
        ("CoT_collection_en.json", ["co", "t", "collection", "en"]),
        ("contest.jsonl", ["contest"]),
        ("gsm8k.test.jsonl", ["gsm", "8", "k", "test"]),
        ("wiqa-v1.1-dev.JSON.xz", ["wiqa", "v", "1", "1", "dev"]),
        ("json.test.csv", ["json", "test"]),
    ],
)
def test_the_words_of_a_name(name: str, words: list[str]) -> None:
    assert drops.words(name) == words


@pytest.mark.parametrize(
    ("corpus", "name", "split"),
    [
        ("gsm8k", "train-00000-of-00001.parquet", ["train"]),
        ("gsm8k", "gsm8k_testing.csv", ["test"]),
        ("trip", "ClozeDev.json", ["validation"]),
        ("trip", "OrderTrain.json", ["train"]),
        ("wiqa", "valid.jsonl.zst", ["validation"]),
        ("wiqa", "development.tsv", ["validation"]),
        ("reveal", "reveal_eval.csv", ["test"]),
        ("reveal", "reveal_open.csv", ["validation"]),
        ("wiqa", "reveal_open.csv", []),
        ("gsm8k", "train_test.jsonl", ["train", "test"]),
        ("gsm8k", "contest.jsonl", []),
        ("gsm8k", "gsm8k.test.jsonl", ["test"]),
        ("gsm8k", "gsm8k-v1.1-train.parquet", ["train"]),
        ("gsm8k", "testset.json.gz", ["test"]),
        ("wiqa", "wiqa_devset.json", ["validation"]),
        ("gsm8k", "train.test.jsonl", ["train", "test"]),
    ],
)
def test_the_split_that_a_name_names(corpus: str, name: str, split: list[str]) -> None:
    assert drops.named_splits(name, CORPORA[corpus]) == split


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.jsonl", ("jsonl", "")),
        ("a.JSON.Gz", ("json", "gz")),
        ("a.parquet", ("parquet", "")),
        ("a.parquet.gz", None),
        ("a.txt", None),
        ("a.gz", None),
        (".train.jsonl", None),
        ("dataset_infos.json", None),
        ("jsonl", None),
        ("README.md", None),
    ],
)
def test_the_kind_of_a_file(name: str, found: tuple[str, str] | None) -> None:
    assert drops.kind(name) == found


def test_files_are_sorted_by_split_and_name(tmp_path: Path) -> None:
    drop = _drop(
        tmp_path,
        "trip",
        *("OrderTrain.json", "ClozeTrain.json", "ClozeTest.json", "ClozeDev.json", "README.md"),
    )
    (drop / "train").mkdir()
    found = drops.splits(drop, TRIP)
    assert {split: [path.name for path in paths] for split, paths in found.items()} == {
        "train": ["ClozeTrain.json", "OrderTrain.json"],
        "validation": ["ClozeDev.json"],
        "test": ["ClozeTest.json"],
    }
    assert drops.splits_of(drop) == ["train", "validation", "test"]
    assert drops.split_files(drop, TRIP, "test") == [drop / "ClozeTest.json"]
    with pytest.raises(ValueError, match="trip has no split 'dev': train, validation, test"):
        drops.split_files(drop, TRIP, "dev")


def test_files_without_a_split_are_of_the_first_one_where_no_other_names_one(
    tmp_path: Path,
) -> None:
    drop = _drop(tmp_path, "wiqa", "wiqa_hf_flat_1.jsonl", "a.jsonl")
    assert drops.splits_of(drop) == ["train"]
    assert len(drops.split_files(drop, WIQA, "train")) == 2
    assert drops.split_files(drop, WIQA, "test") == []
    (drop / "test.jsonl").touch()
    with pytest.raises(BadInput, match=r"a\.jsonl: its name names no split, while test\.jsonl"):
        drops.splits(drop, WIQA)


@pytest.mark.parametrize(
    ("corpus", "names", "reason"),
    [
        ("gsm9k", ["train.jsonl"], "name the folder one of gsm8k, cot_collection"),
        ("gsm8k", ["dev.jsonl"], "names the split validation; gsm8k has train, test"),
        ("gsm8k", ["train_test.jsonl"], "names the splits train and test"),
        ("gsm8k", [], "holds no data file"),
        ("gsm8k", ["notes.txt"], r"holds no data file.*\.jsonl.*\.tsv.*\.zst"),
        ("wiqa", ["a.jsonl", "train.jsonl"], "one of train, validation, test"),
        ("wiqa", ["wiqa_evalset.jsonl"], "its name has evalset, which says no split"),
        ("reveal", ["reveal.evals.csv"], "its name has evals, which says no split"),
        (
            "gsm8k",
            ["Evaluation.json"],
            "says no split: rename it so that it has one of train, test",
        ),
        ("wiqa", ["train.jsonl", "eval.jsonl"], "its name has eval, which says no split"),
    ],
)
def test_a_drop_that_cannot_be_built_says_why(
    tmp_path: Path, corpus: str, names: list[str], reason: str
) -> None:
    drop = _drop(tmp_path, corpus, *names)
    found = drops.refusal(drop)
    assert found is not None
    assert re.search(reason, found), found


def test_a_good_drop_is_not_refused(tmp_path: Path) -> None:
    assert drops.refusal(_drop(tmp_path, "gsm8k", "train.jsonl", "train.txt")) is None
    assert drops.refusal(_drop(tmp_path / "2", "gsm8k", "train-1.json", "train-2.json.gz")) is None


def test_dots_in_names_bring_no_record_of_a_test_split_to_training(tmp_path: Path) -> None:
    drop = _drop(tmp_path, "gsm8k", "gsm8k.test.jsonl", "gsm8k.train.jsonl")
    assert drops.split_files(drop, GSM8K, "train") == [drop / "gsm8k.train.jsonl"]
    assert drops.split_files(drop, GSM8K, "test") == [drop / "gsm8k.test.jsonl"]
    versions = _drop(tmp_path / "versions", "gsm8k", "gsm8k-v1.1-test.jsonl")
    assert drops.splits_of(versions) == ["test"]


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    drop = _drop(tmp_path, "gsm8k", "train.jsonl")
    (drop / "test.jsonl").symlink_to(drop / "train.jsonl")
    assert "is a link" in str(drops.refusal(drop))
    (drop / "test.jsonl").unlink()
    os.mkfifo(drop / "test.json")
    assert "is a pipe" in str(drops.refusal(drop))


def test_a_drop_that_is_gone_has_no_splits(tmp_path: Path) -> None:
    assert drops.splits(tmp_path / "gsm8k", GSM8K) == {}
