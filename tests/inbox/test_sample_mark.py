"""The mark of a sample: its own files are left out where real ones are, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.inbox import Shape, State, look
from gristmill.inbox.listing import survey
from gristmill.inbox.sample_mark import (
    LEFT_OUT,
    is_only_sample,
    not_samples,
    own_files,
    real_paths,
    sums_of,
)
from tests.marked import mark
from tests.toy_inbox import asked

OWN = {"a.csv": b"invented 1\n", "deep/b.csv": b"invented 2\n"}


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    drop = tmp_path / "drops" / "gsm8k"
    (drop / "deep").mkdir(parents=True)
    for name, octets in OWN.items():
        (drop / name).write_bytes(octets)
    (drop / ".done").touch()
    return mark(drop)


def test_a_mark_is_a_list_that_sha256sum_checks_without_other_marks(drop: Path) -> None:
    assert (drop / ".sample").read_text().splitlines() == [
        "a84032cd239b28bb17469ed85574df8e7bf2b5fb2389fb954a883acd9e8440f4  a.csv",
        "fa743b9640f069bd8b679c4ee36b4182662f1183b2a350d40daff1bb615d80b8  deep/b.csv",
    ]


def test_a_sample_alone_is_read_whole(drop: Path) -> None:
    assert own_files(drop) == set(OWN)
    assert not_samples(drop, OWN) == {}
    assert not_samples(drop, []) == {}


def test_a_real_file_takes_the_place_of_all_files_of_the_sample(drop: Path) -> None:
    (drop / "mine.csv").write_text("real\n")
    assert not_samples(drop, [*OWN, "mine.csv"]) == {"a.csv": LEFT_OUT, "deep/b.csv": LEFT_OUT}


def test_a_file_that_no_family_reads_takes_no_place(drop: Path) -> None:
    (drop / "README.md").write_text("mine\n")
    assert not_samples(drop, OWN) == {}


@pytest.mark.parametrize("octets", [b"invented 2\n", b"invented 1", b""])
def test_a_file_of_the_list_with_other_bytes_is_real(drop: Path, octets: bytes) -> None:
    (drop / "a.csv").write_bytes(octets)
    assert own_files(drop) == {"deep/b.csv"}
    assert not_samples(drop, OWN) == {"deep/b.csv": LEFT_OUT}


def test_a_file_that_was_changed_and_has_its_size_and_times_again_is_real(drop: Path) -> None:
    before = (drop / "a.csv").stat()
    assert own_files(drop) == set(OWN)
    (drop / "a.csv").write_bytes(b"invented 3\n")
    os.utime(drop / "a.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert own_files(drop) == {"deep/b.csv"}


def test_a_link_to_equal_bytes_is_a_real_file(drop: Path, tmp_path: Path) -> None:
    (drop / "a.csv").rename(tmp_path / "elsewhere.csv")
    (drop / "a.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert own_files(drop) == {"deep/b.csv"}


def test_a_file_of_the_list_that_is_gone_changes_nothing(drop: Path) -> None:
    (drop / "a.csv").unlink()
    assert own_files(drop) == {"deep/b.csv"}
    assert not_samples(drop, ["deep/b.csv"]) == {}


def test_a_large_file_is_never_hashed_for_a_mark(tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    for size, own in ((16 << 20, {"big.csv"}), ((16 << 20) + 1, set())):
        big.write_bytes(b"")
        os.truncate(big, size)
        (tmp_path / ".sample").write_text(f"{sha256_file(big)}  big.csv\n")
        assert own_files(tmp_path) == own


@pytest.mark.parametrize(
    ("mark", "rule"),
    [
        ("no list\n", "line 1: must be 64 hex digits, two spaces and a name"),
        (f"{'0' * 64}  ../a.csv\n", "line 1: '../a.csv' must be a path in the drop"),
        ("", "lists no file"),
    ],
)
def test_a_damaged_mark_is_refused_with_its_cure(drop: Path, mark: str, rule: str) -> None:
    (drop / ".sample").write_text(mark)
    with pytest.raises(BadInput) as error:
        not_samples(drop, OWN)
    assert error.value.file == str(drop / ".sample")
    assert rule in error.value.rule
    assert error.value.rule.endswith("which files are of a sample: remove it if none is")


def test_a_mark_is_no_part_of_the_drop(drop: Path) -> None:
    marked = survey(drop)
    (drop / ".sample").unlink()
    assert (marked.signature, marked.files) == (survey(drop).signature, 2)


@pytest.fixture
def months(tmp_path: Path) -> Path:
    (tmp_path / "sample_2024-01.pgn").write_text("invented")
    mark(tmp_path / "sample_2024-01.pgn")
    return tmp_path


MONTHS = Shape((".pgn", ".zip"), key_in=lambda name: "2024-01" if "2024-01" in name else None)


def taken(inbox: Path) -> tuple[list[str], list[str]]:
    state = State()
    look(inbox, state, asked(), 20, 60.0, MONTHS)
    found = look(inbox, state, asked(), 20, 60.0, MONTHS)
    return [each.path.name for each in found.arrivals], [each.reason for each in found.refusals]


def test_a_real_file_is_taken_in_the_place_of_a_sample_beside_it(months: Path) -> None:
    assert sums_of(months / "sample_2024-01.pgn").keys() == {"sample_2024-01.pgn"}
    assert taken(months) == (["sample_2024-01.pgn"], [])
    (months / "lichess_elite_2024-01.zip").write_text("real")
    assert taken(months) == (["lichess_elite_2024-01.zip"], [])


def test_a_sample_that_a_person_changed_is_as_real_as_the_file_beside_it(months: Path) -> None:
    (months / "lichess_elite_2024-01.zip").write_text("real")
    (months / "sample_2024-01.pgn").write_text("adapted!")
    arrived, refused = taken(months)
    assert arrived == []
    assert [reason.partition(":")[0] for reason in refused] == [
        "lichess_elite_2024-01.zip, sample_2024-01.pgn are the same partition"
    ]


def test_two_samples_of_one_place_stay_two(months: Path) -> None:
    (months / "more_2024-01.pgn").write_text("invented")
    mark(months / "more_2024-01.pgn")
    paths = sorted(months.glob("*.pgn"))
    assert real_paths(paths) == paths


def test_a_damaged_mark_beside_a_file_leaves_the_choice_to_a_person(months: Path) -> None:
    (months / "lichess_elite_2024-01.zip").write_text("real")
    (months / "sample_2024-01.pgn.sample").write_text("no list")
    arrived, refused = taken(months)
    assert (arrived, len(refused)) == ([], 1)


def test_the_mark_of_a_sample_that_is_gone_says_nothing(months: Path) -> None:
    (months / "sample_2024-01.pgn").unlink()
    found = look(months, State(), asked(), 20, 60.0, MONTHS)
    assert (found.arrivals, found.refusals, found.standing) == ([], [], [])


def test_only_a_sample_is_a_drop_of_own_files_and_marks(drop: Path, months: Path) -> None:
    assert is_only_sample(drop)
    assert is_only_sample(months / "sample_2024-01.pgn")
    (drop / "README.md").touch()
    assert not is_only_sample(drop)
    (drop / "README.md").unlink()
    (drop / "a.csv").write_text("mine")
    assert not is_only_sample(drop)
    (drop / ".sample").unlink()
    assert not is_only_sample(drop)
