"""What a module of tests says of hostile files, in a process of its own with bounded memory."""

import subprocess
import sys
from pathlib import Path

from tests.paths import CHECKOUT


def lines_of(module: str, folder: Path) -> list[list[str]]:
    """The cells of each line."""
    words = [sys.executable, "-m", module, str(folder)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]
