"""The recipes of docs/recipes.md: the files that they name are there, and an asset is built."""

import re
from pathlib import Path

import pytest

from gristmill.families import FAMILIES
from tests.architecture.toy_family import run
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "recipes.md"
FILE = re.compile(r"^`(gristmill/letters/[\w/]+\.py)`\n\n```python\n(.*?)^```$", re.M | re.S)
END = "<end>"
COMMANDS = f"""
import numpy
from click.testing import CliRunner
from gristmill.cli import main

for words in (
    ("build", "letters/counts", "summed"),
    ("build", "letters/totals"),
    ("materialize", "letters/totals", "--partition", "summed"),
    ("verify", "data/letters"),
):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (done.output, done.exception)
    print(done.output, end="{END}")
print(numpy.load("data/letters/totals/summed/totals.npy")[:3])
"""
"""All commands in one process, since most of the time of each is its start."""
NAMED = re.compile(r"^\| `([^`]+)`", re.M)


def _block(page: str, before: str) -> str:
    """The code that follows a sentence of the page."""
    found = re.search(rf"{re.escape(before)}.*?^```python\n(.*?)^```$", page, re.M | re.S)
    assert found is not None, before
    return found[1]


def test_a_recipe_names_files_that_are_there() -> None:
    paths = NAMED.findall(PAGE.read_text())
    assert len(paths) > 15
    for path in paths:
        families = FAMILIES if "<family>" in path else [""]
        for family in families:
            named = path.replace("<family>", family).replace("<kind>", "sudoku")
            place = CHECKOUT / named.replace("<program>", "trm")
            room = [each.with_suffix(".py") for each in (place, place.parent)]  # of one module
            room.append(place.with_name(f"test_{place.name}.py"))
            assert any(each.exists() for each in (place, *room)), f"{path} of {family}"


@pytest.mark.slow
def test_an_asset_is_two_modules_a_build_and_a_declaration(toy_checkout: Path) -> None:
    page = PAGE.read_text()
    for path, text in FILE.findall(page):
        (toy_checkout / path).write_text(text)
    builds = toy_checkout / "gristmill/letters/builds.py"
    builds.write_text(f"{builds.read_text()}\n\n{_block(page, 'at the end of')}")
    family = toy_checkout / "gristmill/letters/family.py"
    text = family.read_text()
    text = text.replace("kinds=[_COUNTS]", "kinds=[_COUNTS, _TOTALS]")
    text = text.replace(
        "from gristmill.families",
        "from gristmill.code.digest import Code\nfrom gristmill.families",
        1,
    )
    family.write_text(
        text.replace("CATALOG =", f"{_block(page, 'in the list `kinds`')}\n\nCATALOG =")
    )
    drop = toy_checkout / "data/drops/letters/summed"
    drop.mkdir(parents=True)
    (drop / "a.txt").write_text("Abba\ncab\n")
    counted, summed, table, verified, read = run(toy_checkout, "-c", COMMANDS).split(END)
    assert "published" in counted and "published" in summed
    assert "letters/totals" in table
    assert "2 artifacts" in verified
    assert read == "[3 3 1]\n"
