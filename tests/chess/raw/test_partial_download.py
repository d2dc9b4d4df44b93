"""Validators of an unfinished download: they never describe other bytes."""

import http.server
import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import (
    fetch_month,
)
from gristmill.run.parts import PartStore
from tests.chess.raw.archives import MONTH, Server, nap, ranged, reply, zipped


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
