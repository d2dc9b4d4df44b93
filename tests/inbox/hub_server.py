"""A local server that answers as a dataset hub does to who fetches; tests make it fail."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONVERTED = "c0ffee89abcdef0123456789abcdef0123456789"
LARGE = 1000
"""Files of more bytes have a sha256."""


class Hub(ThreadingHTTPServer):
    """Repositories by name, each with its files at one commit.

    converted: those at the branch of Parquet files.
    requests: path and Range header of every GET of a file.
    cut_after: number of bytes after which the next answers end, one entry for each.
    broken: paths that are sent as zeros.
    gated: repositories that want a token.
    answer: what is sent to every request; None (default) for what was asked.
    """

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
        self.requests: list[tuple[str, str | None]] = []
        self.tokens: list[str | None] = []
        self.cut_after: list[int] = []
        self.broken: set[str] = set()
        self.gated: set[str] = set()
        self.answer: bytes | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.server, unquote(self.path.partition("?")[0])
        hub.tokens.append(self.headers.get("Authorization"))
        api = re.fullmatch(r"/api/datasets/([\w-]+/[\w.-]+)(/tree)?(?:(?:/revision)?/(.+))?", path)
        file = re.fullmatch(r"/datasets/([\w-]+/[\w.-]+)/resolve/(\w+)/(.+)", path)
        if hub.answer is not None:
            self._send(200, hub.answer)
        elif api and api[1] in hub.gated:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
        elif api and (found := self._files(api[1], api[3])):
            commit, files = found
            answer: Any = {"id": api[1], "sha": commit}
            if api[2]:
                answer = [_entry(name, octets) for name, octets in files.items()]
            self._send(200, json.dumps(answer).encode())
        elif file and (found := self._files(file[1], file[2])) and file[3] in found[1]:
            self._send_file(found[0], file[3], found[1][file[3]])
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _files(self, repo: str, revision: str | None) -> tuple[str, dict[str, bytes]] | None:
        """The commit and the files of a repository at a revision."""
        if revision in (None, "main", COMMIT) and repo in self.server.repositories:
            return COMMIT, self.server.repositories[repo]
        if revision in ("refs/convert/parquet", CONVERTED) and repo in self.server.converted:
            return CONVERTED, self.server.converted[repo]
        return None

    def _send_file(self, commit: str, path: str, octets: bytes) -> None:
        entry, asked = _entry(path, octets), self.headers.get("Range")
        etag = entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        if path in self.server.broken:
            octets = bytes(len(octets))
        if self.command == "GET":
            self.server.requests.append((path, asked))
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(octets) - 1}/{len(octets)}"
        cut = (
            self.server.cut_after.pop(0)
            if self.command == "GET" and self.server.cut_after
            else None
        )
        self._send(206 if begin else 200, octets[begin:], headers, cut)

    def _send(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        cut: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {"Content-Type": "application/json"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:cut])
        self.close_connection = cut is not None

    def log_message(self, *_: object) -> None: ...


def _entry(path: str, octets: bytes) -> dict[str, Any]:
    """A file as a tree lists it."""
    blob = hashlib.sha1(b"blob %d\0" % len(octets) + octets).hexdigest()
    entry = {"type": "file", "path": path, "oid": blob, "size": len(octets)}
    if len(octets) < LARGE:
        return entry
    sha256 = hashlib.sha256(octets).hexdigest()
    return {**entry, "lfs": {"oid": sha256, "size": len(octets), "pointerSize": 133}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server whose clients do not wait between two attempts, and read little at once."""
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    # The client loses an unfinished read.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)
    with Hub() as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()
