"""The line that a push says of each artifact."""

from __future__ import annotations

from dataclasses import replace

from gristmill.mirror.layout import Version
from gristmill.mirror.published import Pushed

VERSION = Version(
    number=3,
    artifact="family/tiny",
    asset="test/tiny",
    partition="p1",
    data_version="d" * 64,
    fingerprint="f" * 64,
    record="e" * 64,
    outer=None,
    manifest="a" * 64,
    total_bytes=2_000,
    files=1_234,
    writer="w",
    pushed="2026-11-26T00:00:00Z",
)


def test_a_push_says_what_it_made_what_stood_and_why_it_failed() -> None:
    made = Pushed("family/tiny", VERSION, created=True, sent_bytes=1_000)
    sha256 = f"sha256 {VERSION.sha256}"
    begins = "pushed     family/tiny: version 3, 1,234 files, 2.0 kB, 1.0 kB sent, "
    assert str(made) == begins + sha256
    after = replace(made, unreadable="no JSON")
    assert str(after) == f"{begins}{sha256}; it comes after one that cannot be read: no JSON"
    stood = replace(made, created=False, sent_bytes=0)
    assert str(stood) == f"unchanged  family/tiny: version 3, {sha256}"
    again = replace(made, created=False)
    assert str(again) == f"unchanged  family/tiny: version 3, 1.0 kB sent again, {sha256}"
    failed = Pushed("family/tiny", None, error="no room")
    assert str(failed) == "failed     family/tiny: no room"
