"""The table `[inbox]`."""

from __future__ import annotations

import pytest

from gristmill.settings.inboxes import InboxSettings


@pytest.mark.parametrize("roots", [("",), ("/mnt/runs", " ")])
def test_an_empty_root_is_refused(roots: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="roots has an empty text"):
        InboxSettings(follow_links=True, roots=roots)
    assert InboxSettings(follow_links=True, roots=(".",)).roots == (".",)
