"""A test that cannot run is skipped by a person's side and fails under CI."""

import pytest

from tests.requirements import cannot_run


def test_what_cannot_run_is_skipped_here_and_fails_under_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such tool"):
        cannot_run("no such tool")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such tool; under CI"):
        cannot_run("no such tool")
