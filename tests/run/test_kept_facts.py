"""Facts about sources that are kept for other processes: kept whole, or found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.run import kept_facts, kernels

FACTS = {"ab": ("digest", "a.module", "b"), "cd": ("other",)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "cache"
    monkeypatch.setenv(kernels.CACHE_DIR, str(made))
    return made


def test_what_was_kept_is_read_and_more_is_added(folder: Path) -> None:
    assert kept_facts.read("facts") == {}
    kept_facts.keep("facts", FACTS)
    assert kept_facts.read("facts") == FACTS
    kept_facts.keep("facts", {"ef": ("x",), "cd": ("newer",)})
    assert kept_facts.read("facts") == {**FACTS, "ef": ("x",), "cd": ("newer",)}
    assert kept_facts.read("others") == {}
    assert [path.name for path in folder.iterdir()] == ["facts"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "facts").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_as_it_was_written_counts_for_nothing(folder: Path) -> None:
    kept_facts.keep("facts", FACTS)
    file = folder / "facts"
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place])
        assert kept_facts.read("facts") == {}
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert kept_facts.read("facts") == {}
    file.write_bytes(b"\xff" + data)
    assert kept_facts.read("facts") == {}
    kept_facts.keep("facts", {"ef": ("x",)})
    assert kept_facts.read("facts") == {"ef": ("x",)}


def test_a_file_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_facts, "MOST", 3)
    kept_facts.keep("facts", FACTS)
    kept_facts.keep("facts", {"ef": ("x",)})
    assert len(kept_facts.read("facts")) == 3
    kept_facts.keep("facts", {"gh": ("y",)})
    assert kept_facts.read("facts") == {"gh": ("y",)}


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(kernels.CACHE_DIR, str(tmp_path / "file" / "cache"))
    kept_facts.keep("facts", FACTS)
    assert kept_facts.read("facts") == {}


def test_a_file_that_cannot_be_replaced_is_left_alone(folder: Path) -> None:
    (folder / "facts").mkdir(parents=True)
    (folder / "facts" / "x").touch()
    kept_facts.keep("facts", FACTS)
    assert kept_facts.read("facts") == {}
    assert [path.name for path in folder.iterdir()] == ["facts"]
