"""Archives from a server of our own and from drops: what is taken, and what is refused."""

import errno
import hashlib
import http.server
import io
import json
import os
import random
import re
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import (
    ArchiveConfig,
    DownloadError,
    FetchConfig,
    NotPublished,
    due_months,
    fetch_month,
    parse_month_list,
    take_drop,
)
from gristmill.chess.archive_config import Limits
from gristmill.chess.laws.games_and_datasets import archive_laws
from gristmill.chess.raw.unpack import unpack_zip
from gristmill.contract import BadInput
from gristmill.run.parts import PartStore
from gristmill.samples.chess import write_month

MONTH = "2024-01"


def zipped(*members: tuple[str, bytes], mode: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def pgn(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pgn") / "x.pgn"
    write_month(path, MONTH, 60, 5)
    return path.read_bytes()


class Server:
    """A local archive whose answers a test decides; `asked` holds the Range of each request."""

    def __init__(
        self, answer: Callable[["Server", http.server.BaseHTTPRequestHandler], None]
    ) -> None:
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.headers.get("Range", ""))
                answer(server, self)

            def log_message(self, *args: object) -> None:
                pass

        self.asked: list[str] = []
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.config = ArchiveConfig(
            url_template=f"http://127.0.0.1:{self.http.server_port}/lichess_elite_{{month}}.zip",
            fetch=FetchConfig(timeout=5, attempts=4, backoff=0.5),
        )


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(answer: Callable[[Server, http.server.BaseHTTPRequestHandler], None]) -> Server:
        running.append(Server(answer))
        return running[-1]

    yield start
    for server in running:
        server.http.shutdown()
        server.http.server_close()


def reply(
    handler: http.server.BaseHTTPRequestHandler,
    body: bytes,
    status: int = 200,
    length: int | None = None,
    send: int | None = None,
    **headers: str,
) -> None:
    """Answer with `body`, of which only `send` bytes go out and whose length may be a lie."""
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body if send is None else body[:send])
    handler.close_connection = True


def ranged(
    handler: http.server.BaseHTTPRequestHandler, body: bytes, send: int | None, etag: str = '"v1"'
) -> None:
    """Answer as a server that knows ranges and one ETag."""
    asked = handler.headers.get("Range", "")
    start = int(asked[6:-1]) if asked and handler.headers.get("If-Range") == etag else 0
    if start >= len(body):
        reply(handler, b"", 416)
        return
    told = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
    reply(handler, body[start:], 206 if start else 200, send=send, ETag=etag, **told)


def nap(waits: list[float]) -> Callable[[float], None]:
    return waits.append


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
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "lichess_elite_2024-01.pgn", "source.json"
    ]  # fmt: skip
    assert list(archive_laws(tmp_path / "out")) == []
    (tmp_path / "out" / "lichess_elite_2024-01.pgn").write_bytes(pgn[:-1])
    assert [v.law for v in archive_laws(tmp_path / "out")] == ["pgn_as_recorded"]


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


def test_a_file_that_changed_between_attempts_is_begun_anew(
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
    told = {"ETag": ('"1"', '"2"'), "Last_Modified": ("Mon, 01 Jan 2024", "Tue, 02 Jan 2024")}

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range", "")
        if len(server.asked) == 1:
            reply(handler, old, send=60, **{validator: told[validator][0]})
            return
        start = int(asked[6:-1]) if asked else 0
        named = {validator: told[validator][1]}
        if start:
            named["Content_Range"] = f"bytes {start}-{len(new) - 1}/{len(new)}"
        reply(handler, new[start:], 206 if start else 200, **named)

    server = serve(answer)
    fetch_month(MONTH, tmp_path / "out", server.config, sleep=nap([]))
    assert server.asked == ["", "bytes=60-", ""]
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


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
            over.wait(20)

    server = serve(answer)
    config = replace(server.config, fetch=FetchConfig(timeout=0.5, attempts=2, backoff=0.1))
    try:
        summary = fetch_month(MONTH, tmp_path / "out", config, sleep=nap([]))
    finally:
        over.set()
    assert server.asked == ["", "bytes=1000-"]
    assert (summary.requests, summary.resumed_bytes) == (2, 1000)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


@pytest.mark.parametrize("pause", [0.05, 30.0])
def test_a_server_that_drips_or_stalls_is_held_to_the_deadline(
    serve, pgn: bytes, tmp_path: Path, pause: float
) -> None:
    data = zipped(("x.pgn", pgn))
    over = threading.Event()

    def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, data, send=0, ETag='"v1"')
        for n in range(len(data)):
            handler.wfile.write(data[n : n + 1])
            if over.wait(pause):
                return

    server = serve(answer)
    (tmp_path / "parts").mkdir()
    parts = PartStore(tmp_path / "parts")
    config = replace(server.config, fetch=FetchConfig(timeout=20, attempts=3, total_seconds=1))
    begun = time.monotonic()
    try:
        with pytest.raises(DownloadError, match=r"took more time|timed out"):
            fetch_month(MONTH, tmp_path / "out", config, parts=parts, sleep=nap([]))
    finally:
        over.set()
    assert time.monotonic() - begun < 10
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


def test_new_validators_never_stand_beside_old_bytes(
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
    told = serve(lambda s, h: reply(h, page, Content_Type="text/html; charset=utf-8"))
    with pytest.raises(DownloadError, match=r"HTML, not ZIP.*down for repairs"):
        fetch_month(MONTH, tmp_path / "a", told.config)
    untold = serve(lambda s, h: reply(h, page, Content_Type="application/zip"))
    with pytest.raises(BadInput, match=r"not a ZIP \(bad signature.*likely HTML"):
        fetch_month(MONTH, tmp_path / "b", untold.config)
    assert len(told.asked) == len(untold.asked) == 1


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
    fetch_month(MONTH, tmp_path / "a", serve(answer).config, sleep=nap(waits))
    assert waits == [7.0, 7.0]
    refusing = serve(lambda s, h: reply(h, b"", 403))
    with pytest.raises(DownloadError, match="HTTP 403"):
        fetch_month(MONTH, tmp_path / "b", refusing.config)
    assert len(refusing.asked) == 1


def test_only_http_is_fetched(tmp_path: Path) -> None:
    config = ArchiveConfig(url_template=f"file://{tmp_path}/{{month}}.zip")
    with pytest.raises(DownloadError, match="only http"):
        fetch_month(MONTH, tmp_path / "out", config)
    for month in ("2024-13", "2020-05", "24-01", "2024-01/../x"):
        with pytest.raises(BadInput, match="not a month"):
            fetch_month(month, tmp_path / "out2")


GAME = b'[Event "E"]\n\n1. e4 *\n'


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (zipped(("../evil.pgn", GAME)), "outside"),
        (zipped(("/evil.pgn", GAME)), "outside"),
        (zipped(("a.pgn", GAME), ("..\\b.txt", b"")), "outside"),
        (zipped(("C:/b.pgn", GAME)), "outside"),
        (zipped(("a.pgn", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "symbolic link"),
        (zipped(("a.pgn", GAME), ("b/c.PGN", GAME)), "2 PGN files"),
        (zipped(("a.txt", GAME)), "0 PGN files"),
        (zipped(*((f"{i}.txt", b"") for i in range(1001))), "members"),
        (zipped(("a.pgn", b"1. e4 e5 " * 4_000_000)), "bomb"),
        (zipped(("a.pgn", b"<html>no</html>")), "does not hold PGN"),
        (zipped(("a.pgn", b"\0\1\2")), "does not hold PGN"),
        (
            zipped(("a.pgn", GAME * 9)).replace(b"\x50\x4b\x05\x06", b"\x50\x4b\x05\x07"),
            "broken ZIP",
        ),
        (b"PK\x03\x04 and then nothing", "broken ZIP"),
        (b"", "not a ZIP"),
    ],
)
def test_archives_that_are_refused(tmp_path: Path, data: bytes, rule: str) -> None:
    drop = tmp_path / "month.zip"
    drop.write_bytes(data)
    with pytest.raises(BadInput, match=rule):
        take_drop(drop, tmp_path / "out", MONTH)
    assert not (tmp_path / "evil.pgn").exists()


def test_a_damaged_member_fails_its_crc(tmp_path: Path, pgn: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.pgn", pgn)  # stored, so that only the CRC can tell
    data = bytearray(buffer.getvalue())
    data[2000] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(BadInput, match="CRC"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "a.pgn")


METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


@pytest.mark.parametrize("kind", [*METHODS, "zst"])
def test_damaged_archives_are_bad_input_or_whole(tmp_path: Path, pgn: bytes, kind: str) -> None:
    import zstandard

    text = pgn[:6000]
    if kind == "zst":
        data, drop = zstandard.ZstdCompressor(write_checksum=True).compress(text), "a.pgn.zst"
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", METHODS[kind]) as archive:
            archive.writestr("partie_é.pgn", text)
        data, drop = buffer.getvalue(), "a.zip"
    dice, refused = random.Random(f"mutants of {kind}"), 0
    for number in range(150):
        mutant = bytearray(data)
        # Half of them in the directory or the frame's head, which are small.
        edge = 60 if kind == "zst" else 140
        for _ in range(dice.randint(1, 4)):
            near = dice.random() < 0.5
            at = dice.randrange(edge) if near else dice.randrange(len(data))
            at = at if kind == "zst" or not near else len(data) - 1 - at
            mutant[at] = dice.choice([0, 0xFF, dice.randrange(256), mutant[at] ^ 1])
        if dice.random() < 0.1:
            del mutant[dice.randrange(len(mutant)) :]
        (tmp_path / drop).write_bytes(mutant)
        out = tmp_path / str(number)
        try:
            take_drop(tmp_path / drop, out, MONTH)
        except BadInput as error:
            assert str(tmp_path / drop) in str(error)
            refused += 1
        else:
            assert (out / "lichess_elite_2024-01.pgn").read_bytes() == text
    assert refused > 50


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_not_blamed_on_the_archive(
    tmp_path: Path, pgn: bytes, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", pgn)))

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("gristmill.chess.raw.unpack._write", full)
    with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
        unpack_zip(tmp_path / "a.zip", tmp_path / "x")
    assert caught.value.errno == code


def test_limits_hold_whatever_the_directory_says(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", GAME * 1000)))
    with pytest.raises(BadInput, match="over the limit"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "x", Limits(pgn_bytes=1000))
    (tmp_path / "a.pgn").write_bytes(GAME * 1000)
    with pytest.raises(BadInput, match="more than 1000 bytes"):
        take_drop(
            tmp_path / "a.pgn",
            tmp_path / "out",
            MONTH,
            ArchiveConfig(limits=Limits(pgn_bytes=1000)),
        )


@pytest.mark.parametrize("name", ["a.zip", "a.pgn", "a.pgn.zst"])
def test_a_month_without_a_byte_is_refused(tmp_path: Path, name: str) -> None:
    import zstandard

    empty = {
        "a.zip": zipped(("a.pgn", b"")),
        "a.pgn": b"",
        "a.pgn.zst": zstandard.ZstdCompressor().compress(b""),
    }
    (tmp_path / name).write_bytes(empty[name])
    with pytest.raises(BadInput, match=rf"{name}: holds an empty PGN"):
        take_drop(tmp_path / name, tmp_path / "out", MONTH)


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
        assert list(archive_laws(out)) == []
    for data, rule in (
        (kinds["c.pgn.zst"][:-9], "middle of a zstd frame"),
        (b"PK\x03\x04", "not zstd"),
        (kinds["c.pgn.zst"][:200] + b"\xff" * 300 + kinds["c.pgn.zst"][500:], "broken zstd"),
        (packer.compress(GAME * 2_000_000), "unpacks to more than"),
    ):
        (tmp_path / "bad.pgn.zst").write_bytes(data)
        with pytest.raises(BadInput, match=rule):
            take_drop(tmp_path / "bad.pgn.zst", tmp_path / f"bad{rule[:6]}", MONTH)
    with pytest.raises(BadInput, match=r"neither \.zip"):
        take_drop(tmp_path / "x.7z", tmp_path / "no", MONTH)


def test_month_lists() -> None:
    text = (
        "# elite\n\n2025-01\n https://x/lichess_elite_2025-02.zip?raw=1\n2025-01\n"
        "see lichess_elite_2024-12.zip\n"
    )
    assert parse_month_list(text) == ["2025-01", "2025-02", "2024-12"]
    for bad in ("2025-1", "lichess_elite_2025-01.zip.part", "2025-13"):
        with pytest.raises(BadInput, match=r"Unsupported month entry|not a month"):
            parse_month_list(bad)
    with pytest.raises(BadInput, match="no months"):
        parse_month_list("# nothing\n")


def test_due_months_of_a_tick() -> None:
    year = [f"2024-{m:02d}" for m in range(3, 13)] + ["2025-01", "2025-02"]
    tick = date(2025, 3, 5)
    assert due_months(tick, set(year)) == []
    assert due_months(tick, set(year) - {"2024-03", "2025-02"}) == ["2024-03", "2025-02"]
    assert due_months(date(2020, 8, 1), set()) == ["2020-06", "2020-07"]
    # Months that never come do not keep the others waiting: four weeks ask for all twelve.
    asked: set[str] = set()
    for week in range(4):
        due = due_months(date.fromordinal(tick.toordinal() + 7 * week), set())
        assert len(due) == 3
        asked.update(due)
    assert asked == set(year)
    assert due_months(tick, set()) == due_months(tick, [])
