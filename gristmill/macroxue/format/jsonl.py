"""The .jsonl files beside a pack's rows: one JSON object a line.

What their objects say is the business of the modules that write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput

# Made once: json.dumps would make one for every line.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_text(value: Any) -> str:
    """JSON without spaces, text as it is."""
    return _ENCODER.encode(value)


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a new file, one object a line."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(json_text(line) + "\n" for line in lines)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl file.

    Raises BadInput where it cannot be read, and naming the line that is no JSON object.
    """
    lines = []
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise BadInput(path, f"cannot be read: {error.strerror}") from error
    for number, text in enumerate(octets.splitlines(), 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(path, f"not JSON: {error}", number) from error
        if not isinstance(line, dict):
            raise BadInput(path, "not a JSON object", number)
        lines.append(line)
    return lines


def run_of(line: Mapping[str, Any]) -> int | None:
    """The id of the run that a line of trace.jsonl or warnings.jsonl names; None for none."""
    run_id = line.get("run_id")
    return run_id if type(run_id) is int else None
