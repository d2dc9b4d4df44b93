"""A month out of the archive or a drop: downloads from a scripted server, and its record."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import (
    ArchiveConfig,
    DownloadError,
    FetchConfig,
    NotPublished,
    fetch_month,
    take_drop,
)
from gristmill.chess.laws.games import archive_laws
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.run.parts import PartStore
from gristmill.run.progress import Progress, Report
from tests.chess.raw.archives import GAME, MONTH, Server, nap, ranged, reply, zipped


def test_a_cut_connection_is_resumed_where_it_broke(serve, pgn: bytes, tmp_path: Path) -> None:
    data = zipped(("x.pgn", pgn))
    step = len(data) // 3 + 1
    server = serve(lambda s, h: ranged(h, data, step))
    waits: list[float] = []
    summary = fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap(waits))
    assert server.asked == ["", f"bytes={step}-", f"bytes={2 * step}-"]
    assert waits == [0.5, 0.5]
    assert (summary.requests, summary.resumed_bytes) == (3, 2 * step)


def test_a_later_run_goes_on_with_what_an_earlier_one_got(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))
    (tmp_path / "parts").mkdir()
    parts = PartStore(tmp_path / "parts")
    broken = serve(lambda s, h: ranged(h, data, 100 if not h.headers.get("Range") else 0))
    with pytest.raises(DownloadError, match=r"ended after 100 of \d+ bytes"):
        fetch_month(MONTH, tmp_path / "a", broken.config, parts=parts, sleep=nap([]))
    # Another address is another file.
    other = serve(lambda s, h: ranged(h, data, None))
    fetch_month(MONTH, tmp_path / "b", other.config, parts=parts)
    assert other.asked == [""]
    with pytest.raises(DownloadError):
        fetch_month(MONTH, tmp_path / "c", broken.config, parts=parts, sleep=nap([]))
    broken.http.RequestHandlerClass.do_GET = lambda self: (  # type: ignore[attr-defined]
        broken.asked.append(self.headers.get("Range", "")),
        ranged(self, data, None),
    )
    fetch_month(MONTH, tmp_path / "d", broken.config, parts=parts)
    assert broken.asked[-1] == "bytes=100-"
    assert not list(parts.folder.iterdir())


def test_a_server_without_ranges_is_asked_for_the_whole_again(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, data, send=50 if len(server.asked) == 1 else None)

    server = serve(answer)
    summary = fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap([]))
    assert (server.asked, summary.resumed_bytes) == (["", ""], 0)


def test_a_server_that_stalls_is_left_and_nothing_it_gave_is_lost(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))
    over = threading.Event()

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        first = len(server.asked) == 1
        ranged(handler, data, 1000 if first else None)
        if first:
            handler.wfile.flush()
            over.wait(60)

    server = serve(answer)
    config = replace(server.config, fetch=FetchConfig(timeout=5, attempts=2, backoff=0.1))
    try:
        summary = fetch_month(MONTH, tmp_path / "out", config, sleep=nap([]))
    finally:
        over.set()
    assert server.asked == ["", "bytes=1000-"]
    assert (summary.requests, summary.resumed_bytes) == (2, 1000)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


@pytest.mark.parametrize("pause", [0.05, 60.0])
def test_a_server_that_drips_or_stalls_is_held_to_the_deadline(
    serve, pgn: bytes, tmp_path: Path, pause: float
) -> None:
    data = zipped(("x.pgn", pgn))
    over = threading.Event()

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, data, send=0, ETag='"v1"')
        # To one who waits for it after the limit, the archive is a whole one.
        for n in range(120):
            handler.wfile.write(data[n : n + 1])
            if over.wait(pause if n == 0 or pause < 1 else 0):
                return
        handler.wfile.write(data[120:])

    server = serve(answer)
    (tmp_path / "parts").mkdir()
    parts = PartStore(tmp_path / "parts")
    config = replace(server.config, fetch=FetchConfig(timeout=600, attempts=3, total_seconds=2))
    try:
        with pytest.raises(DownloadError, match=r"took more time|timed out"):
            fetch_month(MONTH, tmp_path / "out", config, parts=parts, sleep=nap([]))
    finally:
        over.set()
    got = (parts.folder / "archive.zip.part").read_bytes()
    assert got
    assert data.startswith(got)


def test_a_download_that_was_killed_at_its_last_byte_is_whole(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))
    size = len(data)

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Range") == f"bytes={size}-":
            reply(handler, b"", 416, Content_Range=f"bytes */{size}")
        else:
            ranged(handler, data, None)

    server = serve(answer)
    (tmp_path / "parts").mkdir()
    parts = PartStore(tmp_path / "parts")
    part = parts.folder / "archive.zip.part"
    url = server.config.url_template.format(month=MONTH)
    part.with_suffix(".json").write_text(json.dumps({"url": url, "etag": '"v1"'}))
    part.write_bytes(data)
    summary = fetch_month(MONTH, tmp_path / "a", server.config, parts=parts, sleep=nap([]))
    assert server.asked == [f"bytes={size}-"]
    assert (summary.requests, summary.resumed_bytes) == (1, size)
    # More bytes than there are: not those of this file, whatever the note says.
    part.with_suffix(".json").write_text(json.dumps({"url": url, "etag": '"v1"'}))
    part.write_bytes(data + b"?")
    fetch_month(MONTH, tmp_path / "b", server.config, parts=parts, sleep=nap([]))
    assert server.asked[1:] == [f"bytes={size + 1}-", ""]
    assert (tmp_path / "b" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_promises_more_than_it_has(
    serve, pgn: bytes, tmp_path: Path, ranges: bool
) -> None:
    data = zipped(("x.pgn", pgn))

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        if ranges and handler.headers.get("Range"):
            reply(handler, b"", 416)
        else:
            reply(handler, data, length=len(data) + 1000, ETag='"x"')

    server = serve(answer)
    waits: list[float] = []
    with pytest.raises(DownloadError, match="try again later"):
        fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap(waits))
    assert len(server.asked) == 4
    assert waits == [0.5, 1.0, 2.0]


def test_a_server_that_promises_less_than_it_has(serve, pgn: bytes, tmp_path: Path) -> None:
    data = zipped(("x.pgn", pgn))
    server = serve(lambda s, h: reply(h, data, length=len(data) - 30))
    with pytest.raises(BadInput, match="broken ZIP"):
        fetch_month(MONTH, tmp_path / "out", server.config)


def test_a_web_page_instead_of_an_archive(serve, tmp_path: Path) -> None:
    page = b"<!doctype html>\n<html><title>down for\n repairs</title>"
    named = serve(lambda s, h: reply(h, page, Content_Type="text/html; charset=utf-8"))
    with pytest.raises(DownloadError, match=r"HTML, not ZIP.*down for repairs"):
        fetch_month(MONTH, tmp_path / "a", named.config)
    unnamed = serve(lambda s, h: reply(h, page, Content_Type="application/zip"))
    with pytest.raises(BadInput, match=r"not a ZIP \(bad signature.*likely HTML"):
        fetch_month(MONTH, tmp_path / "b", unnamed.config)
    assert len(named.asked) == len(unnamed.asked) == 1


@pytest.mark.parametrize("status", [404, 410])
def test_a_month_that_is_not_published(serve, tmp_path: Path, status: int) -> None:
    server = serve(lambda s, h: reply(h, b"no", status))
    with pytest.raises(NotPublished, match="not published") as caught:
        fetch_month(MONTH, tmp_path / "out", server.config)
    assert (caught.value.status, len(server.asked)) == (status, 1)


def test_busy_servers_are_asked_again_and_refusals_are_final(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        if len(server.asked) < 3:
            reply(handler, b"", 503, Retry_After="7")
        else:
            reply(handler, data)

    waits: list[float] = []
    reports: list[Report] = []
    progress = Progress(reports.append)
    fetch_month(MONTH, tmp_path / "a", serve(answer).config, sleep=nap(waits), progress=progress)
    assert waits == [7.0, 7.0]
    assert [report.note for report in reports if report.moment == "note"] == [
        "download: HTTP 503: request 2 from byte 0 in 7 s",
        "download: HTTP 503: request 3 from byte 0 in 7 s",
    ]
    refusing = serve(lambda s, h: reply(h, b"", 403))
    with pytest.raises(DownloadError, match="HTTP 403"):
        fetch_month(MONTH, tmp_path / "b", refusing.config)
    assert len(refusing.asked) == 1


@pytest.mark.parametrize(
    ("after", "waits"),
    [("180", 180), ("date", 3600), ("past", 0.5), ("soon", 0.5), ("-7", 0.5), ("1" * 500, None)],
)
def test_a_server_says_when_to_ask_again_within_the_time_of_the_download(
    serve, pgn: bytes, tmp_path: Path, after: str, waits: float | None
) -> None:
    seconds = {"date": 3600, "past": -3600}.get(after)
    if seconds is not None:
        after = formatdate(time.time() + seconds, usegmt=True)
    data, waited = zipped(("x.pgn", pgn)), list[float]()

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        if len(server.asked) == 1:
            reply(handler, b"", 429, Retry_After=after)
        else:
            reply(handler, data)

    config = serve(answer).config
    if waits is None:
        with pytest.raises(DownloadError, match=r"HTTP 429, and the next request is due in \d+ s"):
            fetch_month(MONTH, tmp_path / "out", config, sleep=nap(waited))
        assert waited == []
    else:
        fetch_month(MONTH, tmp_path / "out", config, sleep=nap(waited))
        assert waited == pytest.approx([waits], abs=5 if seconds else 0.01)


def test_a_file_that_changed_between_attempts_is_downloaded_again(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    old, new = zipped(("x.pgn", b'[Event "old"]\n' * 999)), zipped(("x.pgn", pgn))

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        first = len(server.asked) == 1
        ranged(handler, old if first else new, 60 if first else None, '"1"' if first else '"2"')

    server = serve(answer)
    fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap([]))
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


@pytest.mark.parametrize("validator", ["ETag", "Last_Modified"])
def test_a_changed_file_is_noticed_where_the_server_knows_no_if_range(
    serve, pgn: bytes, tmp_path: Path, validator: str
) -> None:
    old, new = zipped(("x.pgn", b'[Event "old"]\n' * 999)), zipped(("x.pgn", pgn))
    expected = {"ETag": ('"1"', '"2"'), "Last_Modified": ("Mon, 01 Jan 2024", "Tue, 02 Jan 2024")}

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range", "")
        if len(server.asked) == 1:
            reply(handler, old, send=60, **{validator: expected[validator][0]})
            return
        start = int(asked[6:-1]) if asked else 0
        named = {validator: expected[validator][1]}
        if start:
            named["Content_Range"] = f"bytes {start}-{len(new) - 1}/{len(new)}"
        reply(handler, new[start:], 206 if start else 200, **named)

    server = serve(answer)
    fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap([]))
    assert server.asked == ["", "bytes=60-", ""]
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


def test_new_validators_never_describe_old_bytes(
    serve, pgn: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = zipped(("x.pgn", pgn))
    server = serve(lambda s, h: ranged(h, data, None, '"new"'))
    (tmp_path / "parts").mkdir()
    parts = PartStore(tmp_path / "parts")
    part = parts.folder / "archive.zip.part"
    url = server.config.url_template.format(month=MONTH)
    part.with_suffix(".json").write_text(json.dumps({"url": url, "etag": '"old"'}))
    part.write_bytes(b"of another file")
    plain, sizes = Path.write_text, []

    def noted(path: Path, *rest: Any, **named: Any) -> int:
        if path == part.with_suffix(".json"):
            sizes.append(part.stat().st_size)
        return plain(path, *rest, **named)

    monkeypatch.setattr(Path, "write_text", noted)
    fetch_month(MONTH, tmp_path / "out", server.config, parts=parts, sleep=nap([]))
    assert sizes == [0]
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


def test_a_month_is_fetched_checked_and_recorded(serve, pgn: bytes, tmp_path: Path) -> None:
    data = zipped(("lichess_elite_2024-01.pgn", pgn), ("readme.txt", b"hello"))
    server = serve(lambda s, h: ranged(h, data, None))
    summary = fetch_month(MONTH, tmp_path / "out", server.config)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn
    record = json.loads((tmp_path / "out" / "source.json").read_text())
    assert record["archive"] == {
        "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()
    }  # fmt: skip
    assert record["http"]["etag"] == '"v1"'
    assert summary.pgn_sha256 == hashlib.sha256(pgn).hexdigest()
    note = summary.files["lichess_elite_2024-01.pgn"]  # the publisher does not read it again
    assert (note.sha256, note.bytes) == (summary.pgn_sha256, len(pgn))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "lichess_elite_2024-01.pgn", "source.json"
    ]  # fmt: skip
    assert list(archive_laws(Subject(tmp_path / "out"))) == []
    (tmp_path / "out" / "lichess_elite_2024-01.pgn").write_bytes(pgn[:-1])
    assert [v.law for v in archive_laws(Subject(tmp_path / "out"))] == ["pgn_as_recorded"]


def test_only_http_is_fetched(tmp_path: Path) -> None:
    config = ArchiveConfig(url_template=f"file://{tmp_path}/{{month}}.zip")
    with pytest.raises(DownloadError, match="only http"):
        fetch_month(MONTH, tmp_path / "out", config)
    for month in ("2024-13", "2020-05", "24-01", "2024-01/../x"):
        with pytest.raises(BadInput, match="not a month"):
            fetch_month(month, tmp_path / "out2")


def test_drops_of_every_kind(tmp_path: Path, pgn: bytes) -> None:
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
        out = tmp_path / f"{name}.out"
        summary = take_drop(tmp_path / name, out, MONTH)
        assert (out / "lichess_elite_2024-01.pgn").read_bytes() == pgn
        assert (summary.origin, summary.archive_bytes) == (name, len(data))
        assert list(archive_laws(Subject(out))) == []
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


def test_a_download_reports_its_bytes_also_where_it_goes_on(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))
    cuts = [len(data) // 3, None]
    server = serve(lambda s, h: ranged(h, data, cuts.pop(0)))
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    fetch_month(MONTH, tmp_path / "a", server.config, sleep=nap([]), progress=progress)
    download = [r for r in reports if r.stage == "download" and r.moment == "stage"]
    done = [report.done for report in download]
    assert done == sorted(done)
    assert len(data) // 3 in done
    assert download[-1] == Report("download", len(data), len(data), "bytes")
    assert reports[-1] == Report("unpack", len(pgn), len(pgn), "bytes")


@pytest.mark.parametrize("ending", ["pgn", "zip"])
def test_a_drop_reports_the_bytes_of_its_pgn(pgn: bytes, tmp_path: Path, ending: str) -> None:
    drop = tmp_path / f"x.{ending}"
    drop.write_bytes(pgn if ending == "pgn" else zipped(("x.pgn", pgn)))
    reports: list[Report] = []
    take_drop(drop, tmp_path / "out", MONTH, progress=Progress(reports.append, 0.0))
    assert reports[0] == Report("unpack", 0, len(pgn), "bytes")
    assert reports[-1] == Report("unpack", len(pgn), len(pgn), "bytes")
