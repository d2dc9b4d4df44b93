"""Addresses of versions in a mirror."""

from __future__ import annotations

import pytest

from gristmill.mirror.address import MIRROR, Address, parsed
from gristmill.mirror.store import MirrorError


def test_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, "s3://b/p")
    assert parsed("mirror://a/b") == Address("s3://b/p", "a/b")
    assert parsed("mirror://a/b@p#3") == Address("s3://b/p", "a/b", "p", 3)
    assert parsed("mirror://a@p//x/y_tokens") == Address("s3://b/p", "a", "p", None, "x/y_tokens")
    assert parsed("mirror+/mnt/m!a#12//x") == Address("/mnt/m", "a", None, 12, "x")
    assert parsed("mirror+gs://b!a/b").url == "gs://b"
    assert (parsed("mirror://a@p").name, parsed("mirror://a").name) == ("a@p", "a")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mirror+/mnt/m", "write mirror://"),
        ("mirror+!a", "write mirror://"),
        ("mirror+/m!", "write mirror://"),
        ("mirror+/m!a@", "write mirror://"),
        ("mirror+/m!a/../b", "may hold only"),
        ("mirror+/m!a@..", "may hold only"),
        ("mirror+/m!a#0", "no number from 1"),
        ("mirror+/m!a#", "no number from 1"),
        ("mirror+/m!a#x", "no number from 1"),
        ("mirror+/m!a//../b", "no path in the artifact"),
        ("mirror://a", "set GRISTMILL_MIRROR"),
    ],
)
def test_another_form_is_refused(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRROR, raising=False)
    with pytest.raises(MirrorError, match=says):
        parsed(text)
