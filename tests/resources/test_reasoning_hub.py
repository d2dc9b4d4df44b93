"""The hub of the reasoning corpora, against a local server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.inbox.hub import HubError
from gristmill.reasoning.format.corpora import CORPORA
from resources import ReasoningHub
from tests.reasoning.raw.test_hub import Hub, corpora_server

__all__ = ["corpora_server"]  # a fixture


def test_every_path_of_every_corpus_is_checked(corpora_server: Hub) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    found = list(hub.check(list(CORPORA), {"wiqa": "openai/gsm8k"}))
    assert [(name, place.kind) for name, place, _ in found][:2] == [
        ("gsm8k", "public"),
        ("gsm8k", "seed"),
    ]
    assert {name for name, _, reached in found if not isinstance(reached, str)} == {"gsm8k", "wiqa"}
    reasons = [reached for _, _, reached in found if isinstance(reached, str)]
    assert len(reasons) == 12
    assert any("kaist-ai/CoT-Collection" in reason for reason in reasons)


def test_the_chosen_place_is_fetched(corpora_server: Hub, tmp_path: Path) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    place = hub.reached("gsm8k", None)
    assert place.place.kind == "public"
    assert hub.fetch(tmp_path, "gsm8k", place).downloaded == 2
    assert hub.reached("gsm8k", "openai/gsm8k").place.kind == "mirror"
    assert hub.reached("gsm8k", "openai/gsm8k", "seed").place.kind == "seed"
    with pytest.raises(ValueError, match="gsm8k has no mirror: choose one of public, seed"):
        hub.reached("gsm8k", None, "mirror")
    with pytest.raises(HubError, match="google/reveal"):
        hub.reached("reveal", None)


def test_the_token_comes_from_the_environment_alone(
    corpora_server: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert hub.reached("gsm8k", None).source.token is False
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert hub.reached("gsm8k", None).source.token == "secret"
    assert "secret" not in str(hub.model_dump())
