"""A month of chess from its drop to all artifacts, through Dagster, against `read_game` alone.

Run from the checkout: python -m bench.chess_month [--games N]. It writes N games (default
320,000), the real ones without comments, with other days and cut somewhere in their last third,
so that most have moves of their own. It calls `gristmill drop` and `gristmill materialize --all`
in a root and an instance of their own. Both start, check all laws and write records. It prints
their CPU seconds, the ratio of games per CPU second to that of `chess.pgn.read_game`, and the
peak of the root's bytes beside those at the end. Status 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import threading
from pathlib import Path

from bench.chess import REAL, per_second, read_all
from bench.nothing_to_do import prepare
from bench.small_commands import children_seconds

TIMES, PEAK = 20.0, 1.2
_READ = 2000  # games that python-chess reads


def write_games(path: Path, count: int) -> None:
    """Write a month of games."""
    texts = [file.read_text("latin-1") for file in sorted((REAL / "pgn").glob("*.pgn"))]
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=320_000)
    count = parser.parse_args().games
    with tempfile.TemporaryDirectory() as scratch:
        home, pgn = Path(scratch) / "month", Path(scratch) / "lichess_elite_2024-01.pgn"
        prepare(home)
        (home / "data").mkdir()
        write_games(pgn, count)
        environment = {
            "GRISTMILL_DATA": str(home / "data"),
            "DAGSTER_HOME": str(home / "home"),
        }
        peak = Peak(home / "data")
        peak.start()
        calls = (("drop", "--family", "chess", str(pgn)), ("materialize", "--all"))
        seconds = sum(
            children_seconds(("-m", "gristmill.cli", *call), environment) for call in calls
        )
        peak.over.set()
        peak.join()
        few = Path(scratch) / "few.pgn"
        write_games(few, _READ)
        ratio = count / seconds / per_second(lambda: read_all([few]))
        most, end = peak.bytes, peak.size()
    good = ratio >= TIMES and most <= PEAK * end
    print(
        f"a month of {count:,} games: CPU s {seconds:.1f} | times as fast as read_game {ratio:.1f} "
        f"(required {TIMES:g}) | peak of bytes {most / end:.2f} times those at the end "
        f"(required {PEAK:g}) {'ok' if good else 'MISSED'}"
    )
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
