"""Errors of the disk and the network, in the words of the user."""

import errno
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from gristmill.contract import (
    BadInput,
    FileFailed,
    FileNote,
    Summary,
    counts_of,
    in_words,
    is_of_machine,
    os_reason,
)

CURES = {
    errno.EIO: "Input/output error: the disk or the network failed (see `dmesg`): mend it, then "
    "bring the file back from a copy, or build it again",
    errno.ESTALE: "Stale file handle: the file server replaced it or was started again: do it "
    "again; where it comes back, mount the file system again",
    errno.EROFS: "Read-only file system: make the file system writable; Linux makes it read-only "
    "after an error of the disk (see `dmesg`)",
    errno.ENOSPC: "No space left on device: make room there, or raise the quota or the limit of "
    "file sizes",
}


@pytest.mark.parametrize("number", CURES, ids=errno.errorcode.__getitem__)
def test_an_error_of_the_machine_names_the_file_and_a_cure(number):
    error = OSError(number, os.strerror(number), "drops/x/a.pgn")
    assert is_of_machine(error) and os_reason(error) == CURES[number]
    said = in_words(error, "elsewhere")
    assert type(said) is FileFailed and str(said) == f"drops/x/a.pgn: {CURES[number]}"
    nameless = in_words(OSError(number, os.strerror(number)), "a file in data")
    assert str(nameless) == f"a file in data: {CURES[number]}"


def test_other_errors_stay_and_the_counts_of_a_summary_are_its_numbers():
    for error in (
        FileNotFoundError(errno.ENOENT, "No such file or directory", "a"),
        OSError("invalid data"),
        BadInput("a", "is wrong"),
        ValueError("x"),
    ):
        assert in_words(error) is error and not is_of_machine(error)
    assert os_reason(FileNotFoundError(errno.ENOENT, "No such file", "a")) == "No such file"
    assert os_reason(OSError("invalid data")) == "invalid data"
    summary = Milled({"a": FileNote()}, 3, 0.5, True, "wind", {"oats": 0, "rye": 7, "mill": "wind"})
    assert counts_of(summary) == {"sacks": 3, "share": 0.5, "grains/oats": 0, "grains/rye": 7}


@dataclass(frozen=True)
class Milled(Summary):
    sacks: int
    share: float
    is_fine: bool
    mill: str
    grains: Mapping[str, int | str]


@pytest.mark.parametrize(("row", "text"), [(None, "a.gz: is no grain"), (7, "a.gz:7: is no grain")])
def test_bad_input_names_file_row_and_rule_from_a_worker_process_too(row, text):
    error = BadInput("a.gz", "is no grain", row)
    for found in (error, pickle.loads(pickle.dumps(error))):
        assert (str(found), found.file, found.row, found.rule) == (text, "a.gz", row, "is no grain")
