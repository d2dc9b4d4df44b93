"""The sums of a drop's files that are kept, and for which files they hold."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.provenance import raw_inputs
from gristmill.provenance.raw_inputs import DropHashes, Stamp, drop_of, name_in, stamp_of
from gristmill.untrusted.files import LinkRule

MINUTE_NS = 60_000_000_000


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drops/mill/d1"
    (folder / "inner").mkdir(parents=True)
    for name in ("a", "inner/b"):
        (folder / name).write_text(f"grain {name}")
    return folder


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as if they had been written long ago."""
    monkeypatch.setattr(raw_inputs, "CLOCK_TICK_NS", 0)


def stamped(path: Path) -> tuple[str, Stamp]:
    stamp = stamp_of(path.stat())
    return hashlib.sha256(path.read_bytes()).hexdigest(), stamp


def kept(root: Path, drop: Path, *names: str, is_own: bool = True) -> DropHashes:
    sums = DropHashes(root, drop)
    sums.keep({name: stamped(drop / name) for name in names}, is_own=is_own)
    return sums


def test_a_sum_is_known_to_another_process_while_the_file_has_the_same_stamp(tmp_path, drop):
    kept(tmp_path, drop, "a", "inner/b")
    again = DropHashes(tmp_path, drop)
    for name in ("a", "inner/b"):
        sha256, stamp = stamped(drop / name)
        assert again.known(name, stamp) == again.of_now(name) == sha256
    assert again.of_now("other") is None
    assert [path.name for path in (tmp_path / ".gristmill/drops").iterdir()] == ["mill@d1.json"]


@pytest.mark.parametrize("change", ["bytes", "time", "inode", "size", "back"])
def test_a_file_with_another_stamp_is_not_known(tmp_path, drop, change):
    kept(tmp_path, drop, "a")
    path, stat = drop / "a", (drop / "a").stat()
    if change == "inode":
        (drop / "new").write_bytes(path.read_bytes())
        os.utime(drop / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (drop / "new").replace(path)
    elif change == "time":
        os.utime(path, ns=(1, 1))
    else:
        path.write_text("longer than before" if change == "size" else "GRAIN a")
    if change == "back":  # its times as before: that of the inode tells
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    sums = DropHashes(tmp_path, drop)
    assert sums.of_now("a") is None
    assert sums.known("a", stamp_of(stat)) is not None  # it is the stamp that is asked for


def test_a_file_that_changed_a_moment_ago_is_kept_only_by_whoever_wrote_it(
    tmp_path, drop, monkeypatch
):
    assert kept(tmp_path, drop, "a", is_own=False).of_now("a") is None
    assert not (tmp_path / ".gristmill").exists()
    assert kept(tmp_path, drop, "a", is_own=True).of_now("a") is not None
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + MINUTE_NS)
    assert kept(tmp_path, drop, "inner/b", is_own=False).of_now("inner/b") is not None


def test_what_another_process_kept_meanwhile_stays(tmp_path, drop, settled):
    one, other = DropHashes(tmp_path, drop), DropHashes(tmp_path, drop)
    assert (one.of_now("a"), other.of_now("inner/b")) == (None, None)  # both have read the notes
    one.keep({"a": stamped(drop / "a")})
    other.keep({"inner/b": stamped(drop / "inner/b")})
    for sums in (other, DropHashes(tmp_path, drop)):
        assert sums.of_now("a") == stamped(drop / "a")[0]
        assert sums.of_now("inner/b") == stamped(drop / "inner/b")[0]


def test_a_new_sum_takes_the_place_of_the_old_one_and_a_lost_file_has_none(tmp_path, drop, settled):
    kept(tmp_path, drop, "a", "inner/b")
    (drop / "a").write_text("another")
    (drop / "inner/b").unlink()
    sums = kept(tmp_path, drop, "a", is_own=False)
    assert sums.of_now("a") == hashlib.sha256(b"another").hexdigest()
    assert (tmp_path / ".gristmill/drops/mill@d1.json").read_text().count("[") == 1


def test_names_that_are_not_utf_8_or_hold_spaces_are_kept(tmp_path, drop):
    names = [os.fsdecode(b"\xff\xfe"), "a b  c", "new\nline", " ", "ü", "back\\slash"]
    for name in names:
        (drop / name).write_text(name.encode(errors="replace").decode())
    kept(tmp_path, drop, *names)
    again = DropHashes(tmp_path, drop)
    assert [again.of_now(name) for name in names] == [stamped(drop / name)[0] for name in names]


def test_notes_that_cannot_be_written_are_no_error(tmp_path, drop):
    (tmp_path / ".gristmill").write_text("a file in the place of the folder")
    sums = kept(tmp_path, drop, "a")
    assert sums.of_now("a") == stamped(drop / "a")[0]
    assert DropHashes(tmp_path, drop).of_now("a") is None


def test_a_drop_that_is_a_file_is_known_by_its_name_and_inboxes_do_not_mix(tmp_path):
    recipe, other = tmp_path / "drops/mill/recipes/r.toml", tmp_path / "drops/mill/r.toml"
    for path in (recipe, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.parent.name)
        DropHashes(tmp_path, path).keep({"r.toml": stamped(path)}, is_own=True)
    for path in (recipe, other):
        assert DropHashes(tmp_path, path).of_now("r.toml") == stamped(path)[0]


def test_a_link_is_refused_unless_links_are_followed(tmp_path, drop):
    (tmp_path / "store").write_text("far")
    (drop / "link").symlink_to(tmp_path / "store")
    sums = kept(tmp_path, drop, "link")
    with pytest.raises(BadInput, match="link: is a link"):
        sums.of_now("link")
    links = LinkRule(True, (str(tmp_path),))
    assert sums.of_now("link", links) == hashlib.sha256(b"far").hexdigest()
    (tmp_path / "store").write_text("other")
    assert sums.of_now("link", links) is None


def test_a_file_that_is_gone_is_an_error_where_its_sum_was_known(tmp_path, drop):
    sums = kept(tmp_path, drop, "a")
    (drop / "a").unlink()
    with pytest.raises(FileNotFoundError):
        sums.of_now("a")


def test_files_outside_of_drops_belong_to_none(tmp_path):
    inbox = tmp_path / "drops/mill"
    for path, drop in (
        (inbox / "d1/inner/a", inbox / "d1"),
        (inbox / "d1", inbox / "d1"),
        (inbox, None),
        (tmp_path / "macroxue/packs/d1/a", None),
    ):
        assert drop_of(tmp_path, path) == drop
    assert name_in(inbox / "d1", inbox / "d1/inner/a") == "inner/a"
    assert name_in(inbox / "r.toml", inbox / "r.toml") == "r.toml"
