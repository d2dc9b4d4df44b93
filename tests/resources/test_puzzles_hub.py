"""The hub of the puzzles as a resource: which repository it asks, and with which token."""

from __future__ import annotations

import pytest
from resources.puzzles_hub import PuzzlesHub

from gristmill.puzzles.raw import hub


def test_the_known_repository_is_asked_or_the_one_that_is_given_with_the_token_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(hub, "reached", lambda *arguments: asked.append(arguments))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    for source, repo in hub.SOURCES.items():
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
