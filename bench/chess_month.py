"""A month of chess from its drop to all artifacts, through Dagster, against `read_game` alone.

Run from the checkout: python -m bench.chess_month [--games N]. It writes N games (default
320,000), the real ones without comments with other days and cut somewhere in their last third, so
that most have moves of their own. It calls `gristmill drop` and `gristmill materialize --all` in a
root and an instance of their own. Both start, check all laws and write records. It prints their
CPU seconds, the ratio of games per CPU second to that of `chess.pgn.read_game`, the peak of the
resident memory, and that of the root's bytes beside those at the end. Status 1 where a bound is
missed.
"""

from __future__ import annotations

import os
import random
import re
import resource
import threading
from pathlib import Path

from bench import kit
from bench.chess import read_all, real_pgns
from bench.servers import write_home

TIMES, PEAK, RESIDENT = 15.0, 1.2, 500.0
_READ = 2000  # games that python-chess reads


def write_games(path: Path, count: int) -> None:
    """Write a month of games."""
    texts = [file.read_text("latin-1") for file in real_pgns()]
    games = [game for text in texts for game in re.split(r"(?m)^(?=\[Event )", text)]
    games = [game for game in games if re.fullmatch(r"[^{(;$]+", game.partition("\n\n")[2])]
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as out:
        for number in range(count):
            tags, _, moves = draw.choice(games).partition("\n\n")
            tags = re.sub(r'\[Date "[^"]*"', f'[Date "2024.01.{1 + number % 28:02}"', tags)
            *plies, result = moves.split()
            cut = draw.randint(len(plies) * 2 // 3, len(plies))
            text = re.sub(r"\s\d+\.$", "", " ".join(plies[:cut]))
            out.write(f"{tags}\n\n{text} {result}\n\n")


class Peak(threading.Thread):
    """Looks every fifth of a second at the bytes below a folder, till it is asked to end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.bytes, self.over = folder, 0, threading.Event()

    def size(self) -> int:
        total = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
                except FileNotFoundError:
                    continue
        return total

    def run(self) -> None:
        while not self.over.wait(0.2):
            self.bytes = max(self.bytes, self.size())


def month(given: kit.Given) -> None:
    home, pgn = given.scratch / "month", given.scratch / "lichess_elite_2024-01.pgn"
    write_home(home / "home")
    (home / "data").mkdir()
    write_games(pgn, given.games)
    environment = {"GRISTMILL_DATA": str(home / "data"), "DAGSTER_HOME": str(home / "home")}
    peak = Peak(home / "data")
    peak.start()
    calls = (("drop", "--family", "chess", str(pgn)), ("materialize", "--all"))
    seconds = sum(kit.python(("-m", "gristmill.cli", *call), environment) for call in calls)
    peak.over.set()
    peak.join()
    few = given.scratch / "few.pgn"
    write_games(few, _READ)
    ratio = given.games / seconds / kit.rate(lambda: read_all([few]))
    what = f"a month of {given.games:,} games: CPU s {seconds:.1f}, times as fast as read_game"
    kit.bounded(what, ratio, least=TIMES)
    resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    kit.bounded("peak of resident memory, MB", resident, most=RESIDENT)
    kit.bounded("peak of bytes by those at the end", peak.bytes / peak.size(), most=PEAK)


if __name__ == "__main__":
    kit.main(__doc__, month, games=320_000)
