"""A copy of the checkout with the family of docs/adding-a-family.md in it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "adding-a-family.md"
FILE = re.compile(r"^`(gristmill/letters/[\w/]+\.py)`\n\n```python\n(.*?)^```$", re.M | re.S)
LINE = re.compile(r"^FAMILIES: Final = .*$", re.M)


def files_of_the_page() -> dict[str, str]:
    return dict(FILE.findall(PAGE.read_text()))


@pytest.fixture(scope="module")
def toy_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with the family of the page in it."""
    root = tmp_path_factory.mktemp("toy")
    for top in ("gristmill", "assets", "resources", "sensors", "commands"):
        shutil.copytree(CHECKOUT / top, root / top)  # with the bytecode, where it is kept
    for name in ("definitions.py", "operate.py", "workspace.yaml", "dagster.yaml"):
        shutil.copy(CHECKOUT / name, root)
    for path, text in files_of_the_page().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    registry = root / "gristmill" / "families/__init__.py"
    (line,) = LINE.findall(PAGE.read_text())
    text, replaced = LINE.subn(line, registry.read_text())
    assert replaced == 1
    registry.write_text(text)
    return root


def run(checkout: Path, *words: str, fails: bool = False) -> str:
    """What Python prints in a copy of the checkout. fails: whether the process must fail."""
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
