"""An S3 server for tests, and a proxy that cuts connections to it."""

import os
import socket
import struct
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tests.requirements import cannot_run

BUCKET = "bucket"


@dataclass(frozen=True)
class S3:
    """A running server. The environment of this process leads there."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """URL of a mirror in it."""
        return f"s3://{BUCKET}/some/prefix"

    def client(self, port: int | None = None) -> dict[str, str]:
        """The environment that leads to the server, or to another port, as of a proxy."""
        return {
            "AWS_ENDPOINT_URL": f"http://{self.host}:{port or self.port}",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def served() -> Iterator[S3]:
    """A server with an empty bucket; skips where moto is not installed."""
    try:
        from moto.server import ThreadedMotoServer
    except ImportError as error:
        cannot_run("s3", f"an S3 server needs `make engines`: {error}")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        s3 = S3(*server.get_host_and_port())
        for path in ("moto-api/reset", BUCKET):
            method = "PUT" if path == BUCKET else "POST"
            request = urllib.request.Request(f"http://{s3.host}:{s3.port}/{path}", method=method)
            urllib.request.urlopen(request, timeout=20).close()
        with mock.patch.dict(os.environ, s3.client()):
            yield s3
    finally:
        server.stop()


class CuttingProxy:
    """Passes connections on to a server, and resets some of them.

    cuts: how many of the next connections are reset.
    after: bytes that such a connection passes on before.
    answers: whether those bytes are of the server's answer; else of the request.
    wrong: passes on one answer with its last byte changed.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self.cuts = self.after = self.cut = 0
        self.answers, self.wrong = True, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            cut = self.cuts > 0
            self.cuts -= cut
            self.cut += cut
            for source, target, answers in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pump,
                    args=(source, target, cut and answers == self.answers, answers),
                    daemon=True,
                ).start()

    def _pump(self, source: Any, target: Any, cut: bool, answers: bool) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                if cut and passed + len(data) > self.after:
                    target.sendall(data[: max(0, self.after - passed)])
                    for each in (source, target):
                        each.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
                    break
                if answers and self.wrong and len(data) > 1000:
                    self.wrong -= 1
                    data = data[:-1] + bytes([data[-1] ^ 1])
                passed += len(data)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
