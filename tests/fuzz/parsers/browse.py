"""What an address of `/browse` asks for: searches, filters, sorts and tokens of any text."""

import json
from functools import cache
from typing import Any
from urllib.parse import urlencode

from tests.fuzz.parser import TEN_THOUSAND, Parsers, file, split

PARSERS = Parsers()
_NAMES = ("q", "column", "rule", "value", "sort", "token", "start", "n", "tokens", "table")
_ROWS = [
    {"game_id": "a", "n": 1, "moves": "e2e4", "x": None},
    {"game_id": "ſß\u0301(", "n": 1.5, "moves": "", "x": [1]},
    {"game_id": "\\d+", "n": -(1 << 62), "moves": "é" * 40, "x": {"y": "z"}},
]


@cache
def _pages() -> Any:
    from gristmill.browse.web.app import _Pages
    from gristmill.browse.web.shelf import Shelf

    text = "\n".join(json.dumps(row, ensure_ascii=at > 1) for at, row in enumerate(_ROWS))
    return _Pages(Shelf(file("browse/valid_games.jsonl", text.encode()).parent))


@PARSERS.add(
    "browse_asked",
    "gristmill.browse.web.asked",
    "gristmill.browse.table",
    "gristmill.browse.source",
    covers=("gristmill.browse.lines",),
    inputs=TEN_THOUSAND,
    most_bytes=4000,
    words=(
        *(b"\xff\xfe", b"game_id", b"contains", b"moves", b"from", b"to", b"is", b"("),
        *(b"1e999",),
    ),
)
def asked(data: bytes) -> None:
    """An address gets a page or a sentence, whatever its parameters are."""
    from starlette.requests import Request

    pages = _pages()
    texts = [part.decode("utf-8", "replace") for part in split(data, len(_NAMES))]
    given = [(name, text) for name, text in zip(_NAMES, texts, strict=True) if text]
    if {"column", "rule", "value"} & {name for name, _ in given}:
        given = [*dict.fromkeys([*given, *((n, "") for n in _NAMES[1:4] if n not in dict(given))])]
    scope = {"type": "http", "query_string": urlencode(given).encode(), "path_params": {"path": ""}}
    for page in (pages.rows, pages.row, pages.trace):
        answer = pages.answer(page, Request(scope))
        assert answer.status_code in (200, 400, 404) and b"<" in answer.body
