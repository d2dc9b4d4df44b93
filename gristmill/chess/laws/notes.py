"""Notes on months: what breaks no law, and should be known before training on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

from gristmill.chess.format.folders import PROFILE, STATS, SUMMARY, VALID
from gristmill.chess.format.rows import LOSSES
from gristmill.chess.laws.files import law, read_json
from gristmill.chess.raw.collections import folder_of
from gristmill.chess.raw.months import month_before, month_in
from gristmill.contract import Violation
from gristmill.provenance import Record

_SETTING_OF: Final = {
    "too_short": "min_plies",
    "below_elo": "elo_floor",
    "other_time_control": "time_controls",
    "abandoned": "drop_abandoned",
    "bot_player": "drop_bots",
    "other_title": "titles",
    "other_event": "events",
    **{name: name for name in LOSSES.values()},
}
"""The setting by which a game is rejected, by the reason."""
_REPLACED: Final = json.dumps("\N{REPLACEMENT CHARACTER}")[1:-1].encode()
_DRIFT_GAMES: Final = 10_000
"""Valid games that two months have at least: shares of fewer games differ by chance."""
_FAR: Final = 5.0
"""Percent that differ between two months, from which on a note names them."""
_CURE: Final = "; change the setting under [chess.month] in gristmill.toml"


@law
def validated_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in a validated folder; the check `noteworthy` warns of it.

    Yields `equal_games` where one is in the PGN more than once, `other_month` for dates that are
    not in the month, and `not_utf8` for tags with U+FFFD.
    """
    summary, faults = read_json(path / SUMMARY)
    yield from faults
    if faults:
        return
    where = str(path / SUMMARY)
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
    yield from _replaced(path / VALID)


def of_month(record: Record, path: Path) -> Iterator[Violation]:
    """Yield `no_valid_game`, and `drift` where a month differs from the month before.

    record: of the artifact `chess/valid_games`. path: its folder, beside that of the month before.
    """
    yield from no_valid_game(record)
    yield from _drift(path)


def _drift(path: Path) -> Iterator[Violation]:
    """Find in what a month is far from the month before: results, phases, verdicts, openings."""
    month = month_in(path.name)
    if month is None or path.name != folder_of(month):
        return
    files = [each / PROFILE for each in (path, path.with_name(folder_of(month_before(month))))]
    profiles = [json.loads(file.read_bytes()) for file in files if file.is_file()]
    if len(profiles) < 2 or min(profile["games"] for profile in profiles) < _DRIFT_GAMES:
        return
    counts = zip(*map(_counts, profiles), strict=True)
    points = {name: _apart(now, then) for (name, now), (_, then) in counts}
    far = [f"{value:.0f} % of the {name}" for name, value in points.items() if value >= _FAR]
    if far:
        rule = f"{', '.join(far)} would have to be others to be as those of {month_before(month)}"
        yield Violation("drift", str(path / PROFILE), rule)


def _counts(profile: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, int]]]:
    yield "results", profile["winners"]
    yield "phases", profile["phases"]
    yield "verdicts", {**profile["reasons"], "valid": profile["games"]}
    yield "openings", {code: entry[0] for code, entry in profile["openings"].items()}


def _apart(now: Mapping[str, int], then: Mapping[str, int]) -> float:
    """Half the sum of the differences of shares in percent: 100 for nothing in common."""
    whole, before = max(sum(now.values()), 1), max(sum(then.values()), 1)
    return 50 * sum(
        abs(now.get(name, 0) / whole - then.get(name, 0) / before) for name in {*now, *then}
    )


def _replaced(file: Path) -> Iterator[Violation]:
    """Find rows with U+FFFD, which stands for each byte that was not UTF-8."""
    if not file.is_file() or not file.stat().st_size:
        return
    count = first = 0
    with file.open("rb") as rows, mmap(rows.fileno(), 0, access=ACCESS_READ) as data:
        at = data.find(_REPLACED)
        while at >= 0:
            first = first if count else data.rfind(b"\n", 0, at) + 1
            count += 1
            end = data.find(b"\n", at)
            at = data.find(_REPLACED, end) if end >= 0 else -1
    if count:
        rule = f"{count:,} games have U+FFFD in a tag, such as the row at byte {first}, where the "
        rule += 'PGN has a byte that is not UTF-8: in a collection set encoding = "latin-1" below '
        yield Violation("not_utf8", str(file), f"{rule}[chess.collection]")


def no_valid_game(record: Record) -> Iterator[Violation]:
    """Yield `no_valid_game` where every game of the PGN is rejected, with reasons and settings.

    record: of the artifact `chess/valid_games`.
    """
    counts, total = record.counts, record.counts.get("total_games", 0)
    if not total or counts.get("valid_games"):
        return
    found, is_by_setting = [], False
    for name, count in counts.items():
        if count and name.startswith("reasons/"):
            reason = name.removeprefix("reasons/")
            setting = _SETTING_OF.get(reason)
            is_by_setting |= setting is not None
            found.append(f"{count:,} {reason}{_asked(record, [setting] if setting else [])}")
    rule = f"none of {total:,} games is valid: {', '.join(found)}"
    rule += _CURE if is_by_setting else ""
    yield Violation("no_valid_game", f"{record.artifact}/{SUMMARY}", rule)


def no_game(record: Record, _: Path) -> Iterator[Violation]:
    """Yield `no_game` where no valid game of the month is in a split, with reasons and settings.

    record: of the artifact `chess/game_dataset`.
    """
    counts = record.counts
    total, taken = (counts.get(name, 0) for name in ("input_games", "eligible_games"))
    if counts.get("spliceable_games"):
        return
    rule = "there is no valid game"
    if total:
        lack = "result" if record.config.get("games") == "finished" else "winner"
        rule = (
            f"none of {total:,} valid games is in a split: {total - taken:,} have no {lack}"
            f"{_asked(record, ['games'])}, {taken:,} too few moves"
            f"{_asked(record, ['min_context', 'min_target'])}{_CURE}"
        )
    yield Violation("no_game", f"{record.artifact}/{STATS}", rule)


def _asked(record: Record, names: list[str]) -> str:
    """Settings as they were, in brackets."""
    given = [
        f"{name} = {json.dumps(record.config[name])}" for name in names if name in record.config
    ]
    return f" ({', '.join(given)})" if given else ""
