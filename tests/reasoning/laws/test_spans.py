"""Laws of spans: rows of another form, order or part, and wrong ranges are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from gristmill.provenance import Record
from tests.reasoning.exported_root import broken, build_dataset
from tests.reasoning.published_root import built

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    chosen = {"tokenizer": "tiny"}
    return root, built(root, "reasoning/spans", "gsm8k__train", **chosen)


def _changed(number: int, **values: object) -> Callable[[Rows], object]:
    return lambda rows: rows[number].update(values)


def _range(unit: str, name: str, value: object) -> Callable[[Rows], object]:
    return lambda rows: rows[0][unit].update({name: value})


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (lambda _: None, []),
        (lambda rows: rows.append(dict(rows[-1])), ["order"]),
        (lambda rows: rows.reverse(), ["order"]),
        (lambda rows: rows[0].pop("C"), ["readable"]),
        (_changed(0, ann_idx="0"), ["readable"]),
        (_changed(1, part="neither"), ["parts"]),
        (_changed(0, result_token_count=9), ["ranges"]),
        (_range("tokens", "result", [900, 901]), ["ranges"]),
        (_range("characters", "operands", [[0, 1]]), ["ranges"]),
        (_range("bytes", "outer_eq", [1]), ["readable"]),
    ],
)
def test_rows_that_break_a_law_are_found(
    change: Callable[[Rows], object], laws: list[str], published: tuple[Path, Record]
) -> None:
    root, record = published
    path = root / "reasoning/spans/gsm8k/train.spans.jsonl"
    before = path.read_bytes()
    rows = [orjson.loads(line) for line in before.splitlines()]
    change(rows)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    try:
        found = broken(root, record, shared=True)
    finally:
        path.write_bytes(before)
    assert sorted({each.partition(":")[0] for each in found}) == laws
