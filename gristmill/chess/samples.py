"""Sample months of chess: generated legal games with the tags of the elite database.

Some are repeated, too short, abandoned or end with another result than their tag, so that every
branch of the validation and the leakage check is used. The rest follows from the seed.
"""

from __future__ import annotations

import random
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# ECO code, name, moves in UCI.
OPENINGS = (
    ("C60", "Ruy Lopez", "e2e4 e7e5 g1f3 b8c6 f1b5"),
    ("C50", "Italian Game", "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5"),
    ("C42", "Petrov's Defense", "e2e4 e7e5 g1f3 g8f6"),
    ("C25", "Vienna Game", "e2e4 e7e5 b1c3"),
    ("B20", "Sicilian Defense", "e2e4 c7c5"),
    ("B90", "Sicilian Defense: Najdorf", "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6"),
    ("B12", "Caro-Kann Defense: Advance", "e2e4 c7c6 d2d4 d7d5 e4e5"),
    ("C02", "French Defense: Advance", "e2e4 e7e6 d2d4 d7d5 e4e5"),
    ("B01", "Scandinavian Defense", "e2e4 d7d5 e4d5 d8d5"),
    ("B07", "Pirc Defense", "e2e4 d7d6 d2d4 g8f6"),
    ("D06", "Queen's Gambit", "d2d4 d7d5 c2c4"),
    ("D10", "Slav Defense", "d2d4 d7d5 c2c4 c7c6"),
    ("D30", "Queen's Gambit Declined", "d2d4 d7d5 c2c4 e7e6"),
    ("E60", "King's Indian Defense", "d2d4 g8f6 c2c4 g7g6"),
    ("E20", "Nimzo-Indian Defense", "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4"),
    ("D02", "London System", "d2d4 d7d5 g1f3 g8f6 c1f4"),
    ("A45", "Trompowsky Attack", "d2d4 g8f6 c1g5"),
    ("A20", "English Opening", "c2c4 e7e5"),
    ("A04", "Reti Opening", "g1f3 c7c5"),
    ("A80", "Dutch Defense", "d2d4 f7f5"),
)
_PLAYERS = (
    *("Quill", "Ørsted", "rook_and_roll", "Nocturne"),
    *("b5-break", "zugzwang7", "Höhle", "tempo"),
)
_CONTROLS = ("180+0", "180+2", "300+0", "60+0", "600+0", "900+10")
_WIDTH = 80
# The kinds of games; each tenth game is one of the last three, in turn with a usual one.
_USUAL, _REPEATED, _SHORT, _ABANDONED = range(4)


@dataclass(frozen=True)
class SampleGame:
    """A generated game."""

    tags: tuple[tuple[str, str], ...]
    moves: tuple[str, ...]
    terminator: str

    def pgn(self) -> str:
        """The game as PGN: tags, movetext in lines of under 80 characters, blank lines between."""
        lines = [f'[{name} "{value}"]' for name, value in self.tags]
        words = [
            word
            for ply, move in enumerate(self.moves)
            for word in ((f"{ply // 2 + 1}.", move) if ply % 2 == 0 else (move,))
        ] + [self.terminator]
        text, line = [], ""
        for word in words:
            if line and len(line) + 1 + len(word) >= _WIDTH:
                text.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        return "\n".join([*lines, "", *text, line, "", ""])


def _tags(
    dice: random.Random, month: str, opening: tuple[str, str], result: str, termination: str | None
) -> tuple[tuple[str, str], ...]:
    """The tags of a game, in the order of lots; the `termination` None stands for one by lot."""
    white, black = dice.sample(_PLAYERS, 2)
    second = dice.randrange(86400)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    if termination is None:
        termination = "Normal" if dice.random() < 0.7 else "Time forfeit"
    dotted = month.replace("-", ".")
    return (
        ("Event", "Rated Blitz game"),
        ("Date", f"{dotted}.{dice.randrange(1, 29):02d}"),
        ("Round", "-"),
        ("White", white),
        ("Black", black),
        ("Result", result),
        ("WhiteElo", str(dice.randrange(2400, 2900))),
        ("BlackElo", str(dice.randrange(2200, 2800))),
        ("ECO", opening[0]),
        ("Opening", opening[1]),
        ("TimeControl", dice.choice(_CONTROLS)),
        ("UTCDate", f"{dotted}.{dice.randrange(1, 29):02d}"),
        ("UTCTime", clock),
        ("Termination", termination),
        ("LichessURL", f"https://lichess.org/{dice.getrandbits(40):010x}"),
    )


def make_games(month: str, games: int, seed: int) -> list[SampleGame]:
    """Make the games of a month, the same for the same arguments. Every tenth is unusual."""
    from gristmill.chess.kernels import ending
    from gristmill.chess.kernels.board import new_board
    from gristmill.chess.kernels.generate import play
    from gristmill.chess.read.row_batches import pack_move

    decided = {ending.WHITE_MATES: "1-0", ending.BLACK_MATES: "0-1", ending.DRAWN: "1/2-1/2"}
    dice = random.Random(f"{month}:{seed}")
    text, board = np.zeros(4096, np.uint8), new_board()
    made: list[SampleGame] = []
    for number in range(games):
        unusual = number // 10 % 4 if number % 10 == 9 else _USUAL
        if unusual == _REPEATED:
            made.append(made[-3])
            continue
        code, name, opening = dice.choice(OPENINGS)
        start = np.array([pack_move(move) for move in opening.split()], dtype=np.int64)
        plies = 5 if unusual == _SHORT else min(400, max(12, round(dice.gauss(90, 34))))
        size, played, end = play(start[:plies], plies, dice.getrandbits(63), text, board)
        moves = tuple(text[:size].tobytes().decode().split(" "))
        by_lot = dice.choices(("1-0", "0-1", "1/2-1/2"), (48, 42, 10))[0]
        result = decided.get(end, by_lot)
        termination = "Normal" if end != ending.OPEN else None
        tags = _tags(dice, month, (code, name), result, termination)
        if unusual == _ABANDONED:
            tags = tuple((tag, "Abandoned" if tag == "Termination" else v) for tag, v in tags)
        conflict = unusual == _ABANDONED and number % 20 == 19
        other = "0-1" if result == "1-0" else "1-0"
        made.append(SampleGame(tags, moves[:played], other if conflict else result))
    return made


def write_sample(month: str, games: int, path: Path) -> None:
    """Write a sample drop; month, games, path: as `write_month` takes them."""
    write_month(path, month, games=games, seed=1)


def write_month(path: Path, month: str, games: int, seed: int) -> int:
    """Write a sample month."""
    data = "".join(game.pgn() for game in make_games(month, games, seed)).encode()
    if path.suffix == ".zip":
        # A fixed time, so that the bytes depend on the arguments alone.
        info = zipfile.ZipInfo(f"lichess_elite_{month}.pgn", (2020, 6, 1, 0, 0, 0))
        info.compress_type = zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(info, data)
    else:
        path.write_bytes(data)
    return len(data)
