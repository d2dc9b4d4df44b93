"""Which example a command means.

The steps of an example: pieces of its text, and the picture of its page.
The tables of reasoning: which of them an id names, and its row.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gristmill import markdown
from gristmill.browse.opening import Files
from gristmill.browse.table import Token
from gristmill.corpora.corpus import PARTITIONS
from gristmill.families import Misuse, Request
from gristmill.reasoning.format import names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.read.trace import Place, chosen, parsed, traced
from gristmill.reasoning.render.steps import steps_of
from gristmill.reasoning.render.text import rendered
from gristmill.reasoning.show import picture, pieces, tables
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.published_root import publish_split, worked

PUBLISHED = ["gsm8k__train", "gsm8k__test", "wiqa__test"]


def request(sample: str, **options: str) -> Request:
    return Request(Path("data"), sample, options)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_an_id_leads_back_to_its_corpus_split_and_record(partition):
    corpus, split = partition.rsplit("__", 1)
    for record in (0, 12, 1_234_567):
        place = Place(corpus, split, record)
        assert parsed(place.example_id) == place
        assert place.partition == partition


@pytest.mark.parametrize("text", ["12", "gsm8k_test_12", "gsm8k_te st_000012", "gsm8k_test_-00012"])
def test_another_text_is_no_id(text):
    assert parsed(text) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "gsm8k_train_000003"),
        ({"split": "test"}, "gsm8k_test_000003"),
        ({"corpus": "wiqa"}, "wiqa_test_000003"),
        ({"corpus": "gsm8k", "split": "test"}, "gsm8k_test_000003"),
    ],
)
def test_a_number_belongs_to_the_first_split_that_the_options_leave(options, expected):
    assert chosen(request("3", **options), PUBLISHED).example_id == expected
    assert chosen(request("wiqa_test_000003", **options), PUBLISHED).corpus == "wiqa"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (request("x"), "neither a number nor an id"),
        (request("trip_test_000001"), "trip__test is not in data: it has gsm8k__train"),
        (request("1", corpus="trip"), "no split trip in data"),
        (request("1", corpus="other"), "no split other in data: it has gsm8k__train"),
    ],
)
def test_what_is_not_there_is_named(asked, message):
    with pytest.raises(Misuse, match=message):
        chosen(asked, PUBLISHED)
    with pytest.raises(Misuse, match="it has none"):
        chosen(request("1"), [])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("built")
    publish_split(root, "gsm8k", "test", worked(3), find(GPT2, vocabulary_root))
    return root


def facts(built: Path, sample: str, **options: Any) -> dict[str, object]:
    """What the first step of a trace says, which is about a token."""
    request = Request(built / names.TOKENIZED, sample, options)
    return dict(next(iter(traced("reasoning/gpt2_shards", request))).facts())


@pytest.mark.parametrize("token", [None, 0, 3])
def test_a_token_is_traced_by_its_number_and_the_first_one_without(built, token):
    found = facts(built, "gsm8k_test_000000", token=token)
    assert found == facts(built, "0", token=token)
    assert (found == facts(built, "0")) == (not token)


def test_a_shard_that_is_no_number_is_a_misuse(built):
    assert facts(built, "0", shard="0") == facts(built, "0")
    with pytest.raises(Misuse, match="--shard 0x1: must be the number of a shard"):
        facts(built, "0", shard="0x1")


HOSTILE = "a </text><script>alert(1)</script> \x1b[31m \u202e & \x00.\tb <![CDATA[ ]]> \u0301e."


def example(cot: str) -> tuple[AlignRow, str]:
    record = {"question": "Why?", "answer": "42", "cot": cot}
    text = rendered(record)
    steps = steps_of(record, text, "reveal")
    row = AlignRow(
        example_id="reveal_test_000000",
        sequence_index=0,
        shard_path="",
        text_offset_ranges=[list(pair) for pair in steps.ranges],
        token_offset_ranges=[],
        step_labels=steps.labels,
        confidence=steps.confidence,
        notes=f"{steps.rule}; pending manual audit",
    )
    return row, text.text


def drawn(row: AlignRow, text: str) -> list[str]:
    """The texts of the picture, which fits a page."""
    found = picture(row, text)
    assert len(markdown.image(found.title, found.svg)) <= markdown.INLINE
    root = ElementTree.fromstring(found.svg)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "rect", "text"}
    assert not re.search("[\x00-\x1f\u202e]", found.svg)
    return [str(each.text) for each in root.iter() if each.tag.endswith("text")]


def test_pieces_are_lines_with_their_steps_and_other_ranges_are_left_out():
    assert list(pieces(*example("So. It\nis.\n\nEnd."))) == [
        Token("Why?\n"),
        Token("\n"),
        Token("So. It\n", span="Step 1"),
        Token("is.", span="Step 1"),
        Token("\n"),
        Token("\n"),
        Token("End.", span="Step 2"),
        Token("\n"),
        Token("\n"),
        Token("Answer:\n"),
        Token("42", span="Answer"),
    ]
    row, text = example("So. It is.")
    wrong = [[0, 3], [2, 6], [5, 5], [-4, 2], [90, 99]]
    broken = replace(row, text_offset_ranges=wrong, step_labels=["Step 1"] * 5)
    assert "".join(each.text for each in pieces(broken, text)) == text
    assert len(drawn(broken, text)) == 4


def test_the_picture_has_a_line_for_each_step_under_confidence_and_rule():
    assert drawn(*example("So. It is.")) == [
        *("reveal_test_000000", "0.6 · heuristic:sentences; pe…"),
        *("Step 1: So.", "Step 2: It is.", "Answer: 42"),
    ]


@pytest.mark.parametrize("cot", [HOSTILE, "<<1=1>>. " * 50, "x" * 3000, "\u6c49" * 400])
def test_any_text_stays_text_and_fits_the_page(cot):
    row, text = example(cot)
    assert len(drawn(row, text)) >= 4
    assert "\x1b" not in "".join(each.text for each in pieces(row, text))


@pytest.mark.parametrize(
    ("asset", "name", "found"),
    [
        ("reasoning/normalized", "{}.jsonl", 12),
        ("reasoning/alignment", "{}.align.jsonl", ("example_id",)),
        ("reasoning/tokens", "{}/index.jsonl", ("example_id",)),
    ],
)
def test_an_id_is_looked_for_in_the_table_of_its_split_alone(tmp_path, asset, name, found):
    for split in ("my_math/train", "my_math/test", "other/train"):
        path = tmp_path / name.format(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    of = {each.name: each.named for each in tables(asset, tmp_path, Files(tmp_path))}
    for split in ("my_math__train", "my_math__test", "other__train"):
        named = of[split]
        assert named is not None
        right = found if split == "my_math__train" else ()
        assert named("my_math_train_000012") == right
        assert named("my_math") == named("") == ()
