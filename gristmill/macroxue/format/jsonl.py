"""The .jsonl files of a pack: one JSON object a line, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput, os_reason

# json.dumps would make an encoder for each line.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_text(value: Any) -> str:
    """A value as JSON without spaces; characters beyond ASCII are not escaped."""
    return _ENCODER.encode(value)


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a new .jsonl file."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(json_text(line) + "\n" for line in lines)


def iter_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a .jsonl file with their line numbers from 1, in bounded memory."""
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                yield number, _parse_line(path, number, text)
    except OSError as error:
        raise BadInput(path, f"cannot be read: {os_reason(error)}") from error


def _parse_line(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}", number) from error
    if not isinstance(line, dict):
        raise BadInput(path, "not a JSON object", number)
    return line


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All objects of a .jsonl file; errors as in `iter_lines`."""
    return [line for _, line in iter_lines(path)]


def run_of(line: Mapping[str, Any]) -> int | None:
    """The `run_id` of a line of trace.jsonl or warnings.jsonl; None if it is not an integer."""
    run_id = line.get("run_id")
    return run_id if type(run_id) is int else None
