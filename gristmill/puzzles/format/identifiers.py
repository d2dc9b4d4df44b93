"""`identifiers.json`: the names of the identifiers.

Source: docs/formats/puzzles.md#identifiers
"""

from __future__ import annotations

import json
from pathlib import Path

from gristmill.contract import BadInput


def read_identifiers(path: Path) -> list[str]:
    """Read the list of names. Raises BadInput where the file is missing or holds something else."""
    try:
        read = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is not JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(name, str) for name in read):
        raise BadInput(path, "must hold a list of names")
    return read
