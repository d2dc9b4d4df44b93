"""Chess against python-chess, a plain loop, and itself on four times the games.

Run from the checkout: python -m bench.chess [--rounds N] [--only NAME]. Five comparisons,
each with its required ratio; status 1 where one is missed:
    chain   real PGN to validated games, game dataset and cache, in one process,
            against `chess.pgn.read_game` alone: games per CPU second, at least 60 times
    parser  validation of ten times the real PGN, against one thread of the fastest public
            parser, rust-pgn-reader-python-binding 4.1.0, which gets its games as texts and
            writes nothing: games per CPU second, at least 1.2 times; left out where it is
            not installed
    splices legacy sample rows against a plain loop that gets the phases for
            nothing: rows per CPU second, at least 8 times
    memory  peak memory of the chain on four times the games, at most 1.25 times
    starts  validation of an archive in which 29 % of the games begin at a FEN, against
            the same games from the start: games per CPU second, at least 0.5 times
Compilation is done before (numba keeps it on disk).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.samples import write_month

CHECKOUT = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", CHECKOUT.parent / "shared" / "data")) / "chess"


def chain(pgns: list[Path], home: Path) -> int:
    """PGN to validated games, dataset and cache; returns the games read."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    summary = validate(pgns, home / "valid", ValidateConfig())
    build_game_dataset(home / "valid", home / "game", GameConfig())
    build_splice_cache(home / "game", home / "cache", CacheConfig())
    return summary.total_games


def read_all(pgns: list[Path]) -> int:
    """What python-chess does to read the same files, and nothing else."""
    import chess.pgn

    games = 0
    for pgn in pgns:
        with pgn.open(encoding="utf-8", errors="replace") as file:
            while chess.pgn.read_game(file) is not None:
                games += 1
    return games


def plain_splices(rows: list[dict[str, Any]], codes: list[bytes], out: Path) -> int:
    """Legacy rows by a plain loop: one dict and one json.dumps a sample, phases given."""
    from gristmill.chess.format import rows as words

    written = 0
    with out.open("w") as file:
        for row, code in zip(rows, codes, strict=True):
            moves = row["moves"]
            n = len(moves)
            for i in range(7, n - 1):
                sample = {
                    "game_id": row["game_id"],
                    "winner_side": row["winner_side"],
                    "splice_index": i,
                    "ply": i + 1,
                    "plies_remaining": n - i - 1,
                    "plies_remaining_bucket": words.remaining_bucket(n - i - 1),
                    "relative_progress_bucket": words.progress_bucket(i + 1, n),
                    "phase": words.PHASES[code[i] & 3],
                    "phase_reason": words.PHASE_REASONS[code[i]],
                    "phase_rule_version": words.PHASE_RULE,
                    "context": moves[: i + 1],
                    "target": moves[i + 1 : i + 5],
                    "next_move": moves[i + 1],
                    "plies_total": n,
                }
                file.write(json.dumps(sample) + "\n")
                written += 1
    return written


def per_second(work: Callable[[], int]) -> float:
    """Items per CPU second of this process."""
    begun = time.process_time()
    items = work()
    return items / (time.process_time() - begun)


def report(name: str, ours: list[float], theirs: list[float], unit: str, least: float) -> bool:
    """Print the medians and the median ratio of the interleaved rounds."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    good = ratio >= least
    print(
        f"{name}: ours {statistics.median(ours):,.0f} {unit}, "
        f"theirs {statistics.median(theirs):,.0f} {unit}, "
        f"ratio {ratio:.2f} (required {least:g}) {'ok' if good else 'MISSED'}"
    )
    return good


def bench_chain(pgns: list[Path], home: Path, rounds: int) -> bool:
    chain(pgns[:1], home)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(per_second(lambda: chain(pgns, home)))
        theirs.append(per_second(lambda: read_all(pgns)))
    return report("chain", ours, theirs, "games/CPU s", 60)


def parse_all(pgn: Path) -> int:
    """What a person does with the public parser: one text a game, all of them at once."""
    import pyarrow as pa
    from rust_pgn_reader_python_binding import parse_games

    first, *others = pgn.read_text("utf-8", errors="replace").split("\n\n[Event ")
    texts = pa.array([first, *("[Event " + text for text in others)])
    parsed: int = parse_games(pa.chunked_array([texts]), num_threads=1).num_games
    return parsed


def bench_parser(pgns: list[Path], home: Path, rounds: int) -> bool:
    if find_spec("rust_pgn_reader_python_binding") is None:
        print("parser: left out: pip install --no-deps rust-pgn-reader-python-binding==4.1.0")
        return True
    pgn = home.with_name("ten.pgn")
    pgn.write_bytes(b"".join(pgn.read_bytes() + b"\n\n" for pgn in pgns) * 10)

    def validated() -> int:
        shutil.rmtree(home, ignore_errors=True)
        return validate([pgn], home).total_games

    ours, theirs = [], []
    for _ in range(rounds + 1):
        ours.append(per_second(validated))
        theirs.append(per_second(lambda: parse_all(pgn)))
    return report("parser", ours[1:], theirs[1:], "games/CPU s", 1.2)


def bench_splices(pgns: list[Path], home: Path, rounds: int) -> bool:
    from gristmill.chess.read.phases import phase_codes

    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    validate(pgns, home / "valid")
    build_splice_dataset(home / "valid", home / "warm", SpliceConfig(max_samples_per_game=1))
    lines = (home / "valid" / "valid_games.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["winner_side"] in "WB"][:600]
    codes = phase_codes([row["moves"] for row in rows])

    def ours_once() -> int:
        shutil.rmtree(home / "splice", ignore_errors=True)
        return sum(build_splice_dataset(home / "valid", home / "splice").samples.values())

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(per_second(ours_once))
        theirs.append(per_second(lambda: plain_splices(rows, codes, home / "plain.jsonl")))
    return report("splices", ours, theirs, "rows/CPU s", 8)


def peak(pgns: list[Path], home: Path) -> int:
    """Peak memory in KiB of the chain in a process of its own."""
    command = [sys.executable, "-m", "bench.chess", "--peak", str(home), *map(str, pgns)]
    done = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def bench_memory(pgns: list[Path], home: Path) -> bool:
    big = home.with_name("big.pgn")
    with big.open("wb") as file:
        for _ in range(4):
            for pgn in pgns:
                file.write(pgn.read_bytes() + b"\n\n")
    one, four = peak(pgns, home), peak([big], home)
    ratio = four / one
    good = ratio <= 1.25
    print(
        f"memory: {one / 1024:.0f} MiB, on four times the games {four / 1024:.0f} MiB, "
        f"ratio {ratio:.2f} (at most 1.25) {'ok' if good else 'MISSED'}"
    )
    return good


def write_archives(plain: Path, tagged: Path, games: int) -> None:
    """Generated games, and the same games, of which 29 % begin at the FEN after eight plies."""
    import chess.pgn

    write_month(plain, "2024-01", games, 5)
    with plain.open() as file, tagged.open("w") as out:
        for number in range(games):
            game = chess.pgn.read_game(file)
            if game is None:
                break
            node = game
            if number % 100 < 29:
                while node.variations and node.ply() < 8:
                    node = node.variations[0]
                later = chess.pgn.Game(game.headers)
                later.setup(node.board())
                later.add_line(node.mainline_moves())
                game = later
            print(game, file=out, end="\n\n")


def bench_starts(home: Path, rounds: int) -> bool:
    plain, tagged = home.with_name("plain.pgn"), home.with_name("tagged.pgn")
    write_archives(plain, tagged, 3_000)

    def games_of(pgn: Path) -> int:
        shutil.rmtree(home, ignore_errors=True)
        return validate([pgn], home).total_games

    games_of(plain)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(per_second(lambda: games_of(tagged)))
        theirs.append(per_second(lambda: games_of(plain)))
    return report("starts", ours, theirs, "games/CPU s", 0.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="the name of the one comparison to make")
    parser.add_argument("--peak", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.getLogger("chess.pgn").setLevel(logging.CRITICAL + 1)
    if asked.peak:
        chain([Path(path) for path in asked.peak[1:]], Path(asked.peak[0]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    pgns = sorted((REAL / "pgn").glob("*.pgn"))
    if not pgns:
        print(f"no PGN under {REAL}; set GRISTMILL_REAL_DATA")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        benches = {
            "chain": lambda: bench_chain(pgns, home, asked.rounds),
            "parser": lambda: bench_parser(pgns, home, asked.rounds),
            "splices": lambda: bench_splices(pgns, home, asked.rounds),
            "memory": lambda: bench_memory(pgns, home),
            "starts": lambda: bench_starts(home, asked.rounds),
        }
        good = [bench() for name, bench in benches.items() if asked.only in (None, name)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
