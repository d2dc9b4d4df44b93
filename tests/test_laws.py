"""What laws name and what they count, and errors that end them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.laws import MOST, Few, or_unreadable


def _broken(*counts: int) -> Iterator[Violation]:
    for row in range(max(counts)):
        for law, count in zip("ab", counts, strict=False):
            if row < count:
                yield Violation(law, f"row {row}", "wrong")


def test_the_first_of_each_law_come_and_only_places_that_are_named_are_read() -> None:
    found = list(Few("file").of(_broken(MOST + 1234, MOST)))
    assert found == [*_broken(MOST, MOST), Violation("a", "file", "1,234 more rows")]
    few = Few("file", "{more:,} more of {count:,} rows")
    for each in _broken(MOST + 5, 2):
        few.add(each.law, each.where, each.found)
    of_law = {law: [each for each in _broken(MOST, 2) if each.law == law] for law in "ab"}
    rest = Violation("a", "file", f"5 more of {MOST + 5} rows")
    assert list(few.added()) == [*of_law["a"], rest, *of_law["b"]]
    few, read = Few("file"), []

    def places() -> Iterator[tuple[str, str]]:
        for row in range(MOST + 9):
            read.append(row)
            yield f"row {row}", "wrong"

    few.add("a", "row 0", "wrong")
    few.add_all("a", MOST + 9, places())
    few.add_all("a", MOST + 9, places())
    assert read == list(range(MOST - 1))
    assert [each.found for each in few.added()][MOST:] == [f"{MOST + 19} more rows"]


def _ended(error: Exception) -> Iterator[Violation]:
    yield Violation("a", "row 0", "wrong")
    raise error


def test_an_error_is_the_last_violation_unless_it_names_no_file_or_is_of_the_machine() -> None:
    bad = BadInput(Path("x.npy"), "is short", 7)
    named = list(or_unreadable(_ended(bad), law="files_open"))
    assert named[1:] == [Violation("files_open", bad.file, "is short")]
    for error in (bad, GristmillError("no key")):
        first, last = or_unreadable(_ended(error), "folder")
        assert first.where == "row 0"
        assert last == Violation("readable", "folder", str(error))
    with pytest.raises(GristmillError, match="no key"):
        list(or_unreadable(_ended(GristmillError("no key"))))
    with pytest.raises(OSError, match="disk"):
        list(or_unreadable(_ended(OSError("disk")), "folder"))
