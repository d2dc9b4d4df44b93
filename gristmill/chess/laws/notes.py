"""Notes on months: what breaks no law, and should be known before training on it.

See also `validate.py` and `game_dataset.py`: the laws.
Source: docs/formats/chess.md#notes
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill.chess.format.names import STATS, SUMMARY
from gristmill.chess.laws.files import law, read_json
from gristmill.contract import Violation


@law
def validated_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in a validated folder; the check `noteworthy` warns of it.

    path: folder of the artifact `chess/valid_games`.

    Yields `no_valid_game` where every game of the PGN is rejected, `equal_games` where one is in
    the PGN more than once, and `other_month` for dates that are not in the month.
    """
    summary, faults = read_json(path / SUMMARY)
    yield from faults
    if faults:
        return
    where = str(path / SUMMARY)
    if summary.get("total_games") and not summary.get("valid_games"):
        reasons = summary.get("invalid_reason_counts", {})
        found = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        rule = f"none of {summary['total_games']:,} games is valid ({found})"
        yield Violation("no_valid_game", where, rule)
    if equal := summary.get("equal_games"):
        first = equal["first"]
        rule = f"{equal['games']:,} games are in the PGN once more, such as {first['game_id']} at "
        rule += f"byte {first['pgn_offset']}: drop_duplicates leaves them out of the datasets"
        yield Violation("equal_games", where, rule)
    if outside := summary.get("games_outside_month"):
        first = outside["first"]
        rule = f"{outside['games']:,} games have a date outside of the month, such as "
        rule += f"{first['tag']} {first['value']} at byte {first['pgn_offset']}"
        yield Violation("other_month", where, rule)


@law
def dataset_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in a game dataset; the check `noteworthy` warns of it.

    path: folder of the artifact `chess/game_dataset`.

    Yields `no_game` where no valid game of the month is in a split.
    """
    stats, faults = read_json(path / STATS)
    yield from faults
    if faults or stats.get("spliceable_games"):
        return
    total, taken = stats.get("input_games_total", 0), stats.get("input_games_after_filters", 0)
    rule = f"none of {total:,} valid games is in a split"
    if total:
        lack = "result" if stats.get("games") == "finished" else "winner"
        rule += f": {total - taken:,} have no {lack} (games), "
        rule += f"{taken:,} too few moves (min_context)"
    yield Violation("no_game", str(path / STATS), rule)
