"""Lists of names in messages are short."""

from __future__ import annotations

from gristmill.inbox.listing import named_few


def test_ten_names_are_listed_and_the_others_are_counted() -> None:
    names = [str(number) for number in range(11)]
    assert named_few(names[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert named_few(names) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 1 more"
