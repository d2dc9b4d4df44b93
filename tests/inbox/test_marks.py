"""Marks of a drop: whether it is complete, the sums of its files, and which are a sample's own."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.inbox import TOML, Look, Settling, Shape, State, look, present_drops
from gristmill.inbox.listing import survey
from gristmill.inbox.marks import (
    FORGOTTEN,
    LEFT_OUT,
    SETTINGS,
    is_left_out,
    is_only_sample,
    mark_of,
    not_samples,
    own_files,
    real_paths,
    sums_of,
)
from gristmill.inbox.readiness import HashOf
from tests.inbox.test_readiness import MINUTE, Sensor
from tests.marked import mark
from tests.toy_inbox import asked


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


SUMS = f"{digest('one')}  a.gz\n{digest('two')} *./inner/b.gz\n"


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drops/d6"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.gz").write_text("one")
    (folder / "inner/b.gz").write_text("two")
    return folder


# Whether the copy is complete.


def test_a_drop_that_is_done_or_as_listed_is_taken(drop):
    sensor = Sensor(drop.parent, MINUTE)
    (drop / ".done").touch()
    assert [sensor.taken(), sensor.taken()] == [[], ["d6"]]
    lines = [f"{digest('one').upper()} *a.gz\r\n", f"{digest('one')}  ./a.gz\r\n", "\r\n"]
    lines += [f"{digest('two')} *inner/b.gz\r\n"]  # as other tools write them
    for text in (SUMS + "\r\n", "".join(lines)):
        (drop / "SHA256SUMS").write_bytes(text.encode())
        (arrival,) = present(drop).arrivals
        assert (arrival.files, arrival.notes) == (2, ())
    (drop / "SHA256SUMS").write_text(f"SHA256 (a.gz) = {digest('one').upper()}\n")
    (arrival,) = present(drop).arrivals
    assert arrival.notes == ("not in SHA256SUMS, so not verified: inner/b.gz",)


def test_a_done_that_came_before_the_files_does_not_count(drop):
    (drop / ".done").write_text("2")
    time.sleep(0.02)
    (drop / "c.gz").write_text("three")
    sensor = Sensor(drop.parent, MINUTE)
    assert [sensor.taken(), sensor.taken()] == [[], []]
    needing = Sensor(drop.parent, Settling(0.0, require_done=True))
    needing.look()
    (standing,) = needing.look().idle
    assert standing.reason.startswith("c.gz changed after .done came: `touch` .done")
    (drop / ".done").touch()
    needing.look()
    assert needing.taken() == ["d6"]


@pytest.mark.parametrize("number", ["2", "7", "soon"])
def test_what_a_done_holds_is_not_compared_and_the_arrival_says_so(drop, number):
    """Releases up to 0.9 compared the number of files, or the bytes of a file."""
    (drop / ".done").write_text(number)
    sensor = Sensor(drop.parent, MINUTE)
    sensor.look()
    (arrival,) = sensor.look().arrivals
    note = "is read as an empty file: its number is not compared"
    assert (arrival.files, arrival.notes) == (2, (f".done {note}",))
    file = drop.parent / "p.toml"
    file.write_text("one")
    file.with_name("p.toml.done").write_text(number)
    assert present(file).arrivals[0].notes == (f"p.toml.done {note}",)


def test_marks_are_no_part_of_the_contents(drop):
    bare = survey(drop)
    for name in (".done", "SHA256SUMS", ".sample"):
        (drop / name).write_text("x")
    marked = survey(drop)
    assert (marked.signature, marked.files, marked.bytes) == (bare.signature, 2, 6)
    assert bare.form == bare.signature != marked.form
    (drop / "inner/SHA256SUMS").write_text("x")
    assert survey(drop).files == 3


def test_marks_that_come_later_do_not_build_a_drop_again(drop):
    sensor = Sensor(drop.parent)
    sensor.look()
    assert sensor.taken() == ["d6"]
    (drop / "SHA256SUMS").write_text("whatever")
    assert [sensor.look(), sensor.look()] == [Look(), Look()]


@pytest.mark.parametrize(
    ("make", "remove"),
    [
        (Path.touch, Path.unlink),
        (Path.mkdir, Path.rmdir),
        (lambda mark: mark.symlink_to("nowhere"), Path.unlink),
    ],
)
def test_a_copy_with_a_mark_is_arriving_whatever_its_age_and_whoever_asks(drop, make, remove):
    sensor = Sensor(drop.parent)
    file = drop.parent / "p.toml"
    file.write_text("x = 1")
    for path, folder in ((drop / ".incomplete", True), (Path(f"{file}.incomplete"), False)):
        sensor.shape = Shape() if folder else TOML
        make(path)
        for _ in range(3):
            (standing,) = sensor.look(after=86_400).standing
            assert (standing.key, standing.state) == ("d6" if folder else "p", "arriving")
            assert standing.reason == (
                f"{path.name} says that it is not complete: remove that file when it is"
            )
        (now,) = present_drops(drop.parent, asked(), sensor.shape).standing
        assert now.reason == standing.reason
        remove(path)
        assert [sensor.taken(), sensor.taken()] == [[], [standing.key]]


def test_the_mark_of_a_file_that_is_not_there_yet_is_waited_for(tmp_path):
    (tmp_path / "p.toml.incomplete").touch()
    (standing,) = Sensor(tmp_path, shape=TOML).look().idle
    assert (standing.key, standing.state, standing.reason) == (
        "p.toml.incomplete",
        "arriving",
        "is the mark of p.toml, which is not there",
    )


# The sums of the files.


def known(drop: Path) -> HashOf:
    """The sums of all files, as where each was hashed before as it is now."""
    return lambda name: sha256_file(drop / name if drop.is_dir() else drop)


def present(drop: Path) -> Look:
    return present_drops(drop.parent, asked(hash_of=known), TOML if drop.suffix else Shape())


def refused(drop: Path) -> str:
    found = present(drop)
    assert found.arrivals == []
    return found.refusals[0].reason


def test_a_file_with_another_sum_or_one_that_is_not_there_is_refused_by_name(drop):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / "inner/b.gz").write_text("2wo")
    assert refused(drop) == (
        f"{drop / 'inner/b.gz'}: its sha256 is {digest('2wo')[:12]}…, but SHA256SUMS has "
        f"{digest('two')[:12]}…: copy the file again"
    )
    (drop / "SHA256SUMS").write_text(SUMS + f"{digest('x')}  z\n{digest('y')}  y\n")
    assert refused(drop) == (
        f"{drop / 'SHA256SUMS'}: y is listed and not in the drop (and 1 more): bring it, or take "
        "its line out"
    )


def test_a_recipe_with_another_sum_may_be_one_that_was_changed_here(drop):
    (drop / "own.toml").write_text("a = 1\n")
    (drop / "SHA256SUMS").write_text(f"{SUMS}{digest('a = 0')}  own.toml\n")
    cure = "copy the file again, or take its line out of SHA256SUMS if you changed it here"
    assert refused(drop).endswith(cure)
    (drop / "SHA256SUMS").write_text(SUMS)
    assert present(drop).arrivals


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("hello", "line 1: must be 64 hex digits"),
        (f"{digest('one')} a.gz", "line 1: must be 64 hex digits"),
        (f"{digest('one')[1:]}  a.gz", "line 1: must be 64 hex digits"),
        (f"{digest('one')}  /etc/passwd", "must be a path in the drop"),
        (f"{digest('one')}  ../d6/a.gz", "must be a path in the drop"),
        (f"{digest('one')}  inner//b.gz", "must be a path in the drop"),
        (f"{digest('one')}  a.gz\n{digest('two')}  a.gz", "line 2: 'a.gz' has two sums"),
        ("\n \n", "lists no file"),
        (f"{digest('one')}  SHA256SUMS", "lists no file"),
    ],
)
def test_a_list_that_is_none_is_refused_with_file_line_and_rule(drop, line, rule):
    (drop / "SHA256SUMS").write_text(line)
    reason = refused(drop)
    assert reason.startswith(f"{drop / 'SHA256SUMS'}: ")
    assert rule in reason


def test_names_that_sha256sum_escapes_are_found(drop):
    name = os.fsdecode(b"new\nline\\\xff")
    (drop / name).write_text("three")
    escaped = rb"\%s  new\nline\\" % digest("three").encode() + b"\xff\n"
    (drop / "SHA256SUMS").write_bytes(escaped)
    (arrival,) = present(drop).arrivals
    assert arrival.files == 3
    (drop / name).write_text("four")
    assert "its sha256 is" in refused(drop)


def test_a_file_is_verified_by_what_is_beside_it_and_large_ones_never_for_a_mark(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text("one")
    (tmp_path / "p.toml.sha256").write_text(f"{digest('one')}  p.toml\n")
    assert len(present(file).arrivals) == 1
    (tmp_path / "p.toml.sha256").write_text(f"{digest('two')}  p.toml\n")
    assert "its sha256 is" in refused(file)
    (tmp_path / "p.toml.sha256").write_text(f"{digest('one')}  q.toml\n")
    assert "line 1: names 'q.toml', not p.toml" in refused(file)
    big = tmp_path / "big.csv"
    for size, own in ((16 << 20, {"big.csv"}), ((16 << 20) + 1, set())):
        big.write_bytes(b"")
        os.truncate(big, size)
        (tmp_path / ".sample").write_text(f"{sha256_file(big)}  big.csv\n")
        assert own_files(tmp_path) == own


def test_a_sum_that_nobody_knows_refuses_no_drop(drop):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / "inner/b.gz").write_text("2wo")
    assert len(present_drops(drop.parent, asked()).arrivals) == 1
    only_a = asked(hash_of=lambda each: lambda name: known(each)(name) if name == "a.gz" else None)
    assert len(present_drops(drop.parent, only_a).arrivals) == 1
    (drop / "a.gz").write_text("1ne")
    (refusal,) = present_drops(drop.parent, only_a).refusals
    assert refusal.reason.startswith(f"{drop / 'a.gz'}: its sha256 is {digest('1ne')[:12]}…")


def test_a_look_opens_no_file_of_a_drop_but_its_lists(drop, monkeypatch):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / ".done").write_text("2")
    opened: list[str] = []
    real = os.open

    def spy(path: str, flags: int, *rest: int, **options: int | None) -> int:
        if not flags & os.O_DIRECTORY:
            opened.append(Path(path).name)
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", spy)
    state = State()
    look(drop.parent, state, asked(), 20, 60.0)
    assert opened == []
    assert len(look(drop.parent, state, asked(), 20, 60.0).arrivals) == 1
    assert opened == ["SHA256SUMS"]
    opened.clear()
    assert look(drop.parent, state, asked(), 20, 60.0) == Look()
    assert opened == []


def test_a_list_that_is_a_link_is_refused(drop):
    file = drop / "inner/p.toml"
    (drop / "inner/b.gz").rename(file)
    for path, of in ((drop / "SHA256SUMS", drop), (Path(f"{file}.sha256"), file)):
        path.symlink_to("/etc/passwd")
        assert refused(of).startswith(f"{path}: is a link")


# Which files are a sample's own.

OWN = {"a.csv": b"invented 1\n", "deep/b.csv": b"invented 2\n"}


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A drop that is a sample, and was looked at."""
    drop = tmp_path / "drops" / "gsm8k"
    (drop / "deep").mkdir(parents=True)
    for name, octets in OWN.items():
        (drop / name).write_bytes(octets)
    (drop / ".done").touch()
    assert own_files(mark(drop)) == set(OWN)
    return drop


def test_a_mark_is_a_list_that_sha256sum_checks_without_other_marks(sample):
    assert (sample / ".sample").read_text().splitlines() == [
        "a84032cd239b28bb17469ed85574df8e7bf2b5fb2389fb954a883acd9e8440f4  a.csv",
        "fa743b9640f069bd8b679c4ee36b4182662f1183b2a350d40daff1bb615d80b8  deep/b.csv",
    ]


def test_a_real_file_takes_the_place_of_all_files_of_the_sample(sample):
    assert not_samples(sample, OWN) == not_samples(sample, []) == {}
    (sample / "README.md").write_text("mine\n")  # a file that no family reads
    assert not_samples(sample, OWN) == {}
    (sample / "mine.csv").write_text("real\n")
    assert not_samples(sample, [*OWN, "mine.csv"]) == {"a.csv": LEFT_OUT, "deep/b.csv": LEFT_OUT}


def test_tombstones_are_no_real_file_beside_a_sample(tmp_path: Path) -> None:
    for name in ("train.jsonl", SETTINGS):
        (tmp_path / name).write_text("invented\n")
    mark(tmp_path)
    for name, is_left in (("train.jsonl", False), (FORGOTTEN, False), ("mine.jsonl", True)):
        (tmp_path / name).write_text("invented\n")
        assert is_left_out(tmp_path / SETTINGS) == is_left


def with_the_times_before(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"invented 3\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def link_to_equal_bytes(file: Path) -> None:
    file.rename(file.parents[2] / "elsewhere.csv")
    file.symlink_to(file.parents[2] / "elsewhere.csv")


@pytest.mark.parametrize(
    "change",
    [
        *(
            lambda file, octets=octets: file.write_bytes(octets)
            for octets in (b"invented 2\n", b"")
        ),
        lambda file: file.write_bytes(b"invented 1"),
        with_the_times_before,
        link_to_equal_bytes,
        Path.unlink,
    ],
)
def test_a_file_of_the_list_with_other_bytes_is_real_and_one_that_is_gone_is_none(sample, change):
    change(sample / "a.csv")
    assert own_files(sample) == {"deep/b.csv"}
    there = [name for name in OWN if (sample / name).exists()]
    assert not_samples(sample, there) == ({"deep/b.csv": LEFT_OUT} if "a.csv" in there else {})


@pytest.mark.parametrize(
    ("mark", "rule"),
    [
        ("no list\n", "line 1: must be 64 hex digits, two spaces and a name"),
        (f"{'0' * 64}  ../a.csv\n", "line 1: '../a.csv' must be a path in the drop"),
        ("", "lists no file"),
    ],
)
def test_a_damaged_mark_is_refused_with_its_cure(sample, mark, rule):
    (sample / ".sample").write_text(mark)
    with pytest.raises(BadInput) as error:
        not_samples(sample, OWN)
    assert error.value.file == str(sample / ".sample")
    assert rule in error.value.rule
    assert error.value.rule.endswith("which files are of a sample: remove it if none is")


MONTHS = Shape((".pgn", ".zip"), key_in=lambda name: "2024-01" if "2024-01" in name else None)


@pytest.fixture
def month(tmp_path: Path) -> Path:
    (tmp_path / "sample_2024-01.pgn").write_text("invented")
    return mark(tmp_path / "sample_2024-01.pgn")


def test_a_real_file_is_taken_in_the_place_of_a_sample_beside_it(month):
    real, sensor = month.with_name("lichess_elite_2024-01.zip"), Sensor(month.parent, shape=MONTHS)
    assert sums_of(month).keys() == {month.name}
    assert sensor.settled().path == month
    real.write_text("real")
    assert sensor.settled().path == real
    damaged, whole = "no list", mark_of(month).read_bytes()
    for path, before, text in ((mark_of(month), whole, damaged), (month, b"", "adapted!")):
        path.write_text(text)  # it is as real as the file beside it
        (refusal,) = sensor.look().refusals
        names = "lichess_elite_2024-01.zip, sample_2024-01.pgn"
        assert refusal.reason.startswith(f"{names} are the same partition")
        path.write_bytes(before)
    more = month.with_name("more_2024-01.pgn")
    for path in (month, more):
        path.write_text("invented")
        mark(path)
    assert real_paths([month, more]) == [month, more]


def test_the_mark_of_a_sample_that_is_gone_says_nothing(month):
    month.unlink()
    assert Sensor(month.parent, shape=MONTHS).look() == Look()


def test_only_a_sample_is_a_drop_of_own_files_and_marks(sample, month):
    assert is_only_sample(sample)
    assert is_only_sample(month)
    (sample / "README.md").touch()
    assert not is_only_sample(sample)
    (sample / "README.md").unlink()
    (sample / "a.csv").write_text("mine")
    assert not is_only_sample(sample)
    (sample / ".sample").unlink()
    assert not is_only_sample(sample)
