"""Accounts: what became of each file of a drop, in words."""

from __future__ import annotations

from gristmill.contract import NothingToBuild
from gristmill.inbox.account import Account, Unread, Waits


def test_a_drop_without_splits_has_one_line():
    assert Account().lines == ["0 files taken"]
    assert Account({"": ["a"]}).lines == ["1 file taken"]
    names = [f"{number:04}" for number in range(1_234)]
    assert Account({"": names}).lines == ["1,234 files taken"]


def test_what_is_left_out_is_named_with_its_reason_and_equal_reasons_are_joined():
    left = {"b.txt": "no data", "a.txt": "no data", "old/": "a second copy"}
    assert Account({"": ["c"]}, left).lines == [
        "1 file taken; 3 left out: a.txt, b.txt (no data); old/ (a second copy)"
    ]


def test_each_split_has_a_line_and_so_has_what_is_left_out():
    account = Account({"train": ["a", "b"], "test": ["c"]}, {"d": "of no split"})
    assert account.lines == [
        "train: 2 files taken",
        "test: 1 file taken",
        "1 left out: d (of no split)",
    ]
    assert Account({"train": ["a"]}).lines == ["train: 1 file taken"]


def test_five_names_of_a_reason_are_shown_and_the_others_are_counted():
    def line(count: int) -> str:
        (only,) = Account({}, {f"{number:04}": "no data" for number in range(count)}).lines
        return only

    five = "0000, 0001, 0002, 0003, 0004"
    assert line(5) == f"0 files taken; 5 left out: {five} (no data)"
    assert line(1_006) == f"0 files taken; 1,006 left out: {five} and 1,001 more (no data)"


def test_names_of_a_drop_are_printable():
    (line,) = Account({}, {"\x1b[31m\n\udcff": "no data"}).lines
    assert line.isprintable()
    line.encode()


def test_the_account_of_a_split_has_its_files_and_all_that_is_left_out():
    account = Account({"train": ["a"], "test": ["b"]}, {"c": "no data"}, ["a note"])
    assert account.of("train") == Account({"": ["a"]}, {"c": "no data"}, ["a note"])
    assert account.of("validation").lines == ["0 files taken; 1 left out: c (no data)", "a note"]


def test_what_waits_and_what_nothing_reads_is_no_failure():
    assert issubclass(Waits, NothingToBuild)
    assert issubclass(Unread, NothingToBuild)
