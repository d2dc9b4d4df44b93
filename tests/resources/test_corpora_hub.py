"""The hub as a resource, against a local server."""

from pathlib import Path

import pytest

from gristmill.synth.raw import files
from resources import CorporaHub
from tests.synth.raw.test_hub import COMMIT, REPO, Hub, no_waiting_between_attempts, server

__all__ = ["no_waiting_between_attempts", "server"]  # fixtures


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
