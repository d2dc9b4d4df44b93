"""Rows of artifacts in the sample browser: pages, searches, sorting, in milliseconds.

Run from the checkout: python -m bench.browse [--rows N] [--only tables|served]. The data is
generated: N values of 2048 and N short games (default 10,000,000 each), N / 10 rows of 500 bytes,
and rows of 100 kB; for `served` a data root with N games of 500 bytes, 5 GB, and one with N / 10.
Status 1 where a limit is missed:
    pages   opening a table, and a page at its start, middle and end: at most 100 ms each. A file of
            lines is passed once before its middle is known; that time is printed
    search  N / 10 rows of 500 bytes without a hit: at most 2 s, and its time against a loop of
            `orjson.loads` over the same rows, at most 1
    first   rows of 100 kB, a hit in each tenth: an answer with hits in at most 2 s
    sorted  a column of N numbers: its time against NumPy's stable argsort, at most 4 times
    served  `gristmill browse` of that root: the list, and the first page of rows of N games, at
            most 0.1 CPU s each; what the columns of N / 10 rows hold, 3 CPU s a million rows, once;
            its own memory after N rows are counted, at most 50 MB above that after N / 10
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

import numpy as np
import orjson

from bench import kit
from bench.publishing import published
from gristmill.browse import Query, open_table
from gristmill.browse.source import Table
from gristmill.browse.web.asked import PREFIX, Asked
from gristmill.contract import FileNote, Summary
from gristmill.macroxue.format.rows import VALUE_ROW_DTYPE
from gristmill.publish.build import Attempt

T = TypeVar("T")
PAGE_MS, SEARCH_S, LOOP, SORT = 100.0, 2.0, 1.0, 4.0
PAGE_CPU, COUNT_CPU, GROWTH_MB = 0.1, 3.0, 50.0
BLOCK = 100_000


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the seconds that it took."""
    begin = time.perf_counter()
    return work(), time.perf_counter() - begin


def write_values(folder: Path, rows: int) -> None:
    """A value sidecar with other rewards in each row."""
    folder.mkdir()
    values = np.lib.format.open_memmap(folder / "values.npy", "w+", VALUE_ROW_DTYPE, (rows,))
    for first in range(0, rows, 1_000_000):
        part = values[first : first + 1_000_000]
        part["run_id"], part["step_index"] = np.arange(len(part)) // 500, np.arange(len(part)) % 500
        part["reward"] = np.random.default_rng(first).integers(0, 2048, len(part))
    values.flush()
    (folder / "values.json").write_text("{}")


def write_games(folder: Path, rows: int, size: int, word: str = "") -> Path:
    """Valid games in lines of `size` bytes; each tenth has the word."""
    folder.mkdir()
    lines = []
    for number in range(min(rows, BLOCK)):
        row: dict[str, object] = {"game_id": f"{number:010d}", "plies": number % 200, "moves": ""}
        filler = size - len(orjson.dumps(row)) - 1
        moves = ("lorem ipsum dolor " * (filler // 18 + 1))[:filler]
        row["moves"] = word + moves[len(word) :] if word and number % 10 == 9 else moves
        lines.append(orjson.dumps(row) + b"\n")
    block = b"".join(lines)
    path = folder / "valid_games.jsonl"
    with path.open("wb") as file:
        for _ in range(rows // len(lines)):
            file.write(block)
    return path


def pages(place: Path, rows: int) -> None:
    """Print how long opening and paging take."""
    table, opening = timed(lambda: open_table(place))
    found, first = timed(lambda: table.rows(0, 25))
    passed = timed(lambda: table.rows(rows - 25, 25, seconds=3600))[1]
    assert len(found) == 25 and table.count == rows
    later = [timed(lambda at=at: table.rows(at, 25))[1] for at in (rows // 2, rows - 25)]  # type: ignore[misc]
    worst = 1000 * max(opening, first, *later)
    kit.bounded(
        f"pages   {table.kind}, {rows:,} rows: opening {1000 * opening:.1f} ms, first page "
        f"{1000 * first:.1f} ms, middle and end {1000 * max(later):.1f} ms, the first jump to the "
        f"end {passed:.2f} s; most ms",
        worst,
        most=PAGE_MS,
    )


def whole_search(table: Table, word: str) -> int:
    """The number of hits, however many answers it takes."""
    hits, token, begun = 0, "", False
    while token or not begun:
        found = table.find(Query(search=word), token, 1000)
        hits, token, begun = hits + len(found.rows), found.token, True
    return hits


def search(home: Path, rows: int) -> None:
    """Print how long a search without a hit takes, and a loop over the same rows."""
    path = write_games(home / "search", rows, 500)
    table = open_table(path.parent)
    hits, took = min((timed(lambda: whole_search(table, "sought")) for _ in range(3)), key=_seconds)
    assert hits == 0

    def loop() -> int:
        with path.open("rb") as file:
            return sum("sought" in orjson.loads(line)["moves"] for line in file)

    _, plain = timed(loop)
    kit.bounded(f"search  {rows:,} rows of 500 bytes: s", took, most=SEARCH_S)
    kit.bounded("search  times a loop of orjson.loads", took / plain, most=LOOP)


def _seconds(found: tuple[int, float]) -> float:
    return found[1]


def first_hits(home: Path, rows: int) -> None:
    """Print how long the first hits in long rows take."""
    table = open_table(write_games(home / "long", rows, 100_000, "sought").parent)
    found, took = timed(lambda: table.find(Query(search="sought")))
    assert found.rows
    kit.bounded(f"first   rows of 100 kB: {len(found.rows)} hits in s", took, most=SEARCH_S)


def sorting(place: Path) -> None:
    """Print how long the first page by a column takes."""
    table = open_table(place)
    values = np.load(place / "values.npy", mmap_mode="r")["reward"]
    order, plain = timed(lambda: np.argsort(np.array(values), kind="stable"))
    found, took = timed(lambda: table.find(Query(sort="reward")))
    assert [row.number for row in found.rows] == order[:25].tolist()
    what = f"sorted  {len(values):,} numbers: {took:.2f} s, times NumPy"
    kit.bounded(what, took / plain, most=SORT)


def tables(given: kit.Given) -> None:
    home, rows = given.scratch, max(BLOCK * 10, given.rows // (BLOCK * 10) * BLOCK * 10)
    write_values(home / "one", 1)
    open_table(home / "one")  # the imports of a process
    write_values(home / "values", rows)
    write_games(home / "games", rows, 80)
    pages(home / "values", rows)
    pages(home / "games", rows)
    search(home, rows // 10)
    first_hits(home, 2_000)
    sorting(home / "values")


@dataclass(frozen=True)
class _Games(Summary):
    valid_games: int


@dataclass(frozen=True)
class _Rows:
    rows: int


def _publish_games(root: Path, key: str, rows: int) -> Asked:
    """Publish valid games in lines of 500 bytes; returns their address."""
    place = f"chess/validated/{key}"

    def make(attempt: Attempt) -> Summary:
        shutil.rmtree(attempt.out, ignore_errors=True)
        path = write_games(attempt.out, rows, 500)
        return _Games({path.name: FileNote(rows)}, rows)

    published(root, "chess/valid_games", key, _Rows(rows), make, artifact=place, shared=False)
    return Asked(place, "chess/valid_games", key)


class _Served:
    """`gristmill browse` of a data root, and the CPU seconds and memory of its process."""

    def __init__(self, root: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._home = f"http://127.0.0.1:{free.getsockname()[1]}"
        words = ["browse", str(root), "--port", self._home.rpartition(":")[2]]
        command = [sys.executable, "-m", "gristmill.cli", *words]
        self.process = subprocess.Popen(command, cwd=kit.CHECKOUT, stdout=subprocess.PIPE)
        assert self.process.stdout is not None and self.process.stdout.readline()
        self._rest()

    def cpu(self, address: str) -> tuple[float, str]:
        """CPU seconds of a page, with what its threads do after it; and the page."""
        before = self._spent()
        with urlopen(f"{self._home}{address}") as answer:
            text = answer.read().decode()
        self._rest()
        return self._spent() - before, text

    def counted(self, asked: Asked) -> float:
        """CPU seconds until it is known what the columns hold."""
        took, text = self.cpu(asked.address("values"))
        while "<progress" in text:
            more, text = self.cpu(asked.address("values"))
            took += more
        return took

    def megabytes(self) -> float:
        """Its own memory, without the pages of files that it has mapped."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon"))

    def _spent(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _rest(self) -> None:
        spent = -1.0
        while spent != (spent := self._spent()):
            time.sleep(0.3)


def served(given: kit.Given) -> None:
    rows, root = max(BLOCK * 10, given.rows // (BLOCK * 10) * BLOCK * 10), given.scratch / "root"
    (root / "drops").mkdir(parents=True)
    large, small = _publish_games(root, "large", rows), _publish_games(root, "small", rows // 10)
    pages = _Served(root)
    try:
        for what, address in (("list", PREFIX), (f"{rows:,} rows", large.address("rows"))):
            kit.bounded(
                f"served  first page of {what}: CPU s", pages.cpu(address)[0], most=PAGE_CPU
            )
        million, begun = rows / 1e7, pages.counted(small)
        kit.bounded("served  columns, CPU s a million rows", begun / million, most=COUNT_CPU)
        kit.bounded("served  asked again: CPU s", pages.counted(small), most=PAGE_CPU)
        before = pages.megabytes()
        took = pages.counted(large)
        what = (
            f"served  columns of {rows:,} rows in {took:.1f} CPU s: {before:.0f} MB before, MB more"
        )
        kit.bounded(what, pages.megabytes() - before, most=GROWTH_MB)
    finally:
        pages.process.terminate()


if __name__ == "__main__":
    kit.main(__doc__, tables, served, rows=10_000_000)
