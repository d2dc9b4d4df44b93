"""No variable of the caller names a vocabulary."""

import pytest


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("O200K_HARMONY_VOCAB_PATH", "TIKTOKEN_ENCODINGS_BASE"):
        monkeypatch.delenv(name, raising=False)
