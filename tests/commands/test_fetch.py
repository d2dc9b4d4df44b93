"""`gristmill fetch`, against a local server."""

from __future__ import annotations

from pathlib import Path

from gristmill.synth.raw import files
from tests.commands.drops import Command
from tests.synth.raw.test_hub import COMMIT, REPO, Hub, no_waiting_between_attempts, server

__all__ = ["no_waiting_between_attempts", "server"]  # fixtures


def test_the_command_fetches_and_goes_on(run: Command, data: Path, server: Hub) -> None:
    words = ["fetch", "synth", "--repo", REPO, "--revision", COMMIT, "--endpoint", server.address]
    server.sizes["synth_003.parquet"] = 2999
    done = run(*words, "--files", "3")
    assert done.exit_code == 1
    assert "synth_003.parquet" in done.output
    drop = data / "drops/synth/SYNTH-01234567"
    assert not files.is_complete(drop)
    server.sizes.clear()
    done = run(*words, "--files", "3")
    assert done.exit_code == 0, done.output
    assert "1 files downloaded (3,000 bytes), 2 kept" in done.output
    assert files.is_complete(drop)


def test_the_command_refuses_a_branch(run: Command) -> None:
    done = run("fetch", "synth", "--revision", "main")
    assert done.exit_code == 2
    assert "40 hex digits" in done.output
