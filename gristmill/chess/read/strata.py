"""The stratum of a row of a subset: what it shares with others by phase, result, Elo and ply.

Source: docs/formats/chess.md#strata
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gristmill.chess.config import SubsetConfig
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.contract import BadInput

_READ_GAMES = 512


def strata_of(file: Path, config: SubsetConfig) -> Iterator[tuple[bytes, str]]:
    """Yield each row of a split and its stratum, in file order; memory does not grow with the file.

    file: rows of a game dataset, or of the legacy form. config: what makes a stratum.

    Raises BadInput for a line that is no row, for a game without ratings where `by` has elo, and
    where ratings are asked of legacy rows.
    """
    lines: list[bytes] = []
    with file.open("rb") as opened:
        for line in opened:
            lines.append(line)
            if len(lines) == _READ_GAMES:
                yield from zip(lines, _strata(lines, file, config), strict=True)
                lines = []
    yield from zip(lines, _strata(lines, file, config), strict=True)


def _strata(lines: Sequence[bytes], file: Path, config: SubsetConfig) -> Iterator[str]:
    try:
        rows = [json.loads(line) for line in lines]
        phases = _phases(rows) if "phase" in config.by else [""] * len(rows)
        for row, phase in zip(rows, phases, strict=True):
            yield "|".join(_part(row, by, phase, file, config) for by in config.by)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(file, f"has a line that is no row ({error!r}): build it again") from error


def _phases(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The phase of each sample, or of the last position of each game."""
    if rows and "context" in rows[0]:
        return [str(row["phase"]) for row in rows]
    from gristmill.chess.read.phases import phase_codes

    codes = phase_codes([moves_of(row) for row in rows])
    return [PHASES[code[-1] & 3] if code else PHASES[0] for code in codes]


def _part(row: dict[str, Any], by: str, phase: str, file: Path, config: SubsetConfig) -> str:
    if by == "phase":
        return phase
    if by == "result":
        return str(row["winner_side"])
    if by == "ply":
        ply = int(row["ply"] if "context" in row else row["plies"])
        return f"ply {ply // config.ply_step * config.ply_step}"
    if "headers" not in row:
        rule = "has no ratings: take games, with keep_headers = true for chess/game_dataset"
        raise BadInput(file, rule)
    ratings = [str(row["headers"].get(tag, "")) for tag in ("WhiteElo", "BlackElo")]
    if not all(text.isascii() and text.isdigit() and len(text) < 6 for text in ratings):
        return "elo unknown"
    mean = sum(map(int, ratings)) // 2
    return f"elo {mean // config.elo_step * config.elo_step}"
