"""A local archive of elite months: what it holds, a test decides; it knows ranges and one ETag."""

import http.server
import threading


class ArchiveServer:
    """Serves `files` by name, 404 for others; `cut` bytes of an answer at most, where it is set."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.cut: int | None = None
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *args: object) -> None: ...

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._http.server_port}"

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        name, span = handler.path.lstrip("/"), handler.headers.get("Range", "")
        self.asked.append((name, span))
        body = self.files.get(name)
        if body is None:
            handler.send_error(404)
            return
        start = int(span[6:-1]) if span else 0
        handler.send_response(206 if span else 200)
        if span:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        handler.send_header("Content-Length", str(len(body) - start))
        handler.send_header("ETag", '"v1"')
        handler.end_headers()
        handler.wfile.write(body[start:][: self.cut])
        handler.close_connection = True

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
