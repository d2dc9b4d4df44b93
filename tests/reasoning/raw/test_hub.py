"""Places of the corpora, and fetching from a local server that answers as a dataset hub does."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gristmill.inbox.hub import HubError
from gristmill.reasoning.format.corpora import CORPORA, corpus_of_table
from gristmill.reasoning.raw import hub
from gristmill.reasoning.raw.drops import account, splits_of
from gristmill.reasoning.raw.hub import Place

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONVERTED = "c0ffee89abcdef0123456789abcdef0123456789"
GSM8K = CORPORA["gsm8k"]


class Hub(ThreadingHTTPServer):
    """Repositories by name, each with its files at one commit; small ones have no sha256."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {
            "openai/gsm8k": {
                "README.md": b"# read me",
                "main/train.jsonl": b'{"question": "q", "answer": "a"}\n' * 100,
                "main/test.jsonl": b'{"question": "q", "answer": "b"}\n',
                "socratic/train.jsonl": b"{}\n",
            }
        }
        self.converted: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        self.tokens: list[str | None] = []
        self.broken = False
        self.gated: set[str] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers.get("Authorization"))
        api = re.fullmatch(
            r"/api/datasets/([\w-]+/[\w.-]+)(/tree)?(?:/revision)?(?:/([\w%]+))?(?:\?.*)?",
            self.path,
        )
        file = re.fullmatch(r"/datasets/([\w-]+/[\w.-]+)/resolve/(\w+)/(.+)", self.path)
        if api and api[1] in self.server.gated:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
        elif api and (found := self._files(api[1], api[3])):
            commit, files = found
            answer = self._tree(files) if api[2] else {"id": api[1], "sha": commit}
            self._send(200, json.dumps(answer).encode())
        elif file and (found := self._files(file[1], file[2])):
            self.server.requests.append(file[3])
            octets = found[1][file[3]]
            self._send(200, octets[::-1] if self.server.broken else octets)
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _files(self, repo: str, revision: str | None) -> tuple[str, dict[str, bytes]] | None:
        """The commit and the files of a repository at a revision."""
        if revision in (None, "main", COMMIT) and repo in self.server.repositories:
            return COMMIT, self.server.repositories[repo]
        if revision in ("refs%2Fconvert%2Fparquet", CONVERTED) and repo in self.server.converted:
            return CONVERTED, self.server.converted[repo]
        return None

    def _tree(self, files: dict[str, bytes]) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        for path, octets in files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(octets) + octets).hexdigest()
            entry = {"type": "file", "path": path, "oid": blob, "size": len(octets)}
            if len(octets) > 1000:
                digest = hashlib.sha256(octets).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(octets), "pointerSize": 133}
            entries.append(entry)
        return entries

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def corpora_server() -> Iterator[Hub]:
    with Hub() as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def _reached(server: Hub, corpus: str = "gsm8k", repo: str = "openai/gsm8k") -> hub.Reached:
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


def test_the_files_of_the_subset_are_reached(corpora_server: Hub) -> None:
    reached = _reached(corpora_server)
    assert [(file.path, name) for file, name in reached.files] == [
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
    corpora_server: Hub, corpus: str, paths: list[str], names: list[str]
) -> None:
    corpora_server.repositories["o/r"] = dict.fromkeys(paths, b"{}\n")
    assert [name for _, name in _reached(corpora_server, corpus, "o/r").files] == names


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
    corpora_server: Hub,
    tmp_path: Path,
    corpus: str,
    fetched: dict[str, list[str]],
    left_out: dict[str, str],
) -> None:
    _serve_trees(corpora_server)
    reached = hub.reached(CORPORA[corpus], hub.places(CORPORA[corpus])[0], corpora_server.address)
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
    corpora_server: Hub, tmp_path: Path
) -> None:
    _serve_trees(corpora_server)
    reached = _reached(corpora_server, "wiqa", "allenai/wiqa")
    assert reached.source.revision == CONVERTED
    hub.fetch(tmp_path / "wiqa", reached)
    assert json.loads((tmp_path / "wiqa/.source.json").read_text())["revision"] == CONVERTED
    files = corpora_server.converted["allenai/wiqa"]
    files["default/partial-train/0000.parquet"] = files.pop(WIQA[1])
    with pytest.raises(
        HubError, match=r"partial-train/0000\.parquet: the hub converted only a par"
    ):
        _reached(corpora_server, "wiqa", "allenai/wiqa")
    files.clear()
    with pytest.raises(HubError, match=f"allenai/wiqa at {CONVERTED}: holds no data file"):
        _reached(corpora_server, "wiqa", "allenai/wiqa")
    mirror = hub.places(CORPORA["wiqa"], f"{corpora_server.address}/allenai/wiqa@{COMMIT}")[0]
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
    corpora_server: Hub, names: list[str], taken: str
) -> None:
    corpora_server.repositories["o/r"] = dict.fromkeys(names, b"{}\n")
    reached = _reached(corpora_server, repo="o/r")
    assert [name for _, name in reached.files] == [taken]
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
    corpora_server: Hub, files: dict[str, bytes], reason: str
) -> None:
    corpora_server.repositories["o/r"] = files
    with pytest.raises(HubError, match=f"o/r at {COMMIT}: .*{reason}"):
        _reached(corpora_server, repo="o/r")


def test_a_missing_repository_and_a_missing_server_are_named(corpora_server: Hub) -> None:
    with pytest.raises(HubError, match="o/gone at main"):
        _reached(corpora_server, repo="o/gone")
    gone = corpora_server.address.replace(str(corpora_server.server_port), "9")
    with pytest.raises(HubError, match="openai/gsm8k at main"):
        hub.reached(GSM8K, Place("seed", "openai/gsm8k"), gone)


def test_a_token_is_sent_to_no_hub_that_a_mirror_names(corpora_server: Hub) -> None:
    place = Place("public", "openai/gsm8k", "main")
    hub.reached(GSM8K, place, corpora_server.address, "secret")
    assert set(corpora_server.tokens) == {"Bearer secret"}
    corpora_server.tokens.clear()
    mirror = hub.places(GSM8K, f"{corpora_server.address}/openai/gsm8k")[0]
    reached = hub.reached(GSM8K, mirror, None, "secret")
    assert reached.source.token is False
    assert set(corpora_server.tokens) == {None}


def test_files_are_fetched_checked_and_kept(corpora_server: Hub, tmp_path: Path) -> None:
    drop, reached = tmp_path / "gsm8k", _reached(corpora_server)
    fetched = hub.fetch(drop, reached)
    files = corpora_server.repositories["openai/gsm8k"]
    assert [path.name for path in fetched.files] == ["test.jsonl", "train.jsonl"]
    assert (drop / "train.jsonl").read_bytes() == files["main/train.jsonl"]
    assert (fetched.downloaded, fetched.bytes) == (2, 3333)
    assert splits_of(drop) == ["train", "test"]
    assert [path.name for path in tmp_path.iterdir()] == ["gsm8k"]
    described = json.loads((drop / ".source.json").read_text())
    assert (described["repository"], described["revision"]) == ("openai/gsm8k", COMMIT)
    assert described["files"]["test.jsonl"]["path"] == "main/test.jsonl"
    (drop / "test.jsonl").write_bytes(b"changed")
    corpora_server.requests.clear()
    again = hub.fetch(drop, reached)
    assert (again.downloaded, corpora_server.requests) == (1, ["main/test.jsonl"])
    assert (drop / "test.jsonl").read_bytes() == files["main/test.jsonl"]


def test_a_failed_fetch_leaves_no_drop_and_goes_on(corpora_server: Hub, tmp_path: Path) -> None:
    reached = _reached(corpora_server)
    corpora_server.broken = True
    with pytest.raises(HubError, match=r"main/test\.jsonl: blob .* the hub lists"):
        hub.fetch(tmp_path / "gsm8k", reached)
    assert [path.name for path in tmp_path.iterdir()] == [".fetch-gsm8k"]
    corpora_server.broken = False
    assert hub.fetch(tmp_path / "gsm8k", reached).downloaded == 2


def test_a_drop_with_files_of_another_source_is_refused(
    corpora_server: Hub, tmp_path: Path
) -> None:
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    (drop / "notes.txt").touch()
    (drop / "train-seed.jsonl").touch()
    with pytest.raises(HubError, match=r"holds train-seed\.jsonl, which openai/gsm8k does not"):
        hub.fetch(drop, _reached(corpora_server))
    (drop / "train-seed.jsonl").rename(drop / ".train-seed.jsonl")
    (drop / "main").mkdir()
    (drop / "main/train.jsonl").touch()
    with pytest.raises(HubError, match=r"holds main/train\.jsonl, which openai/gsm8k does not"):
        hub.fetch(drop, _reached(corpora_server))
    (drop / "main/train.jsonl").unlink()
    (drop / "test.jsonl").symlink_to(drop / "train.jsonl")
    with pytest.raises(HubError, match=r"test\.jsonl: is a link"):
        hub.fetch(drop, _reached(corpora_server))


def test_the_paths_of_a_corpus_of_a_drop_keep_their_folders_and_lead_nowhere_else(
    corpora_server: Hub,
) -> None:
    rows = b'{"question": "q", "answer": "a"}\n'
    paths = ("a/x.jsonl", "b/y.jsonl", "data/z.jsonl", "a/x.csv")
    corpora_server.repositories["o/r"] = dict.fromkeys(paths, rows)
    table = {"schema": 1, "name": "mine", "question": "question", "answer": "answer"}

    def names(**more: object) -> list[str]:
        corpus = corpus_of_table({**table, **more, "source": {"repo": "o/r", **source}})
        (place,) = hub.places(corpus)
        return [name for _, name in hub.reached(corpus, place, corpora_server.address).files]

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
    corpora_server.repositories["o/r"] = {"a/../../x.jsonl": rows}
    source = {}
    with pytest.raises(HubError, match="is no name of a file"):
        names()
