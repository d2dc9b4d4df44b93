"""A month out of the archive or a drop: downloads from a scripted server, and its record."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import ArchiveConfig, DownloadError, NotPublished, fetch_month, take_drop
from gristmill.chess.laws.games import archive_laws
from gristmill.chess.raw.download import ArchiveSummary
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.run.parts import PartStore
from gristmill.run.progress import Progress, Report
from tests.chess.raw.archives import GAME, MONTH, Server, ranged, reply, zipped

PGN = f"lichess_elite_{MONTH}.pgn"
Answer = Callable[[BaseHTTPRequestHandler], object]


class Archive:
    """A server that gives answers in turn, the last of them to all further requests."""

    def __init__(self, serve: Callable[..., Server], folder: Path) -> None:
        self._serve, self._folder = serve, folder
        self.asked: list[str] = []
        self.waits: list[float] = []
        (folder / "parts").mkdir()
        self.parts = PartStore(folder / "parts")
        self.part = self.parts.folder / "archive.zip.part"

    def answers(self, *answers: Answer) -> Server:
        server = self._serve(lambda s, h: answers[min(len(s.asked), len(answers)) - 1](h))
        self.asked, self.waits = server.asked, []
        return server

    def month(self, server: Server, limits: dict[str, Any] = {}, **more: Any) -> ArchiveSummary:  # noqa: B006
        self.out = self._folder / f"out{len(list(self._folder.iterdir()))}"
        config = replace(server.config, fetch=replace(server.config.fetch, **limits))
        return fetch_month(MONTH, self.out, config, sleep=self.waits.append, **more)

    def leave(self, server: Server, etag: str, octets: bytes) -> None:
        """What an earlier attempt left of a file with an ETag."""
        url = server.config.url_template.format(month=MONTH)
        self.part.with_suffix(".json").write_text(json.dumps({"url": url, "etag": etag}))
        self.part.write_bytes(octets)

    @property
    def pgn(self) -> bytes:
        return (self.out / PGN).read_bytes()


@pytest.fixture
def archive(serve: Callable[..., Server], tmp_path: Path) -> Archive:
    return Archive(serve, tmp_path)


@pytest.fixture(scope="module")
def data(pgn: bytes) -> bytes:
    return zipped(("x.pgn", pgn))


def test_a_cut_connection_is_resumed_or_begun_again_where_a_server_knows_no_ranges(archive, data):
    step = len(data) // 3 + 1
    summary = archive.month(archive.answers(lambda h: ranged(h, data, step)))
    assert archive.asked == ["", f"bytes={step}-", f"bytes={2 * step}-"]
    assert archive.waits == [0.5, 0.5]
    assert (summary.requests, summary.resumed_bytes) == (3, 2 * step)
    server = archive.answers(lambda h: reply(h, data, send=50), lambda h: reply(h, data))
    assert archive.month(server).resumed_bytes == 0
    assert archive.asked == ["", ""]


def test_a_later_run_goes_on_with_what_an_earlier_one_got(archive, data):
    whole: Answer = lambda h: ranged(h, data, None)  # noqa: E731
    turns = [lambda h: ranged(h, data, 100 if not h.headers.get("Range") else 0)]
    broken = archive._serve(lambda s, h: turns[-1](h))
    with pytest.raises(DownloadError, match=r"ended after 100 of \d+ bytes"):
        archive.month(broken, parts=archive.parts)
    # Another address is another file.
    archive.month(archive.answers(whole), parts=archive.parts)
    assert archive.asked == [""]
    with pytest.raises(DownloadError):
        archive.month(broken, parts=archive.parts)
    turns.append(whole)
    archive.month(broken, parts=archive.parts)
    assert broken.asked[-1] == "bytes=100-"
    assert not list(archive.parts.folder.iterdir())


def test_a_server_that_stalls_is_left_and_nothing_it_gave_is_lost(archive, pgn, data):
    over = threading.Event()

    def stall(handler: BaseHTTPRequestHandler) -> None:
        ranged(handler, data, 1000)
        handler.wfile.flush()
        over.wait(60)

    server = archive.answers(stall, lambda h: ranged(h, data, None))
    try:
        summary = archive.month(server, {"timeout": 5, "attempts": 2, "backoff": 0.1})
    finally:
        over.set()
    assert archive.asked == ["", "bytes=1000-"]
    assert (summary.requests, summary.resumed_bytes) == (2, 1000)
    assert archive.pgn == pgn


@pytest.mark.parametrize("pause", [0.05, 60.0])
def test_a_server_that_drips_or_stalls_is_held_to_the_deadline(archive, data, pause):
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, data, send=0, ETag='"v1"')
        # To one who waits for it after the limit, the archive is a whole one.
        for n in range(120):
            handler.wfile.write(data[n : n + 1])
            if over.wait(pause if n == 0 or pause < 1 else 0):
                return
        handler.wfile.write(data[120:])

    limits = {"timeout": 600.0, "attempts": 3, "total_seconds": 2.0}
    try:
        with pytest.raises(DownloadError, match=r"took more time|timed out"):
            archive.month(archive.answers(drip), limits, parts=archive.parts)
    finally:
        over.set()
    got = archive.part.read_bytes()
    assert got and data.startswith(got)


def test_a_download_that_was_killed_at_its_last_byte_is_whole(archive, pgn, data):
    size = len(data)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Range") == f"bytes={size}-":
            reply(handler, b"", 416, Content_Range=f"bytes */{size}")
        else:
            ranged(handler, data, None)

    server = archive.answers(answer)
    archive.leave(server, '"v1"', data)
    summary = archive.month(server, parts=archive.parts)
    assert archive.asked == [f"bytes={size}-"]
    assert (summary.requests, summary.resumed_bytes) == (1, size)
    # More bytes than there are: not those of this file, whatever the note says.
    archive.leave(server, '"v1"', data + b"?")
    archive.month(server, parts=archive.parts)
    assert archive.asked[1:] == [f"bytes={size + 1}-", ""]
    assert archive.pgn == pgn


@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_promises_more_than_it_has(archive, data, ranges):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if ranges and handler.headers.get("Range"):
            reply(handler, b"", 416)
        else:
            reply(handler, data, length=len(data) + 1000, ETag='"x"')

    with pytest.raises(DownloadError, match="try again later"):
        archive.month(archive.answers(answer))
    assert (len(archive.asked), archive.waits) == (4, [0.5, 1.0, 2.0])


PAGE = b"<!doctype html>\n<html><title>down for\n repairs</title>"


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda h: reply(h, PAGE, Content_Type="text/html; charset=utf-8"), DownloadError,
         "HTML, not ZIP.*down for repairs"),
        (lambda h: reply(h, PAGE, Content_Type="application/zip"), BadInput,
         r"not a ZIP \(bad signature.*likely HTML"),
        (lambda h: reply(h, zipped(("x.pgn", GAME * 99)), length=90), BadInput, "broken ZIP"),
        (lambda h: reply(h, b"", 403), DownloadError, "HTTP 403"),
        (lambda h: reply(h, b"no", 404), NotPublished, "not published .HTTP 404"),
        (lambda h: reply(h, b"no", 410), NotPublished, "not published .HTTP 410"),
    ],
)  # fmt: skip
def test_an_answer_that_is_final_is_asked_for_once(archive, answer, error, text):
    with pytest.raises(error, match=text) as caught:
        archive.month(archive.answers(answer))
    assert len(archive.asked) == 1
    assert getattr(caught.value, "status", 404) in (404, 410)


def test_busy_servers_are_asked_again(archive, data):
    busy: Answer = lambda h: reply(h, b"", 503, Retry_After="7")  # noqa: E731
    reports: list[Report] = []
    server = archive.answers(busy, busy, lambda h: reply(h, data))
    archive.month(server, progress=Progress(reports.append))
    assert archive.waits == [7.0, 7.0]
    assert [report.note for report in reports if report.moment == "note"] == [
        "download: HTTP 503: request 2 from byte 0 in 7 s",
        "download: HTTP 503: request 3 from byte 0 in 7 s",
    ]


@pytest.mark.parametrize(
    ("after", "waits"),
    [("180", 180), ("date", 3600), ("past", 0.5), ("soon", 0.5), ("-7", 0.5), ("1" * 500, None)],
)
def test_a_server_says_when_to_ask_again_within_the_time(archive, data, after, waits):
    seconds = {"date": 3600, "past": -3600}.get(after)
    if seconds is not None:
        after = formatdate(time.time() + seconds, usegmt=True)
    server = archive.answers(
        lambda h: reply(h, b"", 429, Retry_After=after), lambda h: reply(h, data)
    )
    if waits is None:
        with pytest.raises(DownloadError, match=r"HTTP 429, and the next request is due in \d+ s"):
            archive.month(server)
        assert archive.waits == []
    else:
        archive.month(server)
        assert archive.waits == pytest.approx([waits], abs=5 if seconds else 0.01)


OLD = zipped(("x.pgn", b'[Event "old"]\n' * 999))


def test_a_file_that_changed_between_attempts_is_downloaded_again(archive, pgn, data):
    first: Answer = lambda h: ranged(h, OLD, 60, '"1"')  # noqa: E731
    archive.month(archive.answers(first, lambda h: ranged(h, data, None, '"2"')))
    assert archive.pgn == pgn


@pytest.mark.parametrize(
    ("validator", "values"),
    [("ETag", ('"1"', '"2"')), ("Last_Modified", ("Mon, 01 Jan 2024", "Tue, 02 Jan 2024"))],
)
def test_a_changed_file_is_noticed_without_if_range(archive, pgn, data, validator, values):
    def later(handler: BaseHTTPRequestHandler) -> None:
        asked, named = handler.headers.get("Range", ""), {validator: values[1]}
        start = int(asked[6:-1]) if asked else 0
        if start:
            named["Content_Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        reply(handler, data[start:], 206 if start else 200, **named)

    archive.month(
        archive.answers(lambda h: reply(h, OLD, send=60, **{validator: values[0]}), later)
    )
    assert archive.asked == ["", "bytes=60-", ""]
    assert archive.pgn == pgn


def test_new_validators_never_describe_old_bytes(archive, pgn, data, monkeypatch):
    server = archive.answers(lambda h: ranged(h, data, None, '"new"'))
    archive.leave(server, '"old"', b"of another file")
    plain, sizes = Path.write_text, []

    def noted(path: Path, *rest: Any, **named: Any) -> int:
        if path == archive.part.with_suffix(".json"):
            sizes.append(archive.part.stat().st_size)
        return plain(path, *rest, **named)

    monkeypatch.setattr(Path, "write_text", noted)
    archive.month(server, parts=archive.parts)
    assert sizes == [0]
    assert archive.pgn == pgn


def test_a_month_is_fetched_checked_and_recorded(archive, pgn):
    data = zipped((PGN, pgn), ("readme.txt", b"hello"))
    summary = archive.month(archive.answers(lambda h: ranged(h, data, None)))
    assert archive.pgn == pgn
    record = json.loads((archive.out / "source.json").read_text())
    assert record["archive"] == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert record["http"]["etag"] == '"v1"'
    assert summary.pgn_sha256 == hashlib.sha256(pgn).hexdigest()
    note = summary.files[PGN]  # the publisher does not read it again
    assert (note.sha256, note.bytes) == (summary.pgn_sha256, len(pgn))
    assert sorted(path.name for path in archive.out.iterdir()) == [PGN, "source.json"]
    assert list(archive_laws(Subject(archive.out))) == []
    (archive.out / PGN).write_bytes(pgn[:-1])
    assert [v.law for v in archive_laws(Subject(archive.out))] == ["pgn_as_recorded"]


def test_only_http_is_fetched(tmp_path):
    config = ArchiveConfig(url_template=f"file://{tmp_path}/{{month}}.zip")
    with pytest.raises(DownloadError, match="only http"):
        fetch_month(MONTH, tmp_path / "out", config)
    for month in ("2024-13", "2020-05", "24-01", "2024-01/../x"):
        with pytest.raises(BadInput, match="not a month"):
            fetch_month(month, tmp_path / "out2")


def test_drops_of_every_kind(tmp_path, pgn):
    import zstandard

    packer = zstandard.ZstdCompressor(write_checksum=True)
    kinds = {
        "a.zip": zipped(("in/side.pgn", pgn)),
        "b.pgn": pgn,
        # Two frames, as a parallel packer writes them.
        "c.pgn.zst": packer.compress(pgn[:5000]) + packer.compress(pgn[5000:]),
    }
    for name, data in kinds.items():
        (tmp_path / name).write_bytes(data)
        out, reports = tmp_path / f"{name}.out", list[Report]()
        summary = take_drop(tmp_path / name, out, MONTH, progress=Progress(reports.append, 0.0))
        assert (out / PGN).read_bytes() == pgn
        assert (summary.origin, summary.archive_bytes) == (name, len(data))
        assert list(archive_laws(Subject(out))) == []
        total = None if name == "c.pgn.zst" else len(pgn)
        assert reports[0] == Report("unpack", 0, total, "bytes")
        assert (reports[-1].done, reports[-1].stage) == (len(pgn), "unpack")
    for data, rule in (
        (kinds["c.pgn.zst"][:-9], "middle of a zstd frame"),
        (kinds["c.pgn.zst"][:200] + b"\xff" * 300 + kinds["c.pgn.zst"][500:], "broken zstd"),
        (packer.compress(GAME * 2_000_000), "unpacks to more than"),
    ):
        (tmp_path / "bad.pgn.zst").write_bytes(data)
        with pytest.raises(BadInput, match=rule):
            take_drop(tmp_path / "bad.pgn.zst", tmp_path / f"bad{rule[:6]}", MONTH)
    with pytest.raises(BadInput, match="packed in a form that is not read"):
        take_drop(tmp_path / "x.7z", tmp_path / "no", MONTH)


def test_a_download_reports_its_bytes_also_where_it_goes_on(archive, pgn, data):
    third, reports = len(data) // 3, list[Report]()
    server = archive.answers(lambda h: ranged(h, data, third), lambda h: ranged(h, data, None))
    archive.month(server, progress=Progress(reports.append, 0.0))
    download = [r for r in reports if r.stage == "download" and r.moment == "stage"]
    done = [report.done for report in download]
    assert done == sorted(done)
    assert third in done
    assert download[-1] == Report("download", len(data), len(data), "bytes")
    assert reports[-1] == Report("unpack", len(pgn), len(pgn), "bytes")
