"""The compiled reader against the original rules and against python-chess."""

import re
from pathlib import Path

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.builders.validate import add_game, validate_range
from gristmill.chess.builders.verdicts import RangeOutput, RangeTask
from gristmill.chess.raw.pgn import PlacedGame, plan
from gristmill.chess.raw.python_chess import read_game
from tests.chess import reference_rules

BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")


def same_as_reference(pgn: Path, tmp: Path, share_bytes: int = 2 << 20) -> int:
    """Both outputs of the reference rules as bytes; returns how many games the oracle read."""
    out = tmp / f"{pgn.stem}_{share_bytes}"
    config = ValidateConfig(compat="reference", share_bytes=share_bytes, source_names=("x.pgn",))
    summary = validate([pgn], out, config)
    valid, invalid = reference_rules.validated(pgn, "x.pgn")
    assert (out / "valid_games.jsonl").read_bytes() == valid
    assert (out / "invalid_games.csv").read_bytes() == invalid
    return summary.oracle_games


def all_by_python_chess(pgn: Path, config: ValidateConfig) -> dict[str, bytes]:
    """The streams of a file when every game goes to the oracle."""
    task = RangeTask(plan(pgn, 1 << 40)[0], 0, pgn.name, config)
    text, pos, output = pgn.read_bytes(), 0, RangeOutput(task)
    cut = not output.reference
    while True:
        # From the game on: behind a blank line python-chess would keep its byte order mark.
        blank = BLANK_LINES.match(text, pos)
        pos = blank.end() if blank else pos
        read = read_game(text, pos, current=cut)[0]
        if read is None:
            break
        add_game(output, PlacedGame(pos, read.end - pos, read))
        pos = read.end
    return {name: bytes(data) for name, data in output.finish(pos)[0].items()}


def both_ways(pgn: Path, config: ValidateConfig) -> None:
    """The scanner's decisions in the current mode are the oracle's, stream by stream."""
    task = RangeTask(plan(pgn, 1 << 40)[0], 0, pgn.name, config)
    fast, _ = validate_range(task)
    for name, data in all_by_python_chess(pgn, config).items():
        assert bytes(fast[name]) == data, name
