"""Reads hostile puzzle files in a process with 1 GB of address space."""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_HEADER = b"source,question,answer,rating\n"
_MOST_TASK = 16 << 20
_MOST_TOML = 1 << 20


def _files() -> Iterator[tuple[str, bytes]]:
    """Names and contents, one at a time."""
    yield "objects.json", b'{"train":[' + b"{}," * 5_000_000 + b"{}]}"
    yield "lists.json", b'{"train":[' + b"[]," * 5_000_000 + b"[]]}"
    yield "numbers.json", b'{"train":[{"input":[[' + b"1," * 8_000_000 + b"1]]}]}"
    yield "keys.json", b'{"train":[' + b'{"a":1},' * 2_000_000 + b"1]}"
    yield "deep.json", b"[" * (_MOST_TASK - 1)
    yield "text.json", b'{"name":"' + b"x" * (_MOST_TASK - 20) + b'"}'
    yield "too_large.json", b" " * (_MOST_TASK + 1)
    yield "cells.csv", _HEADER + b"," * (60 << 20) + b"\n"
    yield "header.csv", b"," * (60 << 20) + b"\n"
    yield "quotes.csv", _HEADER + b'a,"' + b'""' * (30 << 20) + b"\n"
    yield "no_newline.csv", _HEADER + b"a" * (60 << 20)
    yield "blank_lines.csv", _HEADER + b"\n" * 1_000_000
    yield "words.txt", b"a " * (30 << 20) + b"\n"
    yield "no_newline.txt", b"1" * (60 << 20)
    yield "blank_lines.txt", b"\n" * 1_000_000
    yield "lists.toml", b"sources = [" + b"[]," * (_MOST_TOML // 4) + b"[]]"
    yield "tables.toml", b"[[a]]\n" * (_MOST_TOML // 7)
    yield "keys.toml", b"".join(b"a%d.b={}\n" % number for number in range(_MOST_TOML // 14))
    yield "numbers.toml", b"a = [" + b"1," * (_MOST_TOML // 3) + b"1]"
    yield "too_large.toml", b"#" * (_MOST_TOML + 1)


def write(folder: Path) -> None:
    """Write the files."""
    for name, octets in _files():
        path = folder / (f"{name}/training/t.json" if name.endswith(".json") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(octets)


def main(folder: Path) -> None:
    """Print for each file what reading it says, its CPU seconds, and the peak of the process."""
    from gristmill.contract import BadInput
    from gristmill.puzzles.config import read_recipe_file
    from gristmill.puzzles.raw.arc_tasks import read_tasks
    from gristmill.puzzles.raw.tables import read_bank, read_mazes

    readers: dict[str, Callable[[Path], Any]] = {
        ".json": lambda path: f"{len(read_tasks(path))} tasks",
        ".csv": lambda path: f"{sum(1 for _ in read_mazes(path))} batches",
        ".txt": lambda path: f"{sum(1 for _ in read_bank(path))} batches",
        ".toml": read_recipe_file,
    }
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for path in sorted(folder.iterdir()):
        begin = time.process_time()
        try:
            said = readers[path.suffix](path)
        except BadInput as error:
            said = error.rule
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(path.name, f"{time.process_time() - begin:.1f}", peak, said, sep="\t")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
