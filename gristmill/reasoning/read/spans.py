"""Rows of spans of arithmetic: their keys, and reading them.

Source: `docs/formats/reasoning.md#spans`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput

_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **{"trace_id": str, "example_id": str, "example_idx": int, "raw_file": int, "ann_idx": int},
    **{"ann_text": str, "expr_str": str, "C": float, "log_abs_C": float, "magnitude": str},
    **dict.fromkeys(("characters", "bytes", "tokens"), dict),
    **{"result_token_count": int, "result_token_id": int, "skipped": str, "part": str},
}
KEYS: Final = tuple(_TYPES)
_ONE: Final = ("whole", "expression", "result", "inner_eq")
_RANGES: Final = (*_ONE, "outer_eq", "operands", "operators")


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of `<corpus>/<split>.spans.jsonl`, in its order.

    Raises BadInput with the line for one that is not of this form, or where there is no file.
    """
    if not path.is_file():
        raise BadInput(path, "is not there: build reasoning/spans")
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(path, f"is not JSON ({error}): build it again", number) from error
            if not _is_row(row):
                raise BadInput(path, "is no row of spans: build it again", number)
            yield row


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and tuple(row) == KEYS
        and all(type(row[name]) is kind for name, kind in _TYPES.items())
        and all(_are_ranges(row[unit]) for unit in ("characters", "bytes", "tokens"))
    )


def _are_ranges(found: dict[str, Any]) -> bool:
    if tuple(found) != _RANGES:
        return False
    several = [found["operands"], found["operators"]]
    if not all(isinstance(each, list) for each in several):
        return False
    outer = [] if found["outer_eq"] is None else [found["outer_eq"]]
    pairs = [*(found[name] for name in _ONE), *outer, *several[0], *several[1]]
    return all(
        isinstance(pair, list) and len(pair) == 2 and all(type(each) is int for each in pair)
        for pair in pairs
    )
