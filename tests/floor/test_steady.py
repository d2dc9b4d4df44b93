"""Whether a folder is still the same one, and its listing of one moment."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from gristmill import durable, steady


def test_another_folder_at_the_path_is_another_generation(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    before = steady.generation(one)
    assert steady.generation(one) == before
    durable.exchange(one, other)
    assert steady.generation(one) not in (before, None)
    shutil.rmtree(one)
    assert steady.generation(one) is None


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
        durable.exchange(folder, fresh)
        (fresh / "provenance.json").unlink()
        return entries

    monkeypatch.setattr(os, "scandir", torn)
    assert steady.listing(folder) == (["inner"], ["link", "provenance.json"])
    assert steady.listing(tmp_path / "none") == ([], [])


def test_a_folder_that_never_rests_is_listed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    stamps = itertools.count()
    monkeypatch.setattr(steady, "generation", lambda _: next(stamps))
    assert steady.listing(tmp_path) == ([], ["file"])
