"""Places of the corpora, and which files of a repository become a drop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.corpora.corpus import CORPORA, corpus_of_table
from gristmill.corpora.raw import hub
from gristmill.corpora.raw.drops import account
from gristmill.corpora.raw.hub import Place
from gristmill.inbox.hub import HubError, Reached
from tests.hub_server import COMMIT, CONVERTED, Hub, server

__all__ = ["server"]  # a fixture

GSM8K = CORPORA["gsm8k"]


def _reached(server: Hub, corpus: str = "gsm8k", repo: str = "openai/gsm8k") -> Reached:
    spec = CORPORA[corpus]
    return hub.reached(spec, Place("public", repo, spec.public_subset), server.address)


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_corpus_has_the_seed_s_path_and_a_public_one(corpus: str) -> None:
    spec = CORPORA[corpus]
    assert [(place.kind, place.repo) for place in hub.places(spec)] == [
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
def test_a_mirror_comes_first(mirror: str, place: Place) -> None:
    assert hub.places(GSM8K, mirror)[0] == place


@pytest.mark.parametrize("mirror", ["", "gsm8k", "a/b/c", "https://x/y", "a b/c", "ftp://h/a/b"])
def test_a_mirror_of_another_form_is_refused(mirror: str) -> None:
    with pytest.raises(ValueError, match=r"gsm8k = .*: a mirror is owner/name"):
        hub.places(GSM8K, mirror)


def test_the_files_of_the_subset_are_reached(server: Hub) -> None:
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
def test_folders_become_words_of_names(
    server: Hub, corpus: str, paths: list[str], names: list[str]
) -> None:
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
WIQA = [f"default/{split}/0000.parquet" for split in ("test", "train", "validation")]


def _serve_trees(server: Hub) -> None:
    for number, (repo, paths) in enumerate(TREES.items()):
        server.repositories[repo] = {path: f"{number} {path}\n".encode() for path in paths}
    server.converted["allenai/wiqa"] = {path: f"{path}\n".encode() for path in WIQA}


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
def test_the_tree_of_each_release_is_fetched_into_a_drop_that_is_taken(
    server: Hub,
    tmp_path: Path,
    corpus: str,
    fetched: dict[str, list[str]],
    left_out: dict[str, str],
) -> None:
    _serve_trees(server)
    reached = hub.reached(CORPORA[corpus], hub.places(CORPORA[corpus])[0], server.address)
    assert reached.left_out == left_out
    hub.fetch(tmp_path / corpus, reached)
    found = account(tmp_path / corpus)
    assert (found.taken, found.left_out) == (fetched, {})
    assert list(found.taken) == list(fetched)
    (line,) = reached.account.lines
    count = sum(map(len, fetched.values()))
    assert line.startswith(f"{count} file{'s' * (count > 1)} taken")
    assert ("left out" in line) == bool(left_out)


def test_a_repository_with_a_loading_script_is_read_at_the_branch_that_the_hub_converted(
    server: Hub, tmp_path: Path
) -> None:
    _serve_trees(server)
    reached = _reached(server, "wiqa", "allenai/wiqa")
    assert reached.source.revision == CONVERTED
    hub.fetch(tmp_path / "wiqa", reached)
    assert json.loads((tmp_path / "wiqa/.source.json").read_text())["revision"] == CONVERTED
    files = server.converted["allenai/wiqa"]
    files["default/partial-train/0000.parquet"] = files.pop(WIQA[1])
    with pytest.raises(
        HubError, match=r"partial-train/0000\.parquet: the hub converted only a par"
    ):
        _reached(server, "wiqa", "allenai/wiqa")
    files.clear()
    with pytest.raises(HubError, match=f"allenai/wiqa at {CONVERTED}: holds no data file"):
        _reached(server, "wiqa", "allenai/wiqa")
    mirror = hub.places(CORPORA["wiqa"], f"{server.address}/allenai/wiqa@{COMMIT}")[0]
    with pytest.raises(HubError, match=f"allenai/wiqa at {COMMIT}: holds no data file$"):
        hub.reached(CORPORA["wiqa"], mirror)


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
def test_of_files_that_differ_in_their_endings_alone_one_is_fetched(
    server: Hub, names: list[str], taken: str
) -> None:
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
def test_a_repository_of_another_form_is_refused(
    server: Hub, files: dict[str, bytes], reason: str
) -> None:
    server.repositories["o/r"] = files
    with pytest.raises(HubError, match=f"o/r at {COMMIT}: .*{reason}"):
        _reached(server, repo="o/r")


def test_a_token_is_sent_to_no_hub_that_a_mirror_names(server: Hub) -> None:
    place = Place("public", "openai/gsm8k", "main")
    hub.reached(GSM8K, place, server.address, "secret")
    assert set(server.tokens) == {"Bearer secret"}
    server.tokens.clear()
    mirror = hub.places(GSM8K, f"{server.address}/openai/gsm8k")[0]
    reached = hub.reached(GSM8K, mirror, None, "secret")
    assert reached.source.token is False
    assert set(server.tokens) == {None}


def test_a_drop_with_files_of_another_source_is_refused(server: Hub, tmp_path: Path) -> None:
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    (drop / "notes.txt").touch()
    (drop / "train-seed.jsonl").touch()
    with pytest.raises(HubError, match=r"holds train-seed\.jsonl, which openai/gsm8k does not"):
        hub.fetch(drop, _reached(server))
    (drop / "train-seed.jsonl").rename(drop / ".train-seed.jsonl")
    (drop / "main").mkdir()
    (drop / "main/train.jsonl").touch()
    with pytest.raises(HubError, match=r"holds main/train\.jsonl, which openai/gsm8k does not"):
        hub.fetch(drop, _reached(server))
    (drop / "main/train.jsonl").unlink()
    (drop / "test.jsonl").symlink_to(drop / "train.jsonl")
    with pytest.raises(HubError, match=r"test\.jsonl: is a link"):
        hub.fetch(drop, _reached(server))


def test_the_paths_of_a_corpus_of_a_drop_keep_their_folders_and_lead_nowhere_else(
    server: Hub,
) -> None:
    rows = b'{"question": "q", "answer": "a"}\n'
    paths = ("a/x.jsonl", "b/y.jsonl", "data/z.jsonl", "a/x.csv")
    server.repositories["o/r"] = dict.fromkeys(paths, rows)
    table = {"schema": 1, "name": "mine", "question": "question", "answer": "answer"}

    def names(**more: object) -> list[str]:
        corpus = corpus_of_table({**table, **more, "source": {"repo": "o/r", **source}})
        (place,) = hub.places(corpus)
        return list(hub.reached(corpus, place, server.address).files)

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
