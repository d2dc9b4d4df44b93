"""The family of docs/adding-a-family.md: one folder and one line, from drop to reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.toy_family import PAGE, files_of_the_page, run
from tests.paths import CHECKOUT


def _gristmill(checkout: Path, *words: str, fails: bool = False) -> str:
    return run(checkout, "-m", "gristmill.cli", *words, fails=fails)


def test_the_family_is_one_folder_and_one_line(toy_checkout: Path) -> None:
    changed = {
        path.relative_to(toy_checkout).as_posix()
        for path in toy_checkout.rglob("*.py")
        if not (CHECKOUT / path.relative_to(toy_checkout)).exists()
        or path.read_bytes() != (CHECKOUT / path.relative_to(toy_checkout)).read_bytes()
    }
    outside = {path for path in changed if not path.startswith("gristmill/letters/")}
    assert outside == {"gristmill/families/__init__.py"}
    before = (CHECKOUT / "gristmill/families/__init__.py").read_text().splitlines()
    after = (toy_checkout / "gristmill/families/__init__.py").read_text().splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def _built(toy_checkout: Path, *drops: str, fails: bool = False) -> str:
    """What building these drops says; each holds two lines. fails: another drop is refused."""
    for name in drops:
        drop = toy_checkout / "data/drops/letters" / name
        drop.mkdir(parents=True)
        (drop / "a.txt").write_text("Abba\ncab\n")
    return run(toy_checkout, "operate.py", "materialize", "letters/counts", fails=fails)


def test_a_drop_goes_through_the_definitions_to_the_reader(toy_checkout: Path) -> None:
    table = _built(toy_checkout, "first")
    assert re.search(r"letters/counts +first +built .* 2 ", table), table
    artifact = "data/letters/counts/first"
    assert _gristmill(toy_checkout, "show", artifact, "1").split() == ["a:1", "b:1", "c:1"]
    assert _gristmill(toy_checkout, "trace", artifact, "1") == "file: a.txt\nline: 2\n"
    assert "1 artifact" in _gristmill(toy_checkout, "verify", "data")
    code = (
        "from gristmill.letters import LetterDataset\n"
        f"data = LetterDataset({artifact!r})\n"
        "print(len(data), data[0][:3].tolist(), data[0].dtype)"
    )
    assert run(toy_checkout, "-c", code) == "2 [2, 2, 0] uint32\n"
    again = run(toy_checkout, "operate.py", "materialize", "letters/counts")
    assert "nothing needed doing" in again


@pytest.mark.slow
def test_a_drop_without_text_is_refused_and_a_damaged_artifact_is_found(toy_checkout: Path) -> None:
    other = toy_checkout / "data/drops/letters/other"
    other.mkdir(parents=True)
    (other / "notes.md").write_text("no letters")
    table = _built(toy_checkout, "second", fails=True)
    assert "letters/other: it holds no .txt file" in table
    lines = toy_checkout / "data/letters/counts/second/lines.jsonl"
    lines.write_text("")
    assert "lines.jsonl" in _gristmill(toy_checkout, "verify", "data", fails=True)


@pytest.mark.slow
def test_the_sensor_and_the_samples_know_the_family(toy_checkout: Path) -> None:
    code = (
        "import definitions\n"
        "defs = definitions.build_defs()\n"
        "print(*(sensor.name for sensor in defs.sensors))\n"
    )
    assert "letters_drops" in run(toy_checkout, "-c", code).split()
    assert "drops/letters/sample" in _gristmill(toy_checkout, "samples", "samples")
    assert (toy_checkout / "samples/drops/letters/sample/two.txt").read_text() == "zebra\n"


def test_the_page_shows_every_file() -> None:
    files = files_of_the_page()
    assert len(files) == PAGE.read_text().count("```python") - 2
    rooms = {path.split("/")[2] for path in files}
    assert rooms >= {"format", "raw", "read", "builders", "laws", "show", "family.py", "config.py"}
