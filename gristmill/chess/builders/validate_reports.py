"""Reports of a validation: counts over all parts, profile.json and summary.json.

Source: docs/formats/chess.md#profile, docs/formats/chess.md#validation-summary
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.chess.builders.equal_games import EqualGames
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format.names import INVALID, VALID


class Tally:
    """Counts and openings of all parts so far.

    counts: number by name, such as `valid`, `plies` or `reason.too_short`.
    openings: games, White wins, draws, Black wins and the opening's name, by ECO code.
    outside: tag, value and byte offset of the first game whose date is not in the month.
    """

    def __init__(self) -> None:
        self.outside: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.openings: dict[str, list[Any]] = {}

    def add(self, summary: Mapping[str, Any]) -> None:
        """Add the summary of a part."""
        self.counts.update(summary["counts"])
        self.outside = self.outside or summary["outside"]
        for code, entry in summary["openings"].items():
            known = self.openings.setdefault(code, [0, 0, 0, 0, ""])
            for i in range(4):
                known[i] += entry[i]
            known[4] = known[4] or entry[4]

    def by_name(self, kind: str) -> dict[str, int]:
        """The counts of a kind, in the order in which they were first met."""
        start = f"{kind}."
        return {
            name.removeprefix(start): count
            for name, count in self.counts.items()
            if name.startswith(start)
        }


def profile_of(tally: Tally, duplicates: int) -> dict[str, Any]:
    """The object of profile.json."""
    bins = sorted(tally.by_name("plies").items(), key=lambda item: int(item[0]))
    return {
        "games": tally.counts["valid"],
        "plies": tally.counts["plies"],
        "winners": tally.by_name("winner"),
        "phases": tally.by_name("phase"),
        "plies_bins": dict(bins),
        "reasons": tally.by_name("reason"),
        "flags": tally.by_name("flag"),
        "duplicate_games": duplicates,
        "openings": dict(sorted(tally.openings.items())),
    }


def report_of(
    tally: Tally,
    duplicates: int,
    equal: EqualGames,
    names: Sequence[str],
    config: ValidateConfig,
) -> dict[str, Any]:
    """The object of summary.json."""
    valid, total = tally.counts["valid"], tally.counts["total"]
    report: dict[str, Any] = {
        "input_files": list(names),
        "input_source": ",".join(names),
        "auto_sharded_single_file": False,
        "auto_shard_game_count": None,
        "total_games": total,
        "valid_games": valid,
        "invalid_games": total - valid,
        "valid_ratio": valid / total if total else 0.0,
        "invalid_reason_counts": tally.by_name("reason"),
        "outputs": {"valid_games": VALID, "invalid_games": INVALID},
    }
    if config.compat != "reference":
        report["compat"] = config.compat
        report["flag_counts"] = tally.by_name("flag")
        report["duplicate_games"] = duplicates
        if equal.games:
            first = {"game_id": equal.game_id, "pgn_offset": equal.pgn_offset}
            report["equal_games"] = {"games": equal.games, "first": first}
        if tally.outside:
            tag, value, offset = tally.outside
            first = {"tag": tag, "value": value, "pgn_offset": offset}
            report["games_outside_month"] = {"games": tally.counts["outside_month"], "first": first}
    return report
