"""Tables of Harmony shards and Megatron datasets, as the sample browser shows them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.browse.opening import open_table
from gristmill.contract import GristmillError
from gristmill.synth import show
from gristmill.untrusted import child
from tests.synth.conversations import as_json, conversation


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch, vocabulary: Path) -> None:
    """A process for each row made a page of 25 rows take seconds."""
    monkeypatch.setattr(show, "vocabulary_of", lambda _: vocabulary)
    monkeypatch.setattr(child, "stream", lambda *_, **__: pytest.fail("a process was started"))


@pytest.mark.usefixtures("no_child")
def test_rows_of_a_harmony_shard_are_drawn_from_the_page_that_was_read(
    write_rows: Callable[..., Path],
) -> None:
    texts = [conversation(f"ask {n}", "think", f"say {n}") for n in range(3)]
    shard = write_rows([(f"id {n}", as_json(text)) for n, text in enumerate(texts)])
    rows = open_table(shard.parent, "synth/harmony").rows(0, 25)
    assert len(rows) == 3
    for number, row in enumerate(rows):
        shown = "".join(token.text for token in row.tokens())
        assert f"ask·{number}" in shown
        assert f"say·{number}" in shown
        (picture,) = row.pictures()
        assert f">07 row {number} · id {number}<" in picture.svg


@pytest.mark.usefixtures("no_child")
def test_a_row_that_cannot_be_rendered_says_so_and_the_others_are_drawn(
    write_rows: Callable[..., Path],
) -> None:
    shard = write_rows([("a", "[]"), ("b", as_json(conversation("q", "r", "f")))])
    bad, good = open_table(shard.parent, "synth/harmony").rows(0, 25)
    with pytest.raises(GristmillError, match=f"{shard.name}:1: synth_id 'a'"):
        bad.tokens()
    assert good.tokens()
