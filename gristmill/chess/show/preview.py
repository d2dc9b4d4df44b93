"""What the UI shows of a month: distributions, openings, positions, drift, numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gristmill import markdown
from gristmill.chess.config import SPLITS
from gristmill.chess.format import sidecar
from gristmill.chess.format.names import PROFILE, SOURCE, SUBSET
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.raw.collections import folder_of
from gristmill.chess.raw.months import is_month, month_before
from gristmill.chess.read.trace import trace
from gristmill.chess.show.board import board_svg, small_board_svg
from gristmill.markdown import Markdown, escape, table
from gristmill.provenance import RECORD
from gristmill.publish.build import Published
from gristmill.svg import histogram_svg

_OPENINGS_SHOWN = 15
_NAME_LIMIT = 48
_BIN = 20
_LAST_BIN = 200


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def length_bars(bins: Mapping[str, int]) -> list[tuple[str, int]]:
    """Games by length, in bars of 20 plies; the last bar also counts all longer games."""
    bars = dict.fromkeys(range(0, _LAST_BIN + 1, _BIN), 0)
    for low, count in bins.items():
        bars[min(int(low) // _BIN * _BIN, _LAST_BIN)] += count
    return [(f"{low}–" if low == _LAST_BIN else str(low), n) for low, n in bars.items()]


def distributions(profile: Mapping[str, Any]) -> str:
    """Three histograms of a month in Markdown: results, phases, lengths."""
    winners, phases = profile["winners"], profile["phases"]
    names = (("W", "White"), ("D", "draw"), ("B", "Black"), ("?", "other"))
    results = [(name, winners.get(key, 0)) for key, name in names]
    # The full words would overlap below their bars.
    by_phase = [(name.removesuffix("game"), phases[name]) for name in PHASES if phases.get(name, 0)]
    games, plies = f"{profile['games']:,} games", f"{profile['plies']:,} plies"
    return markdown.images(
        (
            markdown.image("results", histogram_svg("Results", results, games)),
            markdown.image("phases", histogram_svg("Phase of positions", by_phase, plies)),
            markdown.image(
                "lengths", histogram_svg("Length, plies", length_bars(profile["plies_bins"]))
            ),
        )
    )


def openings(profile: Mapping[str, Any]) -> str:
    """A Markdown table of the most played openings by ECO code, with their results.

    profile: the object of profile.json.
    """
    rows: list[tuple[str, ...]] = []
    ranked = sorted(profile["openings"].items(), key=lambda item: (-item[1][0], item[0]))
    for code, (games, white, drawn, black, name) in ranked[:_OPENINGS_SHOWN]:
        percents = (_percent(n, games) for n in (white, drawn, black))
        names = (escape(code, _NAME_LIMIT), escape(name, _NAME_LIMIT))
        rows.append((*names, f"{games:,}", *percents))
    rest = sum(entry[0] for _, entry in ranked[_OPENINGS_SHOWN:])
    if rest:
        more = len(ranked) - _OPENINGS_SHOWN
        rows.append(("…", f"{more} more codes", f"{rest:,}"))
    return table(("ECO", "opening", "games", "White", "draw", "Black"), rows, "llrrrr")


def invalid_reasons(profile: Mapping[str, Any]) -> str:
    """A Markdown table of the reasons of invalid games and the flags of valid ones."""
    rows: list[tuple[str, str, str]] = []
    for kind in ("reasons", "flags"):
        word = "invalid" if kind == "reasons" else "flagged"
        for name, count in sorted(profile[kind].items(), key=lambda item: -item[1]):
            rows.append((escape(name, _NAME_LIMIT), word, f"{count:,}"))
    rows.append(("same moves as an earlier game", "noted", f"{profile['duplicate_games']:,}"))
    return table(("what", "kind", "games"), rows, "llr")


def drift(profile: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, float]:
    """The differences between a month and the month before.

    profile: the object of the month's profile.json.
    before: that of the month before.

    Returns percentage points by name, rounded to 3 digits: `white_wins`, `draws`,
    `opening_positions`, `endgame_positions` and `invalid_games`; `mean_plies` in plies; and
    `openings`, half the sum of the differences by ECO code (0 for the same openings, 100
    for none in common).
    """

    def numbers(month: Mapping[str, Any]) -> dict[str, float]:
        games, plies = max(month["games"], 1), max(month["plies"], 1)
        invalid = sum(month["reasons"].values())
        return {
            "white_wins": 100 * month["winners"].get("W", 0) / games,
            "draws": 100 * month["winners"].get("D", 0) / games,
            "mean_plies": month["plies"] / games,
            "opening_positions": 100 * month["phases"].get("opening", 0) / plies,
            "endgame_positions": 100 * month["phases"].get("endgame", 0) / plies,
            "invalid_games": 100 * invalid / max(games + invalid, 1),
        }

    now, then = numbers(profile), numbers(before)
    differences = {name: round(now[name] - then[name], 3) for name in now}
    codes = set(profile["openings"]) | set(before["openings"])
    distance = sum(
        abs(
            profile["openings"].get(code, [0])[0] / max(profile["games"], 1)
            - before["openings"].get(code, [0])[0] / max(before["games"], 1)
        )
        for code in codes
    )
    return {**differences, "openings": round(50 * distance, 3)}


def positions(path: Path, split: str | None = None, boards: int = 6) -> str:
    """Boards in Markdown: positions of games spread over a folder.

    split: split of a dataset; None for validated games.
    boards: number of boards; 6 by default. Later boards show later stages of their games.
    """
    beside = sidecar.Sidecar.open(path, split or "games")
    if beside is None or beside.games == 0:
        return "no games"
    count = min(boards, beside.games)
    found = [_position(path, beside, split, number, count) for number in range(count)]
    return markdown.images(
        markdown.image(
            "position",
            board_svg(each.moves, title=each.title, phase=each.phase, notes=[each.origin]),
        )
        for each in found
    )


def one_position(path: Path, split: str | None = None) -> str:
    """One position in the middle of a game, small enough for the overview of an asset.

    split: split of a dataset; None for validated games.
    """
    beside = sidecar.Sidecar.open(path, split or "games")
    if beside is None or beside.games == 0:
        return "no games"
    each = _position(path, beside, split, 0, 1)
    note = f"ply {len(each.moves)} · {each.phase}"
    return markdown.inline_image(
        "position",
        small_board_svg(each.moves, each.title, note),
        small_board_svg(each.moves, "", note),
        small_board_svg(each.moves[:12], "", f"ply {len(each.moves[:12])}"),
    )


class _Position(NamedTuple):
    """A position of a game: its moves, and who played, what phase it is, where it stands."""

    moves: Sequence[str]
    title: str
    phase: str
    origin: str


def _position(
    path: Path, beside: sidecar.Sidecar, split: str | None, number: int, count: int
) -> _Position:
    row = beside.games * number // count
    traced = trace(path, row, split)
    moves = moves_of(traced.row)
    ply = max(1, min(len(moves), round(len(moves) * (number + 1) / (count + 1))))
    before = int(_plies_before(beside, row))
    headers = traced.row.get("headers", {})
    players = f"{headers.get('White', '?')} – {headers.get('Black', '?')}"
    title = players if headers else f"game {traced.row['game_id'][:10]}"
    return _Position(
        moves=moves[:ply],
        title=f"{title[:34]} · {traced.row['result'][:8]}",
        phase=PHASES[int(beside.phases(before, len(moves))[ply - 1]) & 3],
        origin=f"{traced.source['name'][:28]} at byte {traced.pgn_offset:,}",
    )


def _plies_before(beside: sidecar.Sidecar, row: int) -> int:
    total = 0
    for first, _, records in beside.batches(1 << 14):
        if first + len(records) > row:
            return total + int(records["plies"][: row - first].sum(dtype=int))
        total += int(records["plies"].sum(dtype=int))
    return total


def read_profile(path: Path) -> dict[str, Any]:
    """The object of a month's profile.json."""
    profile: dict[str, Any] = json.loads((path / PROFILE).read_bytes())
    return profile


def validated_preview(path: Path, before: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Markdown documents of a validated month: distributions, openings, reasons, positions.

    before: profile of the month before; with it there is also a document `drift`.
    """
    profile = read_profile(path)
    documents = {
        "picture": one_position(path),
        "distributions": distributions(profile),
        "openings": openings(profile),
        "reasons": invalid_reasons(profile),
        "positions": positions(path),
    }
    if before is not None:
        rows = [(name, f"{value:+.2f}") for name, value in drift(profile, before).items()]
        documents["drift"] = table(("against the month before", "change"), rows, "lr")
    return documents


def dataset_preview(path: Path, splits: Sequence[str] = SPLITS) -> dict[str, str]:
    """Markdown documents of a game dataset: its splits, and positions of the train games.

    splits: the splits to show; all by default.
    """
    stats = json.loads((path / "stats.json").read_bytes())
    rows = []
    for split in splits:
        games, plies = stats["split_games"][split], stats["split_plies_total"][split]
        winners = stats["split_winner_counts"][split]
        sides = (_percent(winners.get(side, 0), games) for side in "WB")
        mean = stats["split_avg_plies"][split]
        rows.append((split, f"{games:,}", f"{plies:,}", f"{mean:.1f}", *sides))
    headers = ("split", "games", "plies", "mean plies", "White", "Black")
    return {
        "picture": one_position(path, "train"),
        "splits": table(headers, rows, "lrrrrr"),
        "positions": positions(path, "train"),
    }


_PLOTTED_BIN = 40
_MOST_FILES = 100

Figures = dict[str, str | int | float]


def archive_figures(published: Published) -> Figures:
    """A table that says where a month came from."""
    source = json.loads((published.folder / SOURCE).read_bytes())
    if files := source.get("files"):
        cells = [
            (
                escape(each["origin"], 200),
                f"{each['archive']['bytes']:,}",
                f"{each['pgn']['bytes']:,}",
            )
            for each in files[:_MOST_FILES]
        ]
        title = f"file, of {len(files):,}"
        return {"source": table((title, "bytes", "bytes of PGN"), cells, "lrr")}
    rows: list[tuple[str, str]] = [("origin", escape(source["origin"], 200))]
    for kind in ("archive", "pgn"):
        file = source[kind]
        digest = markdown.code(file["sha256"])
        rows.append((kind, Markdown(f"{file['bytes']:,} bytes, sha256 {digest}")))
    for name, value in source.get("http", {}).items():
        if name in ("etag", "last_modified", "requests", "resumed_bytes") and value != "":
            rows.append((name, escape(str(value), 80)))
    return {"source": table(("", ""), rows, "ll")}


def validated_figures(published: Published) -> Figures:
    """Documents and numbers of a validated month: lengths, valid games, openings.

    Also the drift since the month before, where that one is published.
    """
    path = published.folder
    key, profile, earlier = str(published.record.partition), read_profile(path), None
    if is_month(key):
        before = path.with_name(folder_of(month_before(key)))
        earlier = read_profile(before) if (before / RECORD).exists() else None
    games = profile["games"]
    numbers: Figures = {"rows": games, "mean_plies": _ratio(profile["plies"], games)}
    numbers["valid_percent"] = round(
        100 * _ratio(games, games + sum(profile["reasons"].values())), 3
    )
    numbers["openings_met"] = len(profile["openings"])
    for low, count in _lengths(profile["plies_bins"]).items():
        numbers[f"plies_from/{low:03d}"] = count
    if earlier is not None:
        numbers |= {f"drift/{name}": value for name, value in drift(profile, earlier).items()}
    return {**validated_preview(path, earlier), **numbers}


def subset_figures(published: Published) -> Figures:
    """A table of the strata of a subset, and its rows."""
    report = json.loads((published.folder / SUBSET).read_bytes())
    cells = [
        (split, escape(name, 80), f"{taken:,}", f"{size:,}")
        for split, found in report["splits"].items()
        for name, (taken, size) in found["strata"].items()
    ]
    strata = table(("split", "stratum", "rows", "of"), cells[:_MOST_FILES], "llrr")
    return {"shares": strata, "rows": sum(each["rows"] for each in report["splits"].values())}


def dataset_figures(published: Published) -> Figures:
    """Documents of a game dataset, and its rows: games."""
    stats = json.loads((published.folder / "stats.json").read_bytes())
    return {**dataset_preview(published.folder), "rows": sum(stats["split_games"].values())}


def cache_figures(published: Published) -> Figures:
    """A table of games, samples and bytes by split, and the rows of a cache: samples."""
    manifest = json.loads((published.folder / "manifest.json").read_bytes())
    names = ("game_rows_total", "sample_rows_total", "total_cache_bytes")
    rows = [
        (split, *(f"{manifest['splits'][split][name]:,}" for name in names)) for split in SPLITS
    ]
    return {
        "samples_by_split": table(("split", "games", "samples", "bytes"), rows, "lrrr"),
        "rows": manifest["sample_rows_total"],
    }


def splice_figures(published: Published) -> Figures:
    """A table of samples by split and phase, and the rows of a splice dataset: samples."""
    stats = json.loads((published.folder / "stats.json").read_bytes())
    phases = sorted({name for counts in stats["split_phase_counts"].values() for name in counts})
    rows = []
    for split in SPLITS:
        counts = stats["split_phase_counts"][split]
        games, samples = stats["split_games"][split], stats["split_samples"][split]
        cells = (games, samples, *(counts.get(name, 0) for name in phases))
        rows.append((split, *(f"{cell:,}" for cell in cells)))
    headers = ("split", "games", "samples", *phases)
    return {
        "samples_by_split": table(headers, rows, "l" + "r" * (2 + len(phases))),
        "rows": sum(stats["split_samples"].values()),
    }


def _ratio(part: Any, whole: int) -> float:
    return round(part / whole, 5) if whole else 0.0


def _lengths(bins: Mapping[str, int]) -> dict[int, int]:
    """Games by length in plies; the last bin also counts all longer games."""
    lengths = dict.fromkeys(range(0, _LAST_BIN + 1, _PLOTTED_BIN), 0)
    for low, count in bins.items():
        lengths[min(int(low) // _PLOTTED_BIN * _PLOTTED_BIN, _LAST_BIN)] += count
    return lengths
