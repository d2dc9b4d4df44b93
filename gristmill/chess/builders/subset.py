"""A subset of a dataset that keeps its strata, or takes as many rows of each.

Which rows are taken depends on their bytes and the seed, so that a larger subset holds the smaller
one. Source: docs/formats/chess.md#subset and docs/formats/chess.md#strata
"""

from __future__ import annotations

import csv
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, SubsetConfig
from gristmill.chess.format.folders import STATS, SUBSET, SUBSET_VOCABULARY, split_file, subset_rows
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.run.progress import SILENT, Progress

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
    from gristmill.chess.read.row_batches import phase_codes

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


# Of the stats of a dataset, what its reader and the training code look at.
_KEPT_STATS = (
    "dataset_format",
    "schema_move_field",
    "keep_headers",
    "runtime_splice_defaults",
    "split_seed",
    "decisive_only",
    "games",
)


@dataclass(frozen=True)
class SubsetSummary(Summary):
    """Counts of a subset."""

    samples: Mapping[str, int]
    rows_of: Mapping[str, int]
    strata: int
    moves: int


def build_subset(
    source: Path, out: Path, config: SubsetConfig, *, progress: Progress = SILENT
) -> SubsetSummary:
    """Take a subset of a game dataset, or of legacy rows.

    source: folder of the dataset. out: folder to make. config: how many rows, and of which strata.

    Memory grows by 16 bytes a row. Raises BadInput where a row cannot be read, or has no ratings
    that are asked for.
    """
    out.mkdir()
    words: Counter[str] = Counter()
    splits: dict[str, dict[str, Any]] = {}
    with progress.stage("take", unit="files", total=len(SPLITS)) as stage:
        for split in SPLITS:
            splits[split] = _take(source, out, split, config, words if split == "train" else None)
            stage.advance(1)
    vocabulary = ["<PAD>", "<UNK>", *sorted(words)]
    with (out / SUBSET_VOCABULARY).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "move", "count"))
        rows.writerows((number, move, words[move]) for number, move in enumerate(vocabulary))
    (out / SUBSET).write_text(json.dumps({"config": asdict(config), "splits": splits}, indent=2))
    taken = {split: int(found["rows"]) for split, found in splits.items()}
    if config.of == "games":
        stats = json.loads((source / STATS).read_bytes())
        kept = {name: stats[name] for name in _KEPT_STATS if name in stats}
        (out / STATS).write_text(json.dumps({**kept, "split_games": taken}, indent=2))
    return SubsetSummary(
        files={
            **{split_file(Path(), split).name: FileNote(rows=taken[split]) for split in SPLITS},
            SUBSET_VOCABULARY: FileNote(rows=len(vocabulary)),
        },
        samples=taken,
        rows_of={split: int(found["rows_of"]) for split, found in splits.items()},
        strata=len({name for found in splits.values() for name in found["strata"]}),
        moves=len(vocabulary),
    )


def _take(
    source: Path, out: Path, split: str, config: SubsetConfig, words: Counter[str] | None
) -> dict[str, Any]:
    """Write the rows of a split, and count the moves of train games."""
    file, most = split_file(source, split), int(getattr(config, split))
    drawn: dict[str, array[int]] = {}
    numbers: dict[str, array[int]] = {}
    begin, total = str(config.seed).encode() + b"\n", 0
    for line, stratum in strata_of(file, config):
        digest = hashlib.sha256(begin + line).digest()
        drawn.setdefault(stratum, array("Q")).append(int.from_bytes(digest[:8], "big"))
        numbers.setdefault(stratum, array("q")).append(total)
        total += 1
    sizes = {name: len(numbers[name]) for name in sorted(numbers)}
    counts = shares(sizes, most, config.shares == "equal")
    chosen = [_first(drawn[name], numbers[name], count) for name, count in counts.items()]
    rows = np.sort(np.concatenate([np.zeros(0, np.int64), *chosen]))
    wanted = set(rows.tolist())
    with file.open("rb") as lines, split_file(out, split).open("wb") as written:
        for number, line in enumerate(lines):
            if number in wanted:
                written.write(line)
                if words is not None:
                    words.update(_moves(line, file, number))
    np.save(out / subset_rows(split), rows)
    strata = {name: [counts[name], size] for name, size in sizes.items()}
    return {"rows": len(rows), "rows_of": total, "strata": strata}


def shares(sizes: Mapping[str, int], most: int, is_equal: bool) -> dict[str, int]:
    """How many rows of each stratum are taken, of `most` at most; is_equal: as many of each.

    A fraction that is left over goes to the largest one; equal ones in the order of their names.
    """
    total = sum(sizes.values())
    if most >= total:
        return dict(sizes)
    if not is_equal:
        counts = {name: size * most // total for name, size in sizes.items()}
        order = sorted(sizes, key=lambda name: (-(sizes[name] * most % total), name))
        for name in order[: most - sum(counts.values())]:
            counts[name] += 1
        return counts
    counts, left = {}, most
    by_size = sorted(sizes, key=lambda name: (sizes[name], name))
    for number, name in enumerate(by_size):
        counts[name] = min(sizes[name], left // (len(by_size) - number))
        left -= counts[name]
    return {name: counts[name] for name in sizes}


def _first(drawn: array[int], numbers: array[int], count: int) -> NDArray[np.int64]:
    """The rows with the smallest draws; of equal ones the first."""
    order = np.argsort(np.frombuffer(drawn, np.uint64), kind="stable")
    return np.frombuffer(numbers, np.int64)[order[:count]]


def _moves(line: bytes, file: Path, number: int) -> list[str]:
    try:
        row = json.loads(line)
        return [*row["context"], *row["target"]] if "context" in row else moves_of(row)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(file, f"is no row ({error!r}): build it again", number + 1) from error
