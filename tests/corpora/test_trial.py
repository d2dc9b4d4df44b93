"""Names of files say splits, and the globs of a recipe take the same files."""

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import corpus_of_table
from gristmill.corpora.raw.drops import assigned
from gristmill.corpora.trial import globs_of, splits_of

FOLDERS = {
    "one name": (["a-00000-of-00002.parquet", "a-00001-of-00002.parquet"], ["train"]),
    "words": (["train.jsonl", "dev.jsonl", "Test.csv"], ["train", "validation", "test"]),
    "capitals": (["ClozeTrain.json", "OrderDev.json"], ["train", "validation"]),
    "two of a word": (
        [f"{split}_{of}-0.parquet" for split in ("train", "test") for of in ("sft", "gen")],
        ["testgen", "testsft", "traingen", "trainsft"],
    ),
    "no word": (["cot-0.parquet", "tir-0.parquet", "tir-1.parquet"], ["cot", "tir"]),
    "one word": (["aqua_train.tsv", "ecqa_train.tsv"], ["train"]),
    "folders": (["main/train-0.parquet", "main/test-0.parquet"], ["train", "test"]),
    "dots": (["SFT/math/v1.1.jsonl", "SFT/code/v1.jsonl"], ["sftcodev1", "sftmathv1"]),
    "hashes": (
        [
            *(f"train-0000{n}-of-00002-{n}d5a1467fff1081b.parquet" for n in (0, 1)),
            "validation-00000-of-00001-869c898b519ad725.parquet",
        ],
        ["train", "validation"],
    ),
    "unique names": (
        [f"{n}f2b1f0e-1a2b-4c3d-8e9f-0123456789ab.parquet" for n in (5, 7)],
        ["train"],
    ),
    "words of eight letters": (["deadbeef.jsonl", "facade.jsonl"], ["deadbeef", "facade"]),
    "signs": (["a[1].jsonl", "b?.jsonl"], ["a", "b"]),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_names_say_splits_and_the_globs_take_the_same_files(case):
    names, splits = FOLDERS[case]
    found = splits_of(names)
    assert list(found) == splits
    assert sorted(name for taken in found.values() for name in taken) == sorted(names)
    files = globs_of(found)
    corpus = corpus_of_table({"name": "own", "files": files, "question": "a"})
    taken = assigned(sorted(names), corpus)
    assert taken == {split: sorted(found[split]) for split in found}


def test_parts_are_a_star_and_of_very_many_names_the_words_count():
    names = ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "test.jsonl"]
    assert globs_of(splits_of(names)) == {"train": ["train-*.jsonl"], "test": ["test.jsonl"]}
    assert globs_of(splits_of(["problems.jsonl"])) == {}
    assert globs_of(splits_of(["train.jsonl"])) == {"train": ["train.jsonl"]}
    assert globs_of(splits_of(["data-0.jsonl", "data-1.jsonl"])) == {"train": ["data-*.jsonl"]}
    assert globs_of(splits_of(["problems.jsonl"]), ["odd.json"]) == {"train": ["problems.jsonl"]}
    words = {"train": "train", "dev": "validation", "test": "test"}
    names = [f"{word}/{chr(97 + n)}x_{word}.csv" for word in words for n in range(20)]
    names += ["more/ax_eval.csv", "train/ax_test.csv", "extra.csv"]
    found = splits_of(names)
    assert {split: len(taken) for split, taken in found.items()} == {
        **dict.fromkeys(words.values(), 20),
        "other": 3,
    }


@pytest.mark.parametrize("name", ["eval", "my_evals", "evaluation", "dev_test"])
def test_a_file_alone_of_another_split_is_not_train(name):
    split = name.replace("_", "")
    assert globs_of(splits_of([f"{name}.jsonl"])) == {split: [f"{name}.jsonl"]}


def test_a_file_of_another_split_is_refused_and_many_names_are_one_split():
    names = ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    files = globs_of(splits_of(names))
    corpus = corpus_of_table({"name": "own", "files": files, "question": "a"})
    with pytest.raises(BadInput, match=r"test\.parquet: is in no split of `files`"):
        assigned(["test.parquet", *names], corpus)
    names = [f"{chr(97 + place % 26)}{chr(97 + place // 26)}x.jsonl" for place in range(600)]
    found = splits_of(names)
    assert (list(found), globs_of(found)) == (["train"], {"train": ["*"]})
