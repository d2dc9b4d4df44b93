"""Files of drops are opened through `gristmill.untrusted` alone (docs/drops.md)."""

import ast
from collections.abc import Iterator

import pytest

from tests.paths import CHECKOUT

LIBRARY = CHECKOUT / "gristmill"
READS_DROPS = [
    *sorted(LIBRARY.glob("*/raw/*.py")),
    *sorted(LIBRARY.glob("inbox/*.py")),
    *sorted(LIBRARY.glob("look/*.py")),
    LIBRARY / "provenance/raw_inputs.py",
]
"""The modules that see files of drops, of every family there is and will be."""

OPENING = {
    *("open", "fdopen", "read_bytes", "read_text", "loadtxt", "memmap", "fromfile"),
    *("ParquetFile", "read_table", "read_metadata", "ZipFile", "GzipFile", "sha256_file"),
}
"""Names of functions and methods that open a path."""

OWN_FILES = {
    "chess/raw/download.py": "the download and the PGN that this process writes itself",
    "chess/raw/pgn.py": "the PGN of a published month",
    "corpora/raw/forgotten.py": "the key of the data root, and the tombstones that it writes",
    "corpora/raw/transforms.py": "the source of a transform that is installed",
    "inbox/hub.py": "downloads that this process writes itself",
    "inbox/copying.py": "the lock, the list and the copy that this process writes",
    "look/finding.py": "the recipe that it writes",
    "provenance/raw_inputs.py": "the list of inputs in a published record",
}
"""Modules that also open files which are not of a drop, and which files these are."""

STREAMS = {
    "chess/raw/drops.py": "members of a ZIP that is open, and the PGN that it writes",
    "macroxue/raw/annotations.py": "an npy file that is open, which it maps",
}
"""Modules with such calls on files that are open, or that they write."""


def _calls(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            of_numpy = name == "load" and getattr(getattr(function, "value", 0), "id", "") == "np"
            if name in OPENING or of_numpy:
                yield node.lineno, name


def test_files_of_drops_are_opened_through_untrusted_alone() -> None:
    """Open them with gristmill.untrusted.files.open_file."""
    calls = {
        file.relative_to(LIBRARY).as_posix(): list(_calls(file.read_text())) for file in READS_DROPS
    }
    listed = {*OWN_FILES, *STREAMS}
    opening = {file: found for file, found in calls.items() if found}
    assert {file: opening[file] for file in opening if file not in listed} == {}
    assert listed - set(opening) == set(), "take them off the list"
    assert len(calls) > 40


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "path.open('rb')",
        "os.open(path, 0)",
        "path.read_bytes()",
        "(folder / 'x').read_text()",
        "np.load(path)",
        "pq.ParquetFile(path)",
        "zipfile.ZipFile(path)",
    ],
)
def test_every_way_to_open_a_path_is_seen(line: str) -> None:
    assert len(list(_calls(f"def f(path, folder):\n    {line}\n"))) == 1
