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

import json
import logging
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import kit
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

_UNIT = "games per CPU second"


def real_pgns() -> list[Path]:
    """The real games."""
    return sorted(kit.real("chess/pgn").glob("*.pgn"))


def built(pgns: list[Path], home: Path) -> int:
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


def chain(given: kit.Given) -> None:
    home, pgns = given.scratch / "home", real_pgns()
    built(pgns[:1], home)
    kit.compare(
        *("chain", lambda: built(pgns, home), lambda: read_all(pgns), _UNIT),
        least=60,
        rounds=given.rounds,
        warm=False,
    )


def parse_all(pgn: Path) -> int:
    """What a person does with the public parser: one text a game, all of them at once."""
    import pyarrow as pa
    from rust_pgn_reader_python_binding import parse_games

    first, *others = pgn.read_text("utf-8", errors="replace").split("\n\n[Event ")
    texts = pa.array([first, *("[Event " + text for text in others)])
    parsed: int = parse_games(pa.chunked_array([texts]), num_threads=1).num_games
    return parsed


def parser(given: kit.Given) -> None:
    if find_spec("rust_pgn_reader_python_binding") is None:
        print("parser: left out: pip install --no-deps rust-pgn-reader-python-binding==4.1.0")
        return
    pgn = given.scratch / "ten.pgn"
    pgn.write_bytes(b"".join(pgn.read_bytes() + b"\n\n" for pgn in real_pgns()) * 10)
    kit.compare(
        *("parser", lambda: validated(pgn, given.scratch / "home"), lambda: parse_all(pgn), _UNIT),
        least=1.2,
        rounds=given.rounds,
    )


def validated(pgn: Path, home: Path) -> int:
    """Validate an archive again; the number of its games."""
    shutil.rmtree(home, ignore_errors=True)
    return validate([pgn], home).total_games


def splices(given: kit.Given) -> None:
    from gristmill.chess.read.row_batches import phase_codes

    home = given.scratch / "splices"
    home.mkdir()
    validate(real_pgns(), home / "valid")
    build_splice_dataset(home / "valid", home / "warm", SpliceConfig(max_samples_per_game=1))
    lines = (home / "valid" / "valid_games.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["winner_side"] in "WB"][:600]
    codes = phase_codes([row["moves"] for row in rows])

    def ours() -> int:
        shutil.rmtree(home / "splice", ignore_errors=True)
        return sum(build_splice_dataset(home / "valid", home / "splice").samples.values())

    kit.compare(
        *("splices", ours, lambda: plain_splices(rows, codes, home / "plain.jsonl")),
        "rows per CPU second",
        least=8,
        rounds=given.rounds,
        warm=False,
    )


def peak(home: str, *pgns: str) -> int:
    """Peak memory of the chain in this process."""
    built([Path(path) for path in pgns], Path(home))
    return kit.peak_bytes()


def memory(given: kit.Given) -> None:
    texts = [pgn.read_bytes() + b"\n\n" for pgn in real_pgns()]

    def of(times: int) -> int:
        pgn = given.scratch / "times.pgn"
        pgn.write_bytes(b"".join(texts) * times)
        return int(kit.finish(kit.start(given.scratch / "home", pgn)))

    kit.grows(of, 1, 4, "times the games", most=1.25)


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


def starts(given: kit.Given) -> None:
    plain, tagged = given.scratch / "plain.pgn", given.scratch / "tagged.pgn"
    write_archives(plain, tagged, 3_000)
    home = given.scratch / "home"
    kit.compare(
        *("starts", lambda: validated(tagged, home), lambda: validated(plain, home), _UNIT),
        least=0.5,
        rounds=given.rounds,
    )


if __name__ == "__main__":
    logging.getLogger("chess.pgn").setLevel(logging.CRITICAL + 1)
    kit.main(__doc__, chain, parser, splices, memory, starts, child=peak, rounds=3)
