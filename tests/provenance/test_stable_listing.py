"""Whether a folder is still the same one, and its listing of one moment."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from gristmill.provenance import stable_listing
from gristmill.publish import atomic_fs


def test_another_folder_at_the_path_is_another_generation(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    before = stable_listing.generation(one)
    assert stable_listing.generation(one) == before
    atomic_fs.exchange(one, other)
    assert stable_listing.generation(one) not in (before, None)
    shutil.rmtree(one)
    assert stable_listing.generation(one) is None


def test_at_a_path_that_no_folder_can_have_there_is_none(tmp_path: Path) -> None:
    assert stable_listing.generation(tmp_path / "a\0b") is None


def test_a_listing_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, fresh = tmp_path / "a", tmp_path / "b"
    for made in (folder, fresh):
        (made / "inner").mkdir(parents=True)
        (made / "link").symlink_to(tmp_path)
        (made / "provenance.json").touch()
    real = os.scandir

    def torn(path: Path) -> object:
        monkeypatch.setattr(os, "scandir", real)
        entries = real(path)
        atomic_fs.exchange(folder, fresh)
        (fresh / "provenance.json").unlink()
        return entries

    monkeypatch.setattr(os, "scandir", torn)
    assert stable_listing.listing(folder) == (["inner"], ["link", "provenance.json"], ["link"])
    assert stable_listing.listing(tmp_path / "none") == ([], [], [])


def test_a_folder_that_never_rests_is_listed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    stamps = itertools.count()
    monkeypatch.setattr(stable_listing, "generation", lambda _: next(stamps))
    assert stable_listing.listing(tmp_path) == ([], ["file"], [])
