"""The report of a dataset."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import read_metadata
from gristmill.puzzles.show.report_page import write_report
from tests.puzzles.small_datasets import SMALL, Small, arc, broken, write

Folder = Callable[[str], Path]

_VOID = {"meta", "path", "rect"}


class _Page(HTMLParser):
    """Texts of a page and its tags; fails where an end does not fit its start."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _report(folder: Path, title: str = "a title", counts: Mapping[str, int] | None = None) -> str:
    path = folder.parent / "report.html"
    write_report(folder, path, title, counts)
    return path.read_text(encoding="utf-8")


def test_a_report_names_the_rules_that_were_not_looked_at(small: Folder, tmp_path: Path) -> None:
    text = "not checked: the rules of towers: Gristmill has none for this kind"
    assert text in _Page(_report(small("towers"))).texts
    others = write(tmp_path / "d", replace(SMALL["maze"](), origins=None))
    assert "not checked: the rules of its puzzle: without a trace its kind" in _report(others)
    assert "not checked" not in _report(small("maze"))


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_has_a_report_of_its_own(small: Folder, kind: str) -> None:
    page = _Page(_report(small(kind), counts={"duplicates_removed": 1234}))
    text = "\n".join(page.texts)
    assert kind in text
    assert {"Splits", "Examples", "Sizes", "Tokens", "dataset.json", "Made from"} <= set(page.texts)
    assert "Read it back" in text and "PuzzleDatasetConfig" in text
    assert "1,234" in page.texts
    assert "svg" in page.tags


def test_the_report_needs_nothing_else_and_runs_nothing(small: Folder) -> None:
    page = _Page(_report(small("arc")))
    assert not page.tags & {"script", "link", "img", "iframe", "object", "image", "use", "a"}
    assert not {name for name, _ in page.attributes} & {"src", "href", "onload", "onclick", "style"}
    policy = [value for name, value in page.attributes if name == "content"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy


def test_numbers_of_both_splits_are_in_the_table(small: Folder) -> None:
    page = _report(small("arc"))
    for split in names.SPLITS:
        cells = "".join(f"<td class=n>{cell}</td>" for cell in (4, 2, 1, "50.0 %"))
        assert f"<td>{split}</td><td>all</td>{cells}" in page


def test_the_rules_that_an_example_breaks_are_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", broken(SMALL["towers"](), 1, 2, 200))
    assert "breaks: label token 200 at position 2 is" in _report(folder)


def test_all_that_a_dataset_names_is_escaped(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script>\x1b&'
    small = replace(arc(evil), files=[evil], config={evil: evil}, kind="towers")
    folder = write(tmp_path / "d", small)
    page = _report(folder, evil, {evil: 3})
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert "script" not in _Page(page).tags


def test_the_same_dataset_gives_the_same_bytes(tmp_path: Path) -> None:
    pages = {_report(write(tmp_path / name / "d", arc())) for name in ("one", "two")}
    assert len(pages) == 1


def test_without_counts_and_without_a_trace_their_parts_are_left_out(tmp_path: Path) -> None:
    page = _report(write(tmp_path / "d", replace(arc(), origins=None)))
    assert "Counts of the build" not in page
    assert "Made from" not in page
    assert "a dataset without a trace" in page
    assert "where it came from is not known" in page


def _noise(kind: str, seq_len: int, vocab_size: int, rows: int) -> Small:
    tokens = np.random.default_rng(0).integers(0, vocab_size, (rows, seq_len)).astype(np.uint8)
    return Small(
        kind=kind,
        inputs=tokens,
        labels=tokens,
        vocab_size=vocab_size,
        identifiers=[0] * rows,
        examples=[1] * rows,
        puzzles=[10] * (rows // 10),
        origins=[(-1, row, row % 10) for row in range(rows)],
        config={"seed": 1, "augmentation": "reversal"},
    )


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize(
    ("kind", "seq_len", "vocab_size"),
    [
        ("arc", 900, 12),
        ("maze", 110 * 110, 6),
        ("towers", 50_000, 250),
        ("towers", 1, 2),
    ],
)
def test_a_report_is_smaller_than_two_megabytes(
    tmp_path: Path, kind: str, seq_len: int, vocab_size: int
) -> None:
    folder = write(tmp_path / "d", _noise(kind, seq_len, vocab_size, 40))
    assert len(_report(folder, counts={"duplicates": 3}).encode()) < 2_000_000


def test_pictures_of_many_sets_are_left_out_where_they_would_be_too_large(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", _noise("maze", 110 * 110, 6, 20))
    sets = tuple(f"set{number}" for number in range(6))
    for split in names.SPLITS:
        for name in sets:
            for field in names.FIELDS:
                copied = folder / names.array(split, names.SET, field)
                (folder / names.array(split, name, field)).hardlink_to(copied)
        path = folder / names.metadata(split)
        path.write_text(replace(read_metadata(path), sets=sets).text())
    page = _report(folder)
    assert len(page.encode()) < 2_000_000
    assert "further pictures would make the file too large" in page
    assert all(f"{split}, set {name}" in page for split in names.SPLITS for name in sets)


def test_many_values_do_not_make_a_large_file(tmp_path: Path) -> None:
    small = replace(arc(), config={f"field{number}": "x" * 10_000 for number in range(2_000)})
    small = replace(small, files=["f" * 5_000] * 3_000)
    counts = {f"count{number}": number for number in range(5_000)}
    page = _report(write(tmp_path / "d", small), counts=counts)
    assert len(page) < 500_000
    assert "… and 2,980 more" in page


def test_time_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", _noise("towers", 16, 8, 500_000))
    began = time.thread_time()
    _report(folder)
    assert time.thread_time() - began < 2


def test_a_folder_that_is_no_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is missing"):
        _report(tmp_path / "nothing")
