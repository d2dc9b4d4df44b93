"""A test that cannot run is skipped, or fails where the machine must have what it needs."""

from pathlib import Path

import pytest

from tests.requirements import VARIABLE, cannot_run, missing_real_data


def test_a_test_without_what_it_needs_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such tool"):
        cannot_run("tool", "no such tool")


def test_a_test_without_what_is_required_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "strace tool")
    with pytest.raises(pytest.fail.Exception, match="no such tool; GRISTMILL_REQUIRE requires"):
        cannot_run("tool", "no such tool")


def test_real_data_that_is_required_and_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("macroxue", "chess", "reasoning", "puzzles"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv(VARIABLE, raising=False)
    assert missing_real_data(tmp_path) == ""
    monkeypatch.setenv(VARIABLE, "real-data")
    assert missing_real_data(tmp_path).endswith(f"{tmp_path} has no synth")
    (tmp_path / "synth").mkdir()
    assert missing_real_data(tmp_path) == ""
