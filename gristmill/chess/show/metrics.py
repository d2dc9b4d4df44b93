"""The numbers of a month that the UI plots, and tables of its source and its samples.

See also `preview.py`: pictures, and tables of games and openings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gristmill.chess.config import SPLITS
from gristmill.chess.format.names import SOURCE, SUBSET
from gristmill.chess.raw.collections import folder_of
from gristmill.chess.raw.months import is_month, month_before
from gristmill.chess.show.preview import (
    dataset_preview,
    drift,
    read_profile,
    validated_preview,
)
from gristmill.markdown import Markdown, code, escape, table
from gristmill.provenance import RECORD
from gristmill.publish.build import Published

_BIN, _LAST_BIN = 40, 200
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
        digest = code(file["sha256"])
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
    lengths = dict.fromkeys(range(0, _LAST_BIN + 1, _BIN), 0)
    for low, count in bins.items():
        lengths[min(int(low) // _BIN * _BIN, _LAST_BIN)] += count
    return lengths
