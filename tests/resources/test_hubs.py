"""The hubs as resources, against local servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.inbox.hub import HubError
from gristmill.puzzles.raw import hub as puzzles_hub
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.synth.raw import files
from resources import CorporaHub, PuzzlesHub, ReasoningHub
from tests.reasoning.raw.test_hub import Hub as ReasoningServer
from tests.reasoning.raw.test_hub import corpora_server
from tests.synth.raw.test_hub import COMMIT, REPO, Hub, no_waiting_between_attempts, server

__all__ = ["corpora_server", "no_waiting_between_attempts", "server"]  # fixtures


def test_files_become_a_drop_named_by_repository_and_commit(server: Hub, tmp_path: Path) -> None:
    hub = CorporaHub(repo=REPO, revision=COMMIT, files=2, endpoint=server.address)
    fetched = hub.fetch(tmp_path)
    assert [path.name for path in fetched.files] == ["synth_001.parquet", "synth_002.parquet"]
    assert {path.parent for path in fetched.files} == {tmp_path / "SYNTH-01234567"}
    assert files.is_complete(tmp_path / hub.drop)


def test_the_token_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert CorporaHub().source.token is False
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert CorporaHub().source.token == "secret"
    assert "secret" not in str(CorporaHub().model_dump())
    monkeypatch.setenv("OTHER", "another")
    assert CorporaHub(token_variable="OTHER").source.token == "another"


def test_a_branch_is_no_revision() -> None:
    with pytest.raises(ValueError, match="40 hex digits"):
        _ = CorporaHub(revision="main").source


def test_every_path_of_every_corpus_is_checked(corpora_server: ReasoningServer) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    found = list(hub.check(list(CORPORA.values()), {"wiqa": "openai/gsm8k"}))
    assert [(name, place.kind) for name, place, _ in found][:2] == [
        ("gsm8k", "public"),
        ("gsm8k", "seed"),
    ]
    assert {name for name, _, reached in found if not isinstance(reached, str)} == {"gsm8k", "wiqa"}
    reasons = [reached for _, _, reached in found if isinstance(reached, str)]
    assert len(reasons) == 12
    assert any("kaist-ai/CoT-Collection" in reason for reason in reasons)


def test_the_chosen_place_is_fetched(corpora_server: ReasoningServer, tmp_path: Path) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    place = hub.reached(CORPORA["gsm8k"], None)
    assert place.place.kind == "public"
    assert hub.fetch(tmp_path, "gsm8k", place).downloaded == 2
    assert hub.reached(CORPORA["gsm8k"], "openai/gsm8k").place.kind == "mirror"
    assert hub.reached(CORPORA["gsm8k"], "openai/gsm8k", "seed").place.kind == "seed"
    with pytest.raises(ValueError, match="gsm8k has no mirror: choose one of public, seed"):
        hub.reached(CORPORA["gsm8k"], None, "mirror")
    with pytest.raises(HubError, match="google/reveal"):
        hub.reached(CORPORA["reveal"], None)


def test_the_token_of_the_corpora_comes_from_the_environment_too(
    corpora_server: ReasoningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = ReasoningHub(endpoint=corpora_server.address)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert hub.reached(CORPORA["gsm8k"], None).source.token is False
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert hub.reached(CORPORA["gsm8k"], None).source.token == "secret"
    assert "secret" not in str(hub.model_dump())


def test_the_known_repository_is_asked_or_the_one_that_is_given_with_the_token_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(puzzles_hub, "reached", lambda *arguments: asked.append(arguments))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    for source, repo in puzzles_hub.SOURCES.items():
        PuzzlesHub().reached(source)
        assert asked.pop() == (repo, "main", None, False)
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("OTHER", "another")
    PuzzlesHub(endpoint="https://hub.example").reached("mine", "me/mazes", "v2")
    assert asked.pop() == ("me/mazes", "v2", "https://hub.example", "secret")
    named = PuzzlesHub(token_variable="OTHER")
    named.reached("mine", "me/mazes")
    assert asked.pop() == ("me/mazes", "main", None, "another")
    assert "another" not in str(named.model_dump())
    with pytest.raises(KeyError, match="mine"):
        named.reached("mine")
