"""A sample PGN and local archive servers."""

import http.server
from collections.abc import Callable, Iterator

import pytest

from gristmill.chess.samples import write_month
from tests.chess.raw.archives import MONTH, Server


@pytest.fixture(scope="module")
def pgn(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pgn") / "x.pgn"
    write_month(path, MONTH, 60, 5)
    return path.read_bytes()


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
