"""The pages of `docs/first-hour/`: each is followed from the first line to the last.

A block ```sh is typed, ```toml is written to the file that its first line names, ```python is run.
A block ```text behind one of these is what it prints: these lines in this order, `...` for any
others. Seconds, rates and the folder in which it was tried differ from run to run.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.samples import write_samples
from gristmill.vocabularies.placing import fetch
from tests.paths import CHECKOUT, REAL_DATA
from tests.requirements import cannot_run

PAGES = CHECKOUT / "docs/first-hour"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST = 120
CHANGES = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"[\d.,]+ (s|ms|µs|\w+/s)(?=[ ,);]|$)"), r"N \1"),
    (re.compile(r"\s+\d+\.\d\d$"), " N"),
    (re.compile(r"\s+"), " "),
)


def sample_drop(folder: Path) -> None:
    """Four files of SYNTH, as `gristmill samples` writes them."""
    write_samples(folder.parent / "samples")
    files = sorted((folder.parent / "samples/drops/synth").rglob("*.parquet"))
    folder.mkdir()
    for file in files[:4]:
        shutil.copy(file, folder)
    shutil.rmtree(folder.parent / "samples")


def lines_of(text: str, folder: Path) -> list[str]:
    """The lines of an output without what differs from run to run, and without empty ones."""
    lines = text.replace(f"{folder}/", "").splitlines()
    for pattern, by in CHANGES:
        lines = [pattern.sub(by, line) for line in lines]
    return [line.strip() for line in lines if line.strip(" ─")]


def missing(expected: str, printed: str, folder: Path) -> Iterator[str]:
    """Yield the first expected line that was not printed after those before it."""
    found = iter(lines_of(printed, folder))
    for line in lines_of(expected, folder):
        if line != "..." and line not in found:
            yield line
            return


def follow(page: Path, folder: Path) -> None:
    """Type a page in a folder, and compare what it says with what is printed."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GRISTMILL_DATA": str(folder / "data"),
        "DAGSTER_HOME": str(folder / "home"),
        "COLUMNS": "110",
    }
    printed = ""
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "toml":
            place = folder / text.partition("\n")[0].removeprefix("# ")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        elif kind == "text":
            assert not list(missing(text, printed, folder)), printed
        else:
            words = {"sh": ["bash", "-e", "-c"], "python": [sys.executable, "-c"]}[kind]
            done = subprocess.run(
                [*words, text],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed = done.stdout
            assert done.returncode == 0, printed


def given(family: str, folder: Path) -> None:
    """Put the files of a person into a folder, and begin a data root there as `make run` does."""
    if family != "synth" and not REAL_DATA.is_dir():
        cannot_run("real-data", f"there is no {REAL_DATA}")
    if family == "2048":
        shutil.copytree(REAL_DATA / "macroxue/d6_v1", folder / "games")
    elif family == "chess":
        shutil.copy(
            REAL_DATA / "chess/pgn/pgnmentor_Carlsen.pgn", folder / "lichess_elite_2024-03.pgn"
        )
    elif family == "reasoning":
        shutil.copytree(REAL_DATA / "reasoning/gsm8k", folder / "gsm8k")
    elif family == "puzzles":
        shutil.copytree(REAL_DATA / "puzzles/arc", folder / "ARC")
    else:
        sample_drop(folder / "synth")
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    fetch(folder / "data")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["2048", "chess", "reasoning", "puzzles", "synth"])
def test_a_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    given(page, tmp_path)
    follow(PAGES / f"{page}.md", tmp_path)


def test_each_page_is_short_and_each_output_follows_what_prints_it() -> None:
    pages = sorted(PAGES.glob("*.md"))
    assert len(pages) == 5
    for page in pages:
        text = page.read_text()
        assert len(text.splitlines()) <= LONGEST
        kinds = [kind for kind, _ in BLOCK.findall(text)]
        assert {"sh", "python", "text"} <= set(kinds) <= {"sh", "python", "text", "toml"}
        for before, kind in zip(["", *kinds], kinds, strict=False):
            assert kind != "text" or before in ("sh", "python")


def test_a_line_that_is_not_printed_is_found(tmp_path: Path) -> None:
    printed = f"built (3.1 s)\n{tmp_path}/data/a  12   0.51\nend\n"
    assert not list(missing("built (0.2 s)\n...\ndata/a 12 9.99\n", printed, tmp_path))
    assert list(missing("built (0.2 s)\ndata/a 13 0.51\n", printed, tmp_path)) == ["data/a 13 N"]
    assert list(missing("end\nbuilt (0.2 s)\n", printed, tmp_path)) == ["built (N s)"]
