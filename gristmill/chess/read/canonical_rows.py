"""Any accepted row in the form that the compiled reader takes.

Source: `docs/formats/chess.md#accepted-rows`.
"""

from __future__ import annotations

import json
from typing import Any

from gristmill.chess.format.rows import moves_of

_PLIES_LIMIT = 10**9  # the compiled reader reads nine digits


def canonical_row(line: bytes) -> bytes:
    """A row as one line of JSON in the compiled reader's form, with a line feed.

    Raises ValueError where the line is not a JSON object.
    """
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    moves = moves_of(row)
    winner, result, plies = row.get("winner_side", "?"), row.get("result"), row.get("plies")
    headers = row.get("headers")
    texts_only = isinstance(headers, dict) and all(isinstance(v, str) for v in headers.values())
    canonical: dict[str, Any] = {
        "game_id": str(row.get("game_id") or ""),
        "source_file": str(row.get("source_file") or ""),
        "headers": headers if texts_only else {},
        "result": result if isinstance(result, str) else "*",
        "winner_side": winner if winner in ("W", "B", "D") else "?",
        "plies": plies if type(plies) is int and 0 <= plies < _PLIES_LIMIT else len(moves),
        "moves": moves,
    }
    return json.dumps(canonical).encode() + b"\n"
