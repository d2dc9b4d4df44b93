"""Files of JSON Lines, as drops hold them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows, a line each, into a file whose folder need not be there; returns the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
