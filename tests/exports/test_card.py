"""The head of a card, and a README of the person's own."""

from pathlib import Path

import pytest
import yaml

from gristmill.contract import BadInput
from gristmill.exports.card import features, parted, size_category
from gristmill.exports.table import lines
from gristmill.families import Column
from tests.json_lines import jsonl as written


def test_features_are_the_columns_of_all_lines(tmp_path):
    rows = [{"a": None, "n": 1}, {"a": "x", "n": 2, "words": ["y"], "tags": {"k": 1}}]
    path = written(tmp_path / "a.jsonl", list(rows))
    columns = [Column("n", "integer", ""), Column("tags", "object", "")]
    split = lines(path, columns, name="train", file="a.jsonl")
    assert features([split]) == [
        {"name": "n", "dtype": "int64"},
        {"name": "tags", "dtype": "json"},
        {"name": "a", "dtype": "string"},
        {"name": "words", "list": "string"},
    ]
    (batch,) = split.batches()
    assert batch.to_pylist() == [
        {"n": 1, "tags": None, "a": None, "words": None},
        {"n": 2, "tags": '{"k":1}', "a": "x", "words": ["y"]},
    ]


@pytest.mark.parametrize(("last", "rule"), [({"a": 1}, "a is int"), ([1], "no object")])
def test_a_line_that_breaks_the_columns_is_named(last, rule, tmp_path):
    path = written(tmp_path / "a.jsonl", [{"a": "x"}, last])
    with pytest.raises(BadInput, match=rule) as found:
        lines(path, [], name="train").schema()
    assert found.value.row == 2


@pytest.mark.parametrize(
    ("rows", "category"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (9_999, "1K<n<10K"),
        (10_000, "10K<n<100K"),
        (10**11, "100B<n<1T"),
        (10**12, "n>1T"),
    ],
)
def test_the_size_is_that_of_the_hub(rows, category):
    assert size_category(rows) == category


def test_a_readme_isparted_as_it_stands():
    assert parted("# Mine\n", Path()) == ("", "# Mine\n")
    head, body = parted("---\nlicense: mit # ours\n---\n# Mine\n---\n", Path())
    assert yaml.safe_load(head) == {"license": "mit"}
    assert (head, body) == ("license: mit # ours\n", "# Mine\n---\n")


@pytest.mark.parametrize("text", ["---\na: [\n---\n", "---\na: 1\n", "---\n- a\n---\n"])
def test_a_head_that_cannot_be_completed_is_refused(text):
    with pytest.raises(BadInput, match="mend it"):
        parted(text, Path("place"))
