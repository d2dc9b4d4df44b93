"""The family of docs/adding-a-family.md: two folders and one line, from drop to reader."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "adding-a-family.md"
FILE = re.compile(
    r"^`((?:gristmill|assets)/letters/[\w/]+\.py)`\n\n```python\n(.*?)^```$", re.M | re.S
)
END = "<end>"
LINE = re.compile(r"^FAMILIES: Final = .*$", re.M)


def _files_of_the_page() -> dict[str, str]:
    return dict(FILE.findall(PAGE.read_text()))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with the family of the page in it."""
    root = tmp_path_factory.mktemp("toy")
    for top in ("gristmill", "assets", "resources", "sensors", "commands"):
        shutil.copytree(CHECKOUT / top, root / top)  # with the bytecode, where it is kept
    for name in ("definitions.py", "operate.py", "workspace.yaml", "dagster.yaml"):
        shutil.copy(CHECKOUT / name, root)
    for path, text in _files_of_the_page().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    registry = root / "gristmill" / "families.py"
    (line,) = LINE.findall(PAGE.read_text())
    text, replaced = LINE.subn(line, registry.read_text())
    assert replaced == 1
    registry.write_text(text)
    return root


def _run(checkout: Path, *words: str, fails: bool = False) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    environment |= {"PYTHONPATH": str(checkout), "GRISTMILL_DATA": "data", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def _gristmill(checkout: Path, *words: str, fails: bool = False) -> str:
    return _run(checkout, "-m", "gristmill.cli", *words, fails=fails)


def test_the_family_is_two_folders_and_one_line(checkout: Path) -> None:
    changed = {
        path.relative_to(checkout).as_posix()
        for path in checkout.rglob("*.py")
        if not (CHECKOUT / path.relative_to(checkout)).exists()
        or path.read_bytes() != (CHECKOUT / path.relative_to(checkout)).read_bytes()
    }
    outside = {
        path for path in changed if not path.startswith(("gristmill/letters/", "assets/letters/"))
    }
    assert outside == {"gristmill/families.py"}
    before = (CHECKOUT / "gristmill/families.py").read_text().splitlines()
    after = (checkout / "gristmill/families.py").read_text().splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def _put(checkout: Path, name: str) -> None:
    """Put a drop of two lines into the inbox."""
    drop = checkout / "data/drops/letters" / name
    drop.mkdir(parents=True)
    (drop / "a.txt").write_text("Abba\ncab\n")


def test_a_drop_goes_through_the_definitions_to_the_reader(checkout: Path) -> None:
    """All commands in one process, since most of the time of each is its start."""
    _put(checkout, "first")
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
    table, shown, traced, verified, again, read = _run(checkout, "-c", code).split(END)
    assert re.search(r"letters/counts +first +built .* 2 ", table), table
    assert shown.split() == ["a:1", "b:1", "c:1", "0", "None"]
    assert traced == "file: a.txt\nline: 2\n 0 None"
    assert "1 artifact" in verified
    assert "nothing needed doing" in again
    assert read == "2 [2, 2, 0] uint32\n"


@pytest.mark.slow
def test_a_drop_without_text_is_refused_and_a_damaged_artifact_is_found(checkout: Path) -> None:
    other = checkout / "data/drops/letters/other"
    other.mkdir(parents=True)
    (other / "notes.md").write_text("no letters")
    _put(checkout, "second")
    table = _run(checkout, "operate.py", "materialize", "letters/counts", fails=True)
    assert "letters/other: it holds no .txt file" in table
    lines = checkout / "data/letters/counts/second/lines.jsonl"
    lines.write_text("")
    assert "lines.jsonl" in _gristmill(checkout, "verify", "data", fails=True)


@pytest.mark.slow
def test_the_sensor_and_the_samples_know_the_family(checkout: Path) -> None:
    code = (
        "import definitions\n"
        "defs = definitions.build_defs()\n"
        "print(*(sensor.name for sensor in defs.sensors))\n"
    )
    assert "letters_drops" in _run(checkout, "-c", code).split()
    assert "drops/letters/sample" in _gristmill(checkout, "samples", "samples")
    assert (checkout / "samples/drops/letters/sample/two.txt").read_text() == "zebra\n"


def test_the_page_shows_every_file() -> None:
    files = _files_of_the_page()
    assert len(files) == PAGE.read_text().count("```python") - 2
    rooms = {path.split("/")[2] for path in files if path.startswith("gristmill/")}
    assert rooms >= {"format", "raw", "read", "builders", "laws", "show", "family.py", "config.py"}
