"""A dataset hub on this machine: repositories with commits, large files apart, as its API is.

Only what `huggingface_hub` asks for when it fetches, and when it publishes without Xet.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

TOKEN = "hf_test"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONVERTED = "c0ffee89abcdef0123456789abcdef0123456789"
LARGE = 1_000
"""Bytes from which a file is stored apart."""


@dataclass(frozen=True)
class Stored:
    """A file of a commit."""

    data: bytes
    is_large: bool

    def listed(self, path: str) -> dict[str, Any]:
        """As the API lists it."""
        size = len(self.data)
        blob = hashlib.sha1(b"blob %d\0" % size + self.data).hexdigest()
        entry = {"type": "file", "path": path, "size": size, "oid": blob}
        if not self.is_large:
            return entry
        sha256 = hashlib.sha256(self.data).hexdigest()
        return {**entry, "lfs": {"oid": sha256, "size": size, "pointerSize": 130}}


@dataclass
class Repository:
    """Commits of one branch, the oldest first, each with all its files."""

    private: bool
    commits: list[tuple[str, str, dict[str, Stored]]] = field(default_factory=list)

    def add(self, title: str, files: dict[str, Stored]) -> str:
        """Add a commit; its id."""
        commit = hashlib.sha1(f"{len(self.commits)} {title}".encode()).hexdigest()
        self.commits.append((commit, title, files))
        return commit

    @property
    def files(self) -> dict[str, bytes]:
        """Contents of the newest commit."""
        return {path: stored.data for path, stored in self.commits[-1][2].items()}

    @property
    def titles(self) -> list[str]:
        """Of all commits but the first, which is empty."""
        return [title for _, title, _ in self.commits[1:]]


class Hub(ThreadingHTTPServer):
    """Repositories by name: with commits, or files at COMMIT that are only fetched.

    converted: files at the branch of Parquet files.
    requests: path and Range header of every GET of a file. tokens: of every GET and HEAD.
    cut_after: number of bytes after which the next answers end, one entry for each.
    broken: paths that are sent as zeros.
    gated: repositories that want a token.
    answer: what is sent to every GET; None (default) for what was asked.
    objects: large files by sha256. uploads: bytes of every upload of one.
    before_upload, after_upload, before_commit, after_commit: called at these moments; each may
        raise ConnectionError.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Any] = {}
        self.converted: dict[str, dict[str, bytes]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.tokens: list[str | None] = []
        self.cut_after: list[int] = []
        self.broken: set[str] = set()
        self.gated: set[str] = set()
        self.answer: bytes | None = None
        self.objects: dict[str, bytes] = {}
        self.uploads: list[int] = []
        self.before_upload: Callable[[], None] = lambda: None
        self.after_upload: Callable[[], None] = lambda: None
        self.before_commit: Callable[[Repository], None] = lambda _: None
        self.after_commit: Callable[[Repository], None] = lambda _: None
        self.ignored: set[str] = set()

    @property
    def address(self) -> str:
        """Of the API."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """Say nothing of connections that a test cuts."""


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        hub, path = self.server, unquote(self.path.partition("?")[0])
        hub.tokens.append(self.headers.get("Authorization"))
        api = re.fullmatch(
            r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree)/(refs/convert/parquet|[^/]+)(/.*)?)?",
            path,
        )
        file = re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if hub.answer is not None:
            return self._send(200, hub.answer, {"Content-Type": "application/json"})
        if api and api[1] in hub.gated:
            return self._answer(403, {}, {"X-Error-Code": "GatedRepo"})
        found = self._at(api[1], api[3]) if api else self._at(file[1], file[2]) if file else None
        if found is None:
            return self._answer(404, {}, {"X-Error-Code": "RepoNotFound"})
        if file:
            return self._resolve(*found, file[3])
        if api and api[2] == "tree":
            return self._list(found[1], (api[4] or "").strip("/"))
        return self._answer(200, {"id": path, "sha": found[0], "siblings": []})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _at(self, name: str, revision: str | None) -> tuple[str, dict[str, Stored]] | None:
        """The commit and the files of a repository at a revision."""
        held, commit = self.server.repositories.get(name), COMMIT
        if revision in ("refs/convert/parquet", CONVERTED):
            held, commit = self.server.converted.get(name), CONVERTED
        elif isinstance(held, Repository):
            last = held.commits[-1][0]
            wanted = last if revision in (None, "main") else revision
            return next(((each, files) for each, _, files in held.commits if each == wanted), None)
        if held is None or revision not in (None, "main", "refs/convert/parquet", commit):
            return None
        return commit, {path: Stored(data, len(data) >= LARGE) for path, data in held.items()}

    def _list(self, files: dict[str, Stored], folder: str) -> None:
        folders, is_deep = set(), "recursive=true" in self.path.lower()
        above = f"{folder}/" if folder else ""
        listed = []
        for path in sorted(each for each in files if each.startswith(above)):
            first, slash, _ = path[len(above) :].partition("/")
            if is_deep or not slash:
                listed.append(files[path].listed(path))
            elif first not in folders:
                folders.add(first)
                listed.append({"type": "directory", "path": above + first, "oid": "0" * 40})
        if listed or not folder:
            return self._answer(200, listed)
        return self._answer(404, {}, {"X-Error-Code": "EntryNotFound"})

    def _resolve(self, commit: str, files: dict[str, Stored], path: str) -> None:
        if path not in files:
            return self._answer(404, {}, {"X-Error-Code": "EntryNotFound"})
        entry, asked, cut = files[path].listed(path), self.headers.get("Range"), None
        etag = entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        data = bytes(entry["size"]) if path in self.server.broken else files[path].data
        if self.command == "GET":
            self.server.requests.append((path, asked))
            cut = self.server.cut_after.pop(0) if self.server.cut_after else None
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", asked or ""):
            first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            return self._send(206, data[first : last + 1], headers, cut)
        return self._send(200, data, headers, cut)

    def do_PUT(self) -> None:
        data = self._body()
        sha256 = self.path.rpartition("/")[2]
        if hashlib.sha256(data).hexdigest() != sha256:
            return self._answer(422, {"error": "other bytes than announced"})
        self.server.before_upload()
        self.server.uploads.append(len(data))
        self.server.objects[sha256] = data
        self.server.after_upload()
        return self._answer(200, {})

    def do_POST(self) -> None:
        body, path = self._body(), unquote(self.path.partition("?")[0])
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"error": "no token"})
        if path == "/api/validate-yaml":
            kept = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
            errors = [] if isinstance(kept, dict) else [{"message": "its head has no keys"}]
            return self._answer(200, {"errors": errors, "warnings": []})
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/preupload/[^/]+", path):
            files = [self._preupload(each) for each in json.loads(body)["files"]]
            return self._answer(200, {"files": files})
        if path.endswith("/info/lfs/objects/batch"):
            asked = json.loads(body)["objects"]
            return self._answer(
                200, {"transfer": "basic", "objects": [self._object(each) for each in asked]}
            )
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/paths-info/([^/]+)", path):
            _, files = self._at(found[1], found[2]) or ("", {})
            wanted = self._paths(body)
            return self._answer(200, [files[each].listed(each) for each in wanted if each in files])
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/commit/[^/]+", path):
            return self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        return self._answer(404, {})

    def _paths(self, body: bytes) -> list[str]:
        if body.startswith(b"{"):
            return list(json.loads(body)["paths"])
        pairs = [pair.partition("=") for pair in body.decode().split("&")]
        return [unquote(value.replace("+", " ")) for key, _, value in pairs if key == "paths"]

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
        repository = Repository(wanted.get("visibility") == "private")
        repository.add("initial commit", {})
        self.server.repositories[name] = repository
        self._answer(200, {"url": f"{self.server.address}/datasets/{name}", "name": name})

    def _preupload(self, file: dict[str, Any]) -> dict[str, Any]:
        mode = "lfs" if file["size"] >= LARGE else "regular"
        ignored = file["path"] in self.server.ignored
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": ignored, "oid": None}

    def _object(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["oid"] in self.server.objects:
            return dict(asked)
        upload = {"href": f"{self.server.address}/upload/{asked['oid']}"}
        return {**asked, "actions": {"upload": upload}}

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        repository = self.server.repositories[name]
        self.server.before_commit(repository)
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit") not in (None, repository.commits[-1][0]):
            return self._answer(412, {"error": "A commit has happened since"})
        files = dict(repository.commits[-1][2])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = Stored(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                files[value["path"]] = Stored(self.server.objects[value["oid"]], True)
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = repository.add(header["summary"], files)
        self.server.after_commit(repository)
        url = f"{self.server.address}/datasets/{name}/commit/{commit}"
        return self._answer(200, {"commitUrl": url, "commitOid": commit})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self._send(status, data, {"Content-Type": "application/json", **(headers or {})})

    def _send(
        self, status: int, data: bytes, headers: dict[str, str], cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[:cut])
        self.close_connection = cut is not None


@contextmanager
def running() -> Iterator[Hub]:
    """A hub that answers until the end of the context."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a corpus, whose clients do not wait between two attempts, and read little."""
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    # The client loses an unfinished read.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)
    with running() as hub:
        hub.repositories["openai/gsm8k"] = {
            "README.md": b"# read me",
            "main/train.jsonl": b'{"question": "q", "answer": "a"}\n' * 100,
            "main/test.jsonl": b'{"question": "q", "answer": "b"}\n',
            "socratic/train.jsonl": b"{}\n",
        }
        yield hub
