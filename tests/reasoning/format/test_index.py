"""Lines of the index: bytes, round trip, and what is refused."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.format import index, names
from gristmill.reasoning.format.index import Numbers, Selection, numbers_path, write_numbers
from gristmill.reasoning.read.shard_reader import ShardReader
from tests.reasoning.supervised_folder import write_supervised


def test_an_example_must_have_one_of_the_values_of_each_extra() -> None:
    selection = Selection.of({"difficulty": ["hard", 3], "subject": "algebra"})
    assert selection.takes({"extras": {"difficulty": 3, "subject": "algebra"}})
    assert selection.takes({"extras": {"difficulty": "hard", "subject": "algebra", "source": 1}})
    for extras in ({"difficulty": "3", "subject": "algebra"}, {"difficulty": 3}, {}, None):
        assert not selection.takes({"extras": extras})
    assert not selection.takes({})


def test_no_selection_takes_all() -> None:
    for nothing in (None, {}):
        assert not Selection.of(nothing)
        assert Selection.of(nothing).takes({})


def test_a_selection_has_one_text_whatever_its_order() -> None:
    one = Selection.of({"subject": ["b", "a"], "difficulty": "x"})
    assert str(one) == '{"difficulty": ["x"], "subject": ["a", "b"]}'
    assert str(Selection.of({"difficulty": ["x"], "subject": {"a", "b"}})) == str(one)


def test_what_the_index_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="the index has no 'corpus'; it has difficulty"):
        Selection.of({"corpus": "wiqa"})
    made = write_supervised(tmp_path, examples=9)
    with pytest.raises(BadInput, match=r'index\.jsonl: no example has {"difficulty": \["none"\]}'):
        ShardReader(made.root, select={"difficulty": "none"})


def test_a_state_of_another_selection_is_refused(tmp_path: Path) -> None:
    made = write_supervised(tmp_path)
    state = ShardReader(made.root, select={"difficulty": "hard"}).state()
    with pytest.raises(GristmillError, match="its select is"):
        ShardReader(made.root).load_state(state)
    with pytest.raises(GristmillError, match="its select is"):
        ShardReader(made.root, select={"difficulty": "easy"}).load_state(state)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    made = write_supervised(tmp_path, examples=5)
    (made.root / names.split_index(made.corpus, made.split)).write_text("{}\n[")
    with pytest.raises(BadInput, match=r"index\.jsonl: cannot be read"):
        ShardReader(made.root, select={"difficulty": "hard"})


SHARD = "reasoning/tokenized/gpt2/wiqa/test/shard_00000.pt"
LINE = (
    f'{{"example_id": "wiqa_test_000003", "shard_path": "{SHARD}", "sequence_index": 4, '
    '"token_start": 6, "num_tokens": 3, "num_tokens_with_eos": 4, "spans": '
    f'[{{"shard_path": "{SHARD}", "sequence_index": 4, "start": 6, "end": 8}}, '
    f'{{"shard_path": "{SHARD}", "sequence_index": 5, "start": 0, "end": 2}}], "rank": 1, '
    f'"text_sha256": "{"ab" * 32}", "extras": {{"difficulty": "größer"}}}}\n'
)


def test_a_line_is_read_as_it_is_written(tmp_path: Path) -> None:
    path, values = tmp_path / "index.jsonl", json.loads(LINE)
    path.write_text(LINE * 2)
    assert list(index.objects(path)) == [values, values]
    assert index.extras_text(values["extras"]) == ', "extras": {"difficulty": "größer"}'
    assert index.extras_text({}) == ""


def test_extras_are_what_a_record_has() -> None:
    record = {"difficulty": None, "subject": "", "dataset": 0, "source": "s", "context": "c"}
    assert index.extras_of(record, index.SELECTORS) == {"dataset": 0, "source": "s"}
    assert index.extras_of(record, ("subject",)) == {}


def changed(**values: Any) -> dict[str, Any]:
    found: dict[str, Any] = {**json.loads(LINE), **values}
    return found


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([], "must be an object"),
        ({}, "the keys must be example_id, shard_path"),
        (dict(reversed(changed().items())), "the keys must be"),
        (changed(more=1), "the keys must be"),
        (changed(rank=True), "rank: must be of type int"),
        (changed(num_tokens="3"), "num_tokens: must be of type int"),
        (changed(extras=[]), "extras: must be an object"),
        (changed(spans={}), "spans: must be of type list"),
        (changed(spans=[]), "spans: must not be empty"),
        (changed(spans=[5]), "spans: must be an object"),
        (changed(spans=[{"shard_path": "a"}]), "spans: the keys must be"),
        (
            changed(spans=[{"shard_path": "a", "sequence_index": 0, "start": 0, "end": 1.0}]),
            "spans: end: must be of type int",
        ),
    ],
)
def test_another_line_is_refused_by_its_number(tmp_path: Path, values: Any, rule: str) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(LINE.encode() + json.dumps(values).encode() + b"\n")
    with pytest.raises(BadInput, match=re.escape(f"index.jsonl:2: is no line of an index: {rule}")):
        list(index.objects(path))


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b'{"rank": NaN}'])
def test_a_line_that_is_no_json_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(BadInput, match="is no line of an index"):
        list(index.objects(path))


@pytest.mark.parametrize("prefix", ["reasoning", "datasets", "a/b", "tokenized/gpt2"])
def test_the_path_below_the_shards_does_not_depend_on_the_prefix(prefix: str) -> None:
    path = index.shard_path(prefix, "wiqa/test/shard_00000.pt")
    assert path == f"{prefix}/tokenized/gpt2/wiqa/test/shard_00000.pt"
    assert index.below_tokenized(path) == "wiqa/test/shard_00000.pt"


def test_a_path_elsewhere_is_no_shard() -> None:
    with pytest.raises(ValueError, match="is not below reasoning/tokenized/gpt2 or reas"):
        index.below_tokenized("wiqa/test/shard_00000.pt")


def test_numbers_are_the_places_that_nothing_else_takes(tmp_path: Path) -> None:
    jsonl, draw = tmp_path / "train.jsonl", random.Random(1)
    for records in (*range(1, 20), 400):
        taken = draw.sample(range(2 * records), draw.randrange(records + 1))
        left = [number for number in range(3 * records) if number not in taken][:records]
        numbers_path(jsonl).unlink(missing_ok=True)
        has_gaps = left != [*range(records)]
        assert write_numbers(jsonl, taken, records) == numbers_path(jsonl).exists() == has_gaps
        numbers = Numbers(jsonl)
        numbers.check(records)
        assert [numbers.of(at) for at in range(records + 2)] == [*left, left[-1] + 1, left[-1] + 2]
        assert [numbers.place(number) for number in left] == [*range(records)]
        assert numbers.between(1, records).tolist() == left[1:]
        if has_gaps:
            assert {numbers.place(each) for each in taken if each < left[-1]} <= {None}
            assert np.load(numbers_path(jsonl)).tolist() == left


def test_numbers_of_other_records_are_refused(tmp_path: Path) -> None:
    jsonl = tmp_path / "train.jsonl"
    assert not write_numbers(jsonl, [0, 1], 0)
    assert write_numbers(jsonl, [0], 3)
    assert numbers_path(jsonl).name == "train.numbers.npy"
    with pytest.raises(BadInput, match=r"has 3 numbers of 4 records: build the partition again"):
        Numbers(jsonl).check(4)
    np.save(numbers_path(jsonl), np.zeros((3, 2), np.int64))
    with pytest.raises(BadInput, match=r"expected int64 \[records\]"):
        Numbers(jsonl)
