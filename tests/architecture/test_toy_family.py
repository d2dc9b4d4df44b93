"""The family of docs/adding-a-family.md: one folder and one line, from drop to reader."""

import re
from pathlib import Path

import pytest

from tests.architecture.toy_family import PAGE, files_of_the_page, run
from tests.paths import CHECKOUT

END = "<end>"


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


def _put(toy_checkout: Path, name: str) -> None:
    """Put a drop of two lines into the inbox."""
    drop = toy_checkout / "data/drops/letters" / name
    drop.mkdir(parents=True)
    (drop / "a.txt").write_text("Abba\ncab\n")


@pytest.mark.slow
def test_a_drop_goes_through_the_definitions_to_the_reader(toy_checkout: Path) -> None:
    """All commands in one process, since most of the time of each is its start."""
    _put(toy_checkout, "first")
    artifact = "data/letters/counts/first"
    code = f"""
from click.testing import CliRunner
from gristmill.cli import main
from gristmill.letters import LetterDataset

for words in (
    ("materialize", "letters/counts"),
    ("show", {artifact!r}, "1"),
    ("trace", {artifact!r}, "1"),
    ("verify", "data"),
    ("materialize", "letters/counts"),
):
    done = CliRunner().invoke(main, words)
    print(done.output, done.exit_code, done.exception, end="{END}")
data = LetterDataset({artifact!r})
print(len(data), data[0][:3].tolist(), data[0].dtype)
"""
    table, shown, traced, verified, again, read = run(toy_checkout, "-c", code).split(END)
    assert re.search(r"first +built +2 rows", table), table
    assert shown.startswith("lines: row 1 of 2\na: 1\nb: 1\nc: 1\nd: 0\n")
    assert shown.endswith("z: 0\norigin:\nfile: a.txt\nline: 2\n 0 None")
    assert traced == "file: a.txt\nline: 2\n 0 None"
    assert "1 artifact" in verified
    assert "nothing needed doing" in again
    assert read == "2 [2, 2, 0] uint32\n"


@pytest.mark.slow
def test_a_drop_without_text_is_refused_and_a_damaged_artifact_is_found(toy_checkout: Path) -> None:
    other = toy_checkout / "data/drops/letters/other"
    other.mkdir(parents=True)
    (other / "notes.md").write_text("no letters")
    _put(toy_checkout, "second")
    table = run(toy_checkout, "operate.py", "materialize", "letters/counts", fails=True)
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
