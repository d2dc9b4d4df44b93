"""Fetching from a local server that answers as a dataset hub does; tests make it fail."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gristmill.run.progress import Progress, Report
from gristmill.synth.raw import files, hub
from gristmill.synth.raw.hub import HubError, Source

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "example/SYNTH"


class Hub(ThreadingHTTPServer):
    """The files of one repository at one commit.

    requests: path and Range header of every GET of a file.
    drop_after: number of bytes after which the next answers end, one entry for each.
    sizes: wrong sizes in the listing, by path.
    ranges: whether the server answers a Range header.
    unhashed: paths that the listing names without sha256.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.requests: list[tuple[str, str | None]] = []
        self.drop_after: list[int] = []
        self.sizes: dict[str, int] = {}
        self.ranges = True
        self.unhashed: set[str] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        prefix = f"/api/datasets/{REPO}/tree/{COMMIT}"
        if self.path.startswith(prefix):
            self._send(200, json.dumps(self._tree()).encode(), {"Content-Type": "application/json"})
        elif match := re.fullmatch(f"/datasets/{REPO}/resolve/{COMMIT}/(.+)", self.path):
            headers = {"Location": f"/cdn/{match[1]}", "X-Repo-Commit": COMMIT}
            self._send(302, b"", headers)
        elif self.path.startswith("/cdn/") and self.path[5:] in self.server.files:
            self._file(self.path[5:])
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _tree(self) -> list[dict[str, object]]:
        return [
            {
                "type": "file",
                "path": path,
                "oid": "0" * 40,
                "size": (size := self.server.sizes.get(path, len(data))),
                "lfs": None
                if path in self.server.unhashed
                else {
                    "oid": hashlib.sha256(data).hexdigest(),
                    "size": size,
                    "pointerSize": 133,
                },
            }
            for path, data in self.server.files.items()
        ]

    def _file(self, path: str) -> None:
        data, requested = self.server.files[path], self.headers.get("Range")
        self.server.requests.append((path, requested))
        begin = int(requested.removeprefix("bytes=").rstrip("-")) if requested else 0
        if not self.server.ranges:
            begin = 0
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"'}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.send_response(206 if begin else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if self.server.drop_after:
            self.wfile.write(data[begin : begin + self.server.drop_after.pop(0)])
            self.close_connection = True
        else:
            self.wfile.write(data[begin:])

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Hub]:
    contents = {f"synth_{n:03d}.parquet": bytes([n]) * (1000 * n) for n in (2, 1, 3)}
    with Hub(contents) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def source(server: Hub) -> Source:
    return Source(REPO, COMMIT, server.address)


@pytest.fixture(autouse=True)
def no_waiting_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    # The client loses an unfinished read, so its reads are small here.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)


def test_every_file_is_downloaded_once(server: Hub, source: Source, tmp_path: Path) -> None:
    fetched = hub.fetch(tmp_path / "drop", source)
    assert [path.name for path in fetched.files] == sorted(server.files)
    assert (fetched.downloaded, fetched.bytes) == (3, 6000)
    assert {p.name: p.read_bytes() for p in fetched.files} == server.files
    assert files.complete_files(tmp_path / "drop") == fetched.files
    again = hub.fetch(tmp_path / "drop", source)
    assert (again.downloaded, len(server.requests)) == (0, 3)


def test_only_the_first_files_are_downloaded(source: Source, tmp_path: Path) -> None:
    fetched = hub.fetch(tmp_path, source, files=1)
    assert [path.name for path in fetched.files] == ["synth_001.parquet"]


def test_a_download_continues_after_a_closed_connection(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    server.drop_after = [400, 100]
    fetched = hub.fetch(tmp_path, source, files=1)
    assert fetched.files[0].read_bytes() == server.files["synth_001.parquet"]
    assert [requested for _, requested in server.requests] == [None, "bytes=400-", "bytes=500-"]


def test_a_fetch_reports_the_bytes_of_all_files(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    hub.fetch(tmp_path, source, files=1)
    server.drop_after = [400]
    reports: list[Report] = []
    hub.fetch(tmp_path, source, progress=Progress(reports.append, every=0.0))
    (retry,) = [report for report in reports if report.moment == "note"]
    assert retry.note.startswith("fetch: Error while downloading from http://")
    assert retry.note.endswith("Trying to resume download...")
    reports.remove(retry)
    assert {(report.stage, report.total, report.unit) for report in reports} == {
        ("fetch", 6000, "bytes")
    }
    done = [report.done for report in reports]
    assert done[:2] == [0, 1000]
    assert done[-1] == 6000
    assert done == sorted(done)
    assert len(done) > 20


def test_a_fetch_continues_the_partial_file_of_a_killed_one(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    digest = hashlib.sha256(server.files["synth_001.parquet"]).hexdigest()
    partial = tmp_path / f".synth_001.parquet.{digest[:16]}.partial"
    partial.write_bytes(server.files["synth_001.parquet"][:700])
    fetched = hub.fetch(tmp_path, source, files=1)
    assert fetched.files[0].read_bytes() == server.files["synth_001.parquet"]
    assert [requested for _, requested in server.requests] == ["bytes=700-"]
    assert not partial.exists()


def test_a_partial_file_that_is_too_long_is_fetched_from_its_beginning(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    digest = hashlib.sha256(server.files["synth_001.parquet"]).hexdigest()
    (tmp_path / f".synth_001.parquet.{digest[:16]}.partial").write_bytes(b"x" * 1001)
    fetched = hub.fetch(tmp_path, source, files=1)
    assert fetched.files[0].read_bytes() == server.files["synth_001.parquet"]
    assert [requested for _, requested in server.requests] == [None]


def test_a_file_without_listed_sha256_is_refused(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    server.unhashed.add("synth_002.parquet")
    with pytest.raises(HubError, match=r"synth_002\.parquet: the hub lists no sha256"):
        hub.fetch(tmp_path, source)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_parquet_are_not_listed(server: Hub, source: Source) -> None:
    server.files["README.md"] = b"read me"
    assert [file.name for file in hub.remote_files(source)] == [
        f"synth_00{n}.parquet" for n in (1, 2, 3)
    ]


def test_a_server_without_ranges_sends_the_file_from_its_beginning(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    server.ranges, server.drop_after = False, [400]
    fetched = hub.fetch(tmp_path, source, files=1)
    assert fetched.files[0].read_bytes() == server.files["synth_001.parquet"]


def test_a_connection_that_always_closes_is_an_error_and_leaves_the_partial_file(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    server.drop_after = [300] + [0] * 20
    with pytest.raises(HubError, match=r"synth_001\.parquet"):
        hub.fetch(tmp_path, source, files=1)
    (partial,) = tmp_path.glob(".*.partial")
    assert partial.stat().st_size == 300
    assert not files.is_complete(tmp_path)


def test_a_complete_drop_is_incomplete_while_more_files_are_fetched(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    hub.fetch(tmp_path, source, files=1)
    assert files.is_complete(tmp_path)
    server.drop_after = [300] + [0] * 20
    with pytest.raises(HubError, match=r"synth_002\.parquet"):
        hub.fetch(tmp_path, source, files=3)
    assert not files.is_complete(tmp_path)
    server.drop_after = []
    assert len(hub.fetch(tmp_path, source, files=3).files) == 3
    assert files.is_complete(tmp_path)


def test_a_changed_file_is_fetched_again_and_the_drop_is_incomplete_until_then(
    server: Hub, source: Source, tmp_path: Path
) -> None:
    changed = hub.fetch(tmp_path, source).files[1]
    changed.write_bytes(b"changed")
    server.drop_after = [0] * 20
    with pytest.raises(HubError, match=r"synth_002\.parquet"):
        hub.fetch(tmp_path, source)
    assert not files.is_complete(tmp_path)


@pytest.mark.parametrize("size", [900, 1100])
def test_another_size_than_listed_is_refused(
    server: Hub, source: Source, tmp_path: Path, size: int
) -> None:
    server.sizes["synth_001.parquet"] = size
    with pytest.raises(HubError, match=r"synth_001\.parquet.*1,?000|size"):
        hub.fetch(tmp_path, source, files=1)
    assert files.files(tmp_path) == []


def test_other_bytes_than_listed_are_refused(server: Hub, source: Source, tmp_path: Path) -> None:
    digest = hashlib.sha256(server.files["synth_001.parquet"]).hexdigest()
    partial = tmp_path / f".synth_001.parquet.{digest[:16]}.partial"
    partial.write_bytes(b"x" * 10)
    with pytest.raises(HubError, match=f"sha256 .* the hub lists {digest}"):
        hub.fetch(tmp_path, source, files=1)
    assert list(tmp_path.iterdir()) == []
    hub.fetch(tmp_path, source, files=1)


def test_a_missing_repository_and_a_missing_server_are_named(server: Hub, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="example/OTHER"):
        hub.fetch(tmp_path, Source("example/OTHER", COMMIT, server.address))
    gone = server.address.replace(str(server.server_port), "9")
    with pytest.raises(HubError, match=REPO):
        hub.fetch(tmp_path, Source(REPO, COMMIT, gone))


def test_a_revision_that_is_no_commit_is_refused() -> None:
    for revision in ("main", COMMIT[1:], COMMIT + "0", COMMIT.upper()):
        with pytest.raises(ValueError, match="40 hex digits"):
            Source(REPO, revision)


def test_two_files_of_one_name_are_refused(server: Hub, source: Source, tmp_path: Path) -> None:
    """In the drop each of them would replace the other."""
    server.files["other/synth_001.parquet"] = b"other"
    with pytest.raises(HubError, match=r"other/synth_001\.parquet and synth_001\.parquet: one"):
        hub.fetch(tmp_path, source)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [b"null", b"[1]", b'[{"type": "file"}]', b"<html>", b"\xff"])
def test_an_answer_that_is_no_listing_is_a_hub_error(
    source: Source, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    def answer_all(handler: _Handler) -> None:
        handler._send(200, answer, {"Content-Type": "application/json"})

    monkeypatch.setattr(_Handler, "do_GET", answer_all)
    with pytest.raises(HubError, match=f"{REPO} at {COMMIT}"):
        hub.remote_files(source)


def test_a_folder_with_the_name_of_a_file_is_an_error(source: Source, tmp_path: Path) -> None:
    (tmp_path / "synth_001.parquet").mkdir()
    with pytest.raises(HubError, match=r"synth_001\.parquet.*directory"):
        hub.fetch(tmp_path, source)


@pytest.mark.parametrize("count", [0, -1])
def test_a_fetch_of_no_files_is_refused(source: Source, tmp_path: Path, count: int) -> None:
    with pytest.raises(HubError, match="no Parquet files"):
        hub.fetch(tmp_path, source, count)
    assert list(tmp_path.iterdir()) == []
