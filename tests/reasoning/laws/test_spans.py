"""Laws of spans: rows of another form, order, part, record or tokenizer are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from gristmill.provenance import Record
from tests.reasoning.exported_root import broken, build_dataset, built

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    chosen = {"tokenizer": "tiny", "control_traces": 3}
    return root, built(root, "reasoning/spans", "gsm8k__train", **chosen)


def _changed(number: int, **values: object) -> Callable[[Rows], object]:
    return lambda rows: rows[number].update(values)


def _range(unit: str, name: str, value: object) -> Callable[[Rows], object]:
    return lambda rows: rows[0][unit].update({name: value})


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (lambda _: None, []),
        (lambda rows: rows.pop(), ["records"]),
        (lambda rows: rows.append(dict(rows[-1])), ["order", "records"]),
        (lambda rows: rows.reverse(), ["order", "records"]),
        (lambda rows: rows[0].pop("C"), ["readable", "records"]),
        (_changed(0, ann_idx="0"), ["readable", "records"]),
        (_changed(1, part="neither"), ["parts", "records"]),
        (_changed(0, C=3.0), ["controls", "records"]),
        (_changed(0, result_token_count=9), ["ranges", "records"]),
        (_range("tokens", "result", [900, 901]), ["ranges", "records"]),
        (_range("characters", "operands", [[0, 1]]), ["ranges", "records"]),
        (_range("bytes", "outer_eq", [1]), ["readable", "records"]),
    ],
)
def test_rows_that_are_not_those_of_the_records_are_found(
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"gold_label":"unfaithful"', b'"gold_label":"faithful"'),
        (b'"split_seed":', b'"seed":'),
        (b"OPERATE", b"operate"),
        (b"\n]}\n", b"\n]}\n\n"),
        (b"\n]}\n", b"\n]}"),
    ],
)
def test_controls_that_are_not_those_of_the_rows_are_found(
    old: bytes, new: bytes, published: tuple[Path, Record]
) -> None:
    root, record = published
    path = root / "reasoning/spans/gsm8k/train.controls.json"
    before = path.read_bytes()
    assert old in before
    path.write_bytes(new.join(before.rsplit(old, 1)))
    try:
        (found,) = broken(root, record, shared=True)
    finally:
        path.write_bytes(before)
    assert found.startswith("controls: ")


def test_controls_that_are_missing_are_found(published: tuple[Path, Record]) -> None:
    root, record = published
    path = root / "reasoning/spans/gsm8k/train.controls.json"
    away = path.rename(path.with_suffix(".away"))
    try:
        (found,) = broken(root, record, shared=True)
    finally:
        away.rename(path)
    assert found.startswith("records: ")
    assert path.name in found
