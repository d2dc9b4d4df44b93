"""ZIPs of PGN and a local archive server for tests."""

import http.server
import io
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

from gristmill.chess import ArchiveConfig, FetchConfig
from tests.paths import CHECKOUT

MONTH = "2024-01"
GAME = b'[Event "E"]\n\n1. e4 *\n'


def zipped(*members: tuple[str, bytes], mode: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return buffer.getvalue()


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
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.config = ArchiveConfig(
            url_template=f"http://127.0.0.1:{self.http.server_port}/lichess_elite_{{month}}.zip",
            fetch=FetchConfig(timeout=60, attempts=4, backoff=0.5),
        )


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
    expected = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
    reply(handler, body[start:], 206 if start else 200, send=send, ETag=etag, **expected)


CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from pathlib import Path
from gristmill.chess import take_drop, validate
from gristmill.contract import BadInput
file = Path(sys.argv[1])
try:
    {call}
except BadInput as error:
    print(error)
"""


def said_within_a_gigabyte(call: str, file: Path) -> str:
    """What a call prints of bad input, in a process with 1 GiB of memory; it may name `file`."""
    command = [sys.executable, "-c", CHILD.format(call=call), str(file)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
