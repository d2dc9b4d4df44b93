"""Which split a file of a drop belongs to, and which drops are refused.

Places of the corpora, and which files of a repository become a drop.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA, corpus_of_table
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.drops import Place, account, name_notes
from gristmill.inbox.hub import HubError, Reached
from gristmill.untrusted.files import LinkRule
from tests.hub_server import COMMIT, CONVERTED, Hub, server
from tests.refusal import refusal

GSM8K, TRIP, WIQA = CORPORA["gsm8k"], CORPORA["trip"], CORPORA["wiqa"]


def _drop(root: Path, corpus: str, *names: str) -> Path:
    drop = root / corpus
    drop.mkdir(parents=True)
    for name in names:
        (drop / name).parent.mkdir(parents=True, exist_ok=True)
        (drop / name).touch()
    return drop


def _taken(root: Path, corpus: str, *names: str) -> Mapping[str, object]:
    return drops.account(_drop(root, corpus, *names)).taken


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
def test_the_words_of_a_name(name, words):
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
def test_the_split_that_a_name_names(corpus, name, split):
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
def test_the_kind_of_a_file(name, found):
    assert drops.kind(name) == found


def test_files_are_sorted_by_split_and_name(tmp_path):
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


def test_the_first_split_has_files_without_one_and_dots_move_none_to_training(tmp_path):
    drop = _drop(tmp_path, "wiqa", "wiqa_hf_flat_1.jsonl", "a.jsonl")
    assert drops.splits_of(drop) == ["train"]
    assert len(drops.split_files(drop, WIQA, "train")) == 2
    assert drops.split_files(drop, WIQA, "test") == []
    (drop / "test.jsonl").touch()
    with pytest.raises(BadInput, match=r"a\.jsonl: its name names no split, while test\.jsonl"):
        drops.splits(drop, WIQA)
    drop = _drop(tmp_path, "gsm8k", "gsm8k.test.jsonl", "gsm8k.train.jsonl")
    assert drops.split_files(drop, GSM8K, "train") == [drop / "gsm8k.train.jsonl"]
    assert drops.split_files(drop, GSM8K, "test") == [drop / "gsm8k.test.jsonl"]
    versions = _drop(tmp_path / "versions", "gsm8k", "gsm8k-v1.1-test.jsonl")
    assert drops.splits_of(versions) == ["test"]


@pytest.mark.parametrize(
    ("corpus", "names", "reason"),
    [
        (
            "gsm9k",
            ["train.jsonl"],
            "is no built-in corpus .*: write a file corpus.toml .* schema = 1, name = .gsm9k",
        ),
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
        (
            "gsm8k",
            ["train.jsonl", "test/data.jsonl", "extended/train-0.jsonl"],
            r"gsm8k: holds data files in itself and in the subfolders extended/, test/, which are "
            r"not read .* hide their folder \(\.name/\)$",
        ),
        ("gsm8k", ["train.jsonl", "test/data.jsonl"], "in itself and in the subfolders test/,"),
        (
            "gsm8k",
            ["main/train-0.parquet", "socratic/train-0.parquet"],
            r"subfolders main/, socratic/, .*: bring one of them, as `gristmill drop \.\.\./main/ "
            "--family reasoning --name gsm8k --replace`",
        ),
        (
            "openr1_math_220k",
            ["all/default-0.parquet", "data/train-0.parquet", "extended/train-0.parquet"],
            r"subfolders all/, data/, extended/, .* `gristmill drop \.\.\./data/ --family",
        ),
        ("gsm8k", ["a/train/0.csv", "b/test/0.csv"], r"a/train/, b/test/, .* drop \.\.\./a/train/"),
        ("gsm8k", ["train/0.csv", "dev/0.csv"], "the split validation; gsm8k has train, test"),
        ("gsm8k", ["train/test.csv"], "train/test.csv: its name names the splits train and test"),
        ("wiqa", ["eval/0.csv"], "eval/0.csv: its name has eval, which says no split"),
        (
            "gsm8k",
            ["data/train.csv", "data/b.csv"],
            "b.csv: its name names no split, while data/tr",
        ),
        (
            "gsm8k",
            ["a/train.csv", "a/train.json"],
            "has the name of a/train.csv but for the ending",
        ),
        (
            "gsm8k",
            ["train.jsonl", "train_socratic.jsonl", "test.jsonl"],
            r"/train_socratic\.jsonl: is another configuration of gsm8k than train\.jsonl, with "
            "the same questions, which would count twice: take the files of one of them out",
        ),
        ("gsm8k", ["Socratic.json", "main.json"], r"Socratic\.json: is another .* than main\.json"),
        (
            "openr1_math_220k",
            ["openr1_all-0.parquet", "openr1_default-0.parquet"],
            "openr1_all-0.parquet: is another configuration",
        ),
        (
            "reasoning_traces",
            ["MetaMathQA-395K.json", "MetaMathQA-40K.json"],
            "MetaMathQA-40K.json: is another configuration",
        ),
        (
            "reasoning_traces",
            ["MetaMath395k.json", "MetaMath40k.json"],
            "MetaMath40k.json: is another configuration",
        ),
    ],
)
def test_a_drop_that_cannot_be_built_says_why(tmp_path, corpus, names, reason):
    with pytest.raises(BadInput, match=reason):
        _taken(tmp_path, corpus, *names)


def test_a_good_drop_is_not_refused_and_one_that_is_gone_has_no_splits(tmp_path):
    drops.account(_drop(tmp_path, "gsm8k", "train.jsonl", "train.txt"))
    drops.account(_drop(tmp_path / "2", "gsm8k", "train-1.json", "train-2.json.gz"))
    (tmp_path := tmp_path / "next").mkdir()
    assert drops.splits(tmp_path / "gsm8k", GSM8K) == {}


def test_links_and_pipes_are_refused(tmp_path):
    drop = _drop(tmp_path, "gsm8k", "train.jsonl")
    (drop / "test.jsonl").symlink_to(drop / "train.jsonl")
    with pytest.raises(BadInput, match="is a link"):
        drops.account(drop)
    (drop / "test.jsonl").unlink()
    os.mkfifo(drop / "test.json")
    with pytest.raises(BadInput, match="is a pipe"):
        drops.account(drop)


def test_every_file_of_a_drop_has_an_account(tmp_path):
    hidden = (".source.json", ".cache/huggingface/x.json", ".gitattributes", ".done", "._test.json")
    drop = _drop(
        tmp_path,
        "gsm8k",
        *("train.jsonl", "test.CSV", "README.md", "pictures/a.png", "dataset_infos.json"),
        *("train.parquet.gz", "SHA256SUMS", "gristmill.toml", *hidden),
    )
    found = drops.account(drop)
    assert found.taken == {"train": ["train.jsonl"], "test": ["test.CSV"]}
    assert found.left_out == dict.fromkeys(
        ["README.md", "dataset_infos.json", "pictures/a.png", "train.parquet.gz"], "no data file"
    )


@pytest.mark.parametrize(
    ("corpus", "names", "taken"),
    [
        (
            "gsm8k",
            ["main/train-0.parquet", "main/test-0.parquet"],
            {"train": ["main/train-0.parquet"], "test": ["main/test-0.parquet"]},
        ),
        ("cot_collection", ["data/CoT_en.json"], {"train": ["data/CoT_en.json"]}),
        ("gsm8k", ["a/b/c.jsonl"], {"train": ["a/b/c.jsonl"]}),
        ("gsm8k", ["test/data.jsonl"], {"test": ["test/data.jsonl"]}),
        (
            "wiqa",
            ["default/validation/0000.parquet", "default/test/0000.parquet"],
            {
                "validation": ["default/validation/0000.parquet"],
                "test": ["default/test/0000.parquet"],
            },
        ),
        (
            "reveal",
            ["open/reveal_open.csv", "eval/reveal_eval.csv"],
            {"validation": ["open/reveal_open.csv"], "test": ["eval/reveal_eval.csv"]},
        ),
        ("gsm8k", ["train_b/0.csv", "train/1.csv"], {"train": ["train/1.csv", "train_b/0.csv"]}),
    ],
)
def test_data_files_in_one_folder_or_in_one_for_each_split_are_read(tmp_path, corpus, names, taken):
    assert _taken(tmp_path, corpus, *names) == taken
    assert list(_taken(tmp_path / "2", corpus, *reversed(names))) == list(taken)


def test_one_configuration_alone_is_read(tmp_path):
    names = ["test_socratic.jsonl", "train_socratic.jsonl"]
    assert _taken(tmp_path / "1", "gsm8k", *names) == {"train": names[1:], "test": names[:1]}
    apart = {"train": ["train.jsonl"], "test": ["test_socratic.jsonl"]}
    assert _taken(tmp_path / "2", "gsm8k", "train.jsonl", "test_socratic.jsonl") == apart
    released = ["default-00000-of-00010.parquet", "extended-00000-of-00010.parquet"]
    assert _taken(tmp_path / "3", "openr1_math_220k", *released) == {"train": released}
    inner = [f"all/{name}" for name in released]
    assert _taken(tmp_path / "4", "openr1_math_220k", *inner) == {"train": inner}
    words = ["default-0.parquet", "overall-0.parquet"]
    assert _taken(tmp_path / "5", "openr1_math_220k", *words) == {"train": words}


def test_two_files_of_one_split_with_equal_bytes_are_refused(tmp_path):
    drop = _drop(tmp_path, "gsm8k", "train-0.jsonl", "train-1.jsonl", "test.jsonl")
    assert refusal(drops.account, drop) is None  # empty files hold no record twice
    for name in ("train-0.jsonl", "test.jsonl"):
        (drop / name).write_text('{"question": "a", "answer": "1"}\n')
    assert refusal(drops.account, drop) is None
    (drop / "train-1.jsonl").write_text('{"question": "b", "answer": "1"}\n')
    assert refusal(drops.account, drop) is None
    (drop / "train-1.jsonl").write_bytes((drop / "train-0.jsonl").read_bytes())
    assert refusal(drops.account, drop) == (
        f"{drop}/train-1.jsonl: has the bytes of train-0.jsonl: its records would count twice: "
        "take one of them out"
    )


def test_two_splits_with_equal_bytes_are_a_note_of_the_account(tmp_path):
    drop = _drop(tmp_path, "gsm8k", "train-0.jsonl", "train-1.jsonl", "test.jsonl")
    for name in ("train-1.jsonl", "test.jsonl"):
        (drop / name).write_text('{"question": "a", "answer": "1"}\n')
    note = "train-1.jsonl has the bytes of test.jsonl: two splits have the same records"
    assert drops.account(drop).notes == [note]
    (drop / "test.jsonl").write_text('{"question": "b", "answer": "1"}\n')
    assert drops.account(drop).notes == []


def test_the_tree_of_a_hub_cache_is_refused_or_read_as_links_are_allowed(tmp_path):
    drop, blobs = _drop(tmp_path, "gsm8k", "refs/x"), tmp_path / "blobs"
    folder = drop / "snapshots/abc/main"
    folder.mkdir(parents=True)
    blobs.mkdir()
    for name in ("train.parquet", "test.parquet"):
        (blobs / name[:2]).touch()
        (folder / name).symlink_to(blobs / name[:2])
    refused = str(refusal(drops.account, drop))
    assert "main/test.parquet: is a link" in refused or "main/train.parquet: is a link" in refused
    assert "allow links with [inbox] follow_links in gristmill.toml" in refused
    found = drops.account(drop, LinkRule(True, (str(blobs),)))
    assert found.taken == {
        "train": ["snapshots/abc/main/train.parquet"],
        "test": ["snapshots/abc/main/test.parquet"],
    }
    assert found.left_out == {"refs/x": "no data file"}


TWICE = "records may count twice"


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        (["train.jsonl", "train-1.jsonl", "copy.jsonl", "train_copyright.jsonl"], []),
        (["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"], []),
        (["train-00001-of-00001.parquet"], []),
        (
            ["data/train-00000-of-00003.parquet", "data/train-00002-of-00003.parquet"],
            ["2 of the 3 files data/train-*-of-00003.parquet are there: the rest is not read"],
        ),
        ([f"train-0000{n}-of-00002-{n}d5a1467fff1081b.parquet" for n in (0, 1)], []),
        (
            [f"train-00000-of-00001-{n}d5a1467fff1081b.parquet" for n in (0, 1)],
            [f"train-*-of-00001.parquet: parts of one number have other hashes: {TWICE}"],
        ),
        (
            ["train.jsonl", "train-00000-of-00001.jsonl"],
            ["train.jsonl is beside its parts train-*-of-00001.jsonl: records may count twice"],
        ),
        *(
            (["train.jsonl", copy], [f"{copy} is named as a copy of train.jsonl: {TWICE}"])
            for copy in ("train (1).jsonl", "train(2).jsonl", "train - Copy.jsonl")
        ),
    ],
)
def test_parts_that_are_not_there_and_copies_are_named(names, notes):
    assert list(name_notes(names)) == notes


def test_the_account_of_a_drop_has_them(tmp_path):
    (drop := tmp_path / "gsm8k").mkdir()
    (drop / "train-00001-of-00002.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    (note,) = drops.account(drop).notes
    assert note.startswith("1 of the 2 files train-*-of-00002.jsonl are there")


__all__ = ["server"]  # a fixture

GSM8K_HUB = CORPORA["gsm8k"]


def _reached(server: Hub, corpus: str = "gsm8k", repo: str = "openai/gsm8k") -> Reached:
    spec = CORPORA[corpus]
    return drops.reached(spec, Place("public", repo, spec.public_subset), server.address)


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_corpus_has_the_seed_s_path_and_a_public_one(corpus):
    spec = CORPORA[corpus]
    assert [(place.kind, place.repo) for place in drops.places(spec)] == [
        ("public", spec.public_path),
        ("seed", spec.hf_path),
    ]


@pytest.mark.parametrize(
    ("mirror", "place"),
    [
        ("me/gsm8k", Place("mirror", "me/gsm8k", "main")),
        (f"me/gs-m8.k@{COMMIT}", Place("mirror", "me/gs-m8.k", "main", COMMIT)),
        (
            "https://hub.example:8443/a/me/x@v1/b",
            Place("mirror", "me/x", "main", "v1/b", "https://hub.example:8443/a"),
        ),
        ("http://localhost/me/x", Place("mirror", "me/x", "main", "main", "http://localhost")),
    ],
)
def test_a_mirror_comes_first(mirror, place):
    assert drops.places(GSM8K_HUB, mirror)[0] == place


@pytest.mark.parametrize("mirror", ["", "gsm8k", "a/b/c", "https://x/y", "a b/c", "ftp://h/a/b"])
def test_a_mirror_of_another_form_is_refused(mirror):
    with pytest.raises(ValueError, match=r"gsm8k = .*: a mirror is owner/name"):
        drops.places(GSM8K_HUB, mirror)


def test_the_files_of_the_subset_are_reached(server):
    reached = _reached(server)
    assert [(file.path, name) for name, file in reached.files.items()] == [
        ("main/test.jsonl", "test.jsonl"),
        ("main/train.jsonl", "train.jsonl"),
    ]
    assert reached.source.revision == COMMIT
    assert reached.bytes == 3333


@pytest.mark.parametrize(
    ("corpus", "paths", "names"),
    [
        ("reveal", ["eval/a.csv", "open/a.csv"], ["eval-a.csv", "open-a.csv"]),
        ("openr1_math_220k", ["data/t-0.parquet", "all/t-0.parquet"], ["t-0.parquet"]),
        ("cot_collection", ["data/CoT_en.json", "x.json"], ["CoT_en.json"]),
        ("reasoning_traces", ["MetaMathQA-395K.json", ".gitattributes"], ["MetaMathQA-395K.json"]),
    ],
)
def test_folders_become_words_of_names(server, corpus, paths, names):
    server.repositories["o/r"] = dict.fromkeys(paths, b"{}\n")
    assert list(_reached(server, corpus, "o/r").files) == names


TREES: dict[str, tuple[str, ...]] = {
    "openai/gsm8k": (
        *(".gitattributes", "README.md"),
        *("main/test-00000-of-00001.parquet", "main/train-00000-of-00001.parquet"),
        *("socratic/test-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet"),
    ),
    "kaist-ai/CoT-Collection": (
        *(".gitattributes", "CoT-Collection.py", "README.md", "cot_collection.JPG"),
        "data/CoT_collection_en.json",
    ),
    "open-r1/OpenR1-Math-220k": (
        *(".gitattributes", "README.md"),
        *(f"all/default-{number:05}-of-00010.parquet" for number in range(10)),
        *(f"all/extended-{number:05}-of-00010.parquet" for number in range(10)),
        *(f"data/train-{number:05}-of-00010.parquet" for number in range(10)),
        *(f"extended/train-{number:05}-of-00010.parquet" for number in range(10)),
    ),
    "meta-math/MetaMathQA": (".gitattributes", "MetaMathQA-395K.json", "README.md"),
    "google/reveal": (
        *(".gitattributes", "README.md", "eval/reveal_eval.csv", "eval/reveal_eval.json"),
        *("open/reveal_open.csv", "open/reveal_open.json"),
    ),
    "sled-umich/TRIP": (
        *(".gitattributes", "README.md"),
        *(
            f"data/{kind}{split}-00000-of-00001-{digits}.parquet"
            for kind, digits in (("Cloze", "f3a1eb119472cfde"), ("Order", "9deada110facade5"))
            for split in ("Dev", "Test", "Train")
        ),
    ),
    "allenai/wiqa": (".gitattributes", "README.md", "dataset_infos.json", "wiqa.py"),
}
"""The trees of the public releases as their pages and cards show them; contents are made up."""
WIQA_HUB = [f"default/{split}/0000.parquet" for split in ("test", "train", "validation")]


def _serve_trees(server: Hub) -> None:
    for number, (repo, paths) in enumerate(TREES.items()):
        server.repositories[repo] = {path: f"{number} {path}\n".encode() for path in paths}
    server.converted["allenai/wiqa"] = {path: f"{path}\n".encode() for path in WIQA_HUB}


@pytest.mark.parametrize(
    ("corpus", "fetched", "left_out"),
    [
        (
            "gsm8k",
            {"train": ["train-00000-of-00001.parquet"], "test": ["test-00000-of-00001.parquet"]},
            dict.fromkeys(TREES["openai/gsm8k"][4:], "another configuration than main/"),
        ),
        ("cot_collection", {"train": ["CoT_collection_en.json"]}, {}),
        (
            "openr1_math_220k",
            {"train": [f"train-{number:05}-of-00010.parquet" for number in range(10)]},
            dict.fromkeys(
                [path for path in TREES["open-r1/OpenR1-Math-220k"] if path[:3] in ("all", "ext")],
                "another configuration than data/",
            ),
        ),
        ("reasoning_traces", {"train": ["MetaMathQA-395K.json"]}, {}),
        (
            "reveal",
            {"validation": ["open-reveal_open.csv"], "test": ["eval-reveal_eval.csv"]},
            {
                "eval/reveal_eval.json": "reveal_eval.csv holds the same in another format",
                "open/reveal_open.json": "reveal_open.csv holds the same in another format",
            },
        ),
        (
            "trip",
            {
                split: [
                    f"Cloze{word}-00000-of-00001-f3a1eb119472cfde.parquet",
                    f"Order{word}-00000-of-00001-9deada110facade5.parquet",
                ]
                for split, word in (("train", "Train"), ("validation", "Dev"), ("test", "Test"))
            },
            {},
        ),
        (
            "wiqa",
            {split: [f"default-{split}-0000.parquet"] for split in ("train", "validation", "test")},
            {},
        ),
    ],
)
def test_the_tree_of_each_release_becomes_a_drop(server, tmp_path, corpus, fetched, left_out):
    _serve_trees(server)
    reached = drops.reached(CORPORA[corpus], drops.places(CORPORA[corpus])[0], server.address)
    assert reached.left_out == left_out
    drops.fetch(tmp_path / corpus, reached)
    found = account(tmp_path / corpus)
    assert (found.taken, found.left_out) == (fetched, {})
    assert list(found.taken) == list(fetched)
    (line,) = reached.account.lines
    count = sum(map(len, fetched.values()))
    assert line.startswith(f"{count} file{'s' * (count > 1)} taken")
    assert ("left out" in line) == bool(left_out)


def test_a_repository_with_a_script_is_read_at_the_converted_branch(server, tmp_path):
    _serve_trees(server)
    reached = _reached(server, "wiqa", "allenai/wiqa")
    assert reached.source.revision == CONVERTED
    drops.fetch(tmp_path / "wiqa", reached)
    assert json.loads((tmp_path / "wiqa/.source.json").read_text())["revision"] == CONVERTED
    files = server.converted["allenai/wiqa"]
    files["default/partial-train/0000.parquet"] = files.pop(WIQA_HUB[1])
    with pytest.raises(
        HubError, match=r"partial-train/0000\.parquet: the hub converted only a par"
    ):
        _reached(server, "wiqa", "allenai/wiqa")
    files.clear()
    with pytest.raises(HubError, match=f"allenai/wiqa at {CONVERTED}: holds no data file"):
        _reached(server, "wiqa", "allenai/wiqa")
    mirror = drops.places(CORPORA["wiqa"], f"{server.address}/allenai/wiqa@{COMMIT}")[0]
    with pytest.raises(HubError, match=f"allenai/wiqa at {COMMIT}: holds no data file$"):
        drops.reached(CORPORA["wiqa"], mirror)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["a.json", "a.jsonl", "a.ndjson", "a.tsv", "a.csv", "a.parquet"], "a.parquet"),
        (["a.json", "a.jsonl", "a.tsv", "a.csv"], "a.csv"),
        (["a.csv.gz", "a.json"], "a.json"),
        (["a.json.xz", "a.jsonl.gz"], "a.jsonl.gz"),
        (["A.CSV", "A.json"], "A.CSV"),
    ],
)
def test_of_files_that_differ_in_their_endings_alone_one_is_fetched(server, names, taken):
    server.repositories["o/r"] = dict.fromkeys(names, b"{}\n")
    reached = _reached(server, repo="o/r")
    assert list(reached.files) == [taken]
    assert sorted(reached.left_out) == sorted(set(names) - {taken})


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (
            {"README.md": b"x"},
            "holds no data file, and refs/convert/parquet, where the hub puts Parquet files, "
            r"cannot be reached \(o/r at refs/convert/parquet: .*\): copy the files into the drop",
        ),
        ({"main/dev.jsonl": b"x"}, "names the split validation; gsm8k has train, test"),
        ({"a/b.json": b"x", "a-b.json": b"x"}, "two files would have one name"),
    ],
)
def test_a_repository_of_another_form_is_refused(server, files, reason):
    server.repositories["o/r"] = files
    with pytest.raises(HubError, match=f"o/r at {COMMIT}: .*{reason}"):
        _reached(server, repo="o/r")


def test_a_token_is_sent_to_no_hub_that_a_mirror_names(server):
    place = Place("public", "openai/gsm8k", "main")
    drops.reached(GSM8K_HUB, place, server.address, "secret")
    assert set(server.tokens) == {"Bearer secret"}
    server.tokens.clear()
    mirror = drops.places(GSM8K_HUB, f"{server.address}/openai/gsm8k")[0]
    reached = drops.reached(GSM8K_HUB, mirror, None, "secret")
    assert reached.source.token is False
    assert set(server.tokens) == {None}


def test_a_drop_with_files_of_another_source_is_refused(server, tmp_path):
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    (drop / "notes.txt").touch()
    (drop / "train-seed.jsonl").touch()
    with pytest.raises(HubError, match=r"holds train-seed\.jsonl, which openai/gsm8k does not"):
        drops.fetch(drop, _reached(server))
    (drop / "train-seed.jsonl").rename(drop / ".train-seed.jsonl")
    (drop / "main").mkdir()
    (drop / "main/train.jsonl").touch()
    with pytest.raises(HubError, match=r"holds main/train\.jsonl, which openai/gsm8k does not"):
        drops.fetch(drop, _reached(server))
    (drop / "main/train.jsonl").unlink()
    (drop / "test.jsonl").symlink_to(drop / "train.jsonl")
    with pytest.raises(HubError, match=r"test\.jsonl: is a link"):
        drops.fetch(drop, _reached(server))


def test_the_paths_of_a_corpus_of_a_drop_keep_their_folders_and_lead_nowhere_else(server):
    rows = b'{"question": "q", "answer": "a"}\n'
    paths = ("a/x.jsonl", "b/y.jsonl", "data/z.jsonl", "a/x.csv")
    server.repositories["o/r"] = dict.fromkeys(paths, rows)
    table = {"schema": 1, "name": "mine", "question": "question", "answer": "answer"}

    def names(**more: object) -> list[str]:
        corpus = corpus_of_table({**table, **more, "source": {"repo": "o/r", **source}})
        (place,) = drops.places(corpus)
        return list(drops.reached(corpus, place, server.address).files)

    source: dict[str, object] = {}
    assert names() == ["data/z.jsonl"]
    assert names(files={"train": ["a/*", "b/*", "z*"]}) == ["a/x.csv", "b/y.jsonl", "data/z.jsonl"]
    source = {"paths": ["b/*"]}
    assert names() == ["b/y.jsonl"]
    source = {"subset": "a"}
    assert names(files={"train": "*"}) == ["a/x.csv"]
    source = {"paths": ["c/*"]}
    with pytest.raises(HubError, match="holds no data file that is wanted"):
        names()
    server.repositories["o/r"] = {"a/../../x.jsonl": rows}
    source = {}
    with pytest.raises(HubError, match="is no name of a file"):
        names()
