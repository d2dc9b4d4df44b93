"""The Python blocks of the pages for users run as they stand, on artifacts of the samples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Block, blocks, typed
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

DOCS = CHECKOUT / "docs"
TYPED = ("chess", "macroxue", "puzzles")
"""Pages whose Python is typed; the blocks of one page are one program."""


def _python(page: str) -> list[Block]:
    return [block for block in blocks(DOCS / f"{page}.md") if block.language == "python"]


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED)
def test_the_python_of_a_page_runs_as_it_stands(page: str, sample_root: SampleRoot) -> None:
    pytest.importorskip("torch")
    code = "".join(block.code for block in _python(page) if not block.why)
    program = Block(f"{page}.md", 1, "python", code, "")
    done = subprocess.run(
        ["bash", "-c", typed([program])],
        cwd=sample_root.data.parent,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_fragment_of_a_page_says_why_it_does_not_run() -> None:
    for page in TYPED:
        every = _python(page)
        fragments = [block for block in every if block.why]
        assert len(fragments) * 2 <= len(every), page
        assert all(len(block.why.split()) > 2 for block in fragments), page
