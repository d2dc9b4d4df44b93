"""Which example a command means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gristmill.corpora.corpus import PARTITIONS
from gristmill.families import Misuse, Request
from gristmill.reasoning.format import names
from gristmill.reasoning.show.place import Place, chosen, parsed, traced_token
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2
from tests.reasoning.aligned_root import worked
from tests.reasoning.published_root import publish_split

PUBLISHED = ["gsm8k__train", "gsm8k__test", "wiqa__test"]


def request(sample: str, **options: str) -> Request:
    return Request(Path("data"), sample, options)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_an_id_leads_back_to_its_corpus_split_and_record(partition: str) -> None:
    corpus, split = partition.rsplit("__", 1)
    for record in (0, 12, 1_234_567):
        place = Place(corpus, split, record)
        assert parsed(place.example_id) == place
        assert place.partition == partition


@pytest.mark.parametrize("text", ["12", "gsm8k_test_12", "gsm8k_te st_000012", "gsm8k_test_-00012"])
def test_another_text_is_no_id(text: str) -> None:
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
def test_a_number_belongs_to_the_first_split_that_the_options_leave(
    options: dict[str, str], expected: str
) -> None:
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
def test_what_is_not_there_is_named(asked: Request, message: str) -> None:
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
    return dict(next(iter(traced_token(request))).facts())


@pytest.mark.parametrize("token", [None, 0, 3])
def test_a_token_is_traced_by_its_number_and_the_first_one_without(
    built: Path, token: int | None
) -> None:
    found = facts(built, "gsm8k_test_000000", token=token)
    assert found == facts(built, "0", token=token)
    assert (found == facts(built, "0")) == (not token)


def test_a_shard_that_is_no_number_is_a_misuse(built: Path) -> None:
    assert facts(built, "0", shard="0") == facts(built, "0")
    with pytest.raises(Misuse, match="--shard 0x1: must be the number of a shard"):
        facts(built, "0", shard="0x1")
