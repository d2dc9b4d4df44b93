"""The hub as a resource, and the command that fetches from it, against a local server."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import operate
from gristmill.synth.raw import files
from resources import CorporaHub
from tests.synth.raw.test_hub import COMMIT, REPO, Hub, no_waiting, server

__all__ = ["no_waiting", "server"]  # fixtures


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


def test_the_command_fetches_and_goes_on(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["fetch", "synth", "--repo", REPO, "--revision", COMMIT, "--endpoint", server.address]
    server.sizes["synth_003.parquet"] = 2999
    done = CliRunner().invoke(operate.main, [*words, "--files", "3"])
    assert done.exit_code == 1
    assert "synth_003.parquet" in done.output
    drop = tmp_path / "drops/synth/SYNTH-01234567"
    assert not files.is_complete(drop)
    server.sizes.clear()
    done = CliRunner().invoke(operate.main, [*words, "--files", "3"])
    assert done.exit_code == 0, done.output
    assert "1 files came (3,000 bytes), 2 were there" in done.output
    assert files.is_complete(drop)


def test_the_command_refuses_a_branch() -> None:
    done = CliRunner().invoke(operate.main, ["fetch", "synth", "--revision", "main"])
    assert done.exit_code == 2
    assert "40 hex digits" in done.output
