"""Validated games to a game dataset: one compact row a game, three splits, stats, sidecar.

Packed moves are written where the validated games have them, so that months which were validated
before keep their bytes. Source: docs/formats/chess.md#game-dataset
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.builders.splits import (
    SplitTask,
    eligible,
    rule_stats,
    shared_sequences,
    split_tasks,
)
from gristmill.chess.config import SPLITS, GameConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.move_keys import count_duplicates
from gristmill.chess.format.names import STATS, valid_file
from gristmill.chess.read.row_batches import read_batch
from gristmill.contract import FileNote, Summary
from gristmill.layout import published_path
from gristmill.run.parts import Bytes, Made, PartStore, StreamFiles, run_streams
from gristmill.run.progress import SILENT, Progress


@dataclass(frozen=True)
class GameSummary(Summary):
    """Counts of a game dataset."""

    input_games: int
    eligible_games: int
    spliceable_games: int
    games: Mapping[str, int]
    plies: Mapping[str, int]
    duplicate_games: int
    dropped_duplicates: int
    shared_sequences: int


def _make(task: SplitTask[GameConfig]) -> Made:
    """Rows, game records and phase codes of a byte range by split, and their counts."""
    from gristmill.chess.kernels import rowshape, rowtext

    batch = read_batch(task.range)
    accepted, _ = eligible(batch, task.config)
    places = task.places(batch)
    plies = batch.columns[:, rowshape.N]
    out = np.empty(len(batch.buf) + 128 * len(batch.columns), np.uint8)
    used = 0
    streams: dict[str, Bytes] = {}
    summary: dict[str, Any] = {"games": len(batch.columns), "eligible": int(accepted.sum())}
    for number, split in enumerate(SPLITS):
        picked = places == number
        lengths = np.zeros(int(picked.sum()), np.int64)
        free = out[used:]
        size = rowtext.write_games(
            batch.buf, batch.columns, picked, task.config.keep_headers, free, lengths
        )
        used += size
        records = batch.records[picked].copy()
        records["row"] = np.cumsum(lengths) - lengths
        streams[split] = free[:size].data
        streams[f"{split}.games"] = records.tobytes()
        of_picked = np.repeat(picked, plies)
        streams[f"{split}.phases"] = batch.codes[of_picked].tobytes()
        if task.range.sidecar and task.range.sidecar.has_moves:
            streams[f"{split}.moves"] = batch.moves[of_picked].astype(sidecar.MOVE).tobytes()
            winners = batch.columns[picked, rowshape.WINNER]
            streams[f"{split}.spans"] = sidecar.spans_of(plies[picked], winners).tobytes()
        summary[split] = _counts(batch.columns[picked])
    return streams, summary


def _counts(columns: NDArray[np.int64]) -> dict[str, Any]:
    from gristmill.chess.kernels import rowshape

    sides, counts = np.unique(columns[:, rowshape.WINNER], return_counts=True)
    return {
        "games": len(columns),
        "plies": int(columns[:, rowshape.PLIES].sum()),
        "winners": {chr(c): n for c, n in zip(sides.tolist(), counts.tolist(), strict=True)},
    }


def _append(streams: Iterable[tuple[str, Bytes]], written: StreamFiles) -> None:
    """Append the streams of a part; its records get the bytes and moves before added."""
    before, records = dict(written.sizes), dict[str, bytearray]()
    for name, data in streams:
        if name.endswith((".games", ".spans")):
            records.setdefault(name, bytearray()).extend(data)
        else:
            written.write(name, data)
    for name, found in records.items():
        split, _, kind = name.partition(".")
        table = np.frombuffer(found, sidecar.GAME if kind == "games" else sidecar.SPAN)
        if kind == "games":
            table["row"] += before[split]
        else:
            table["first"] += before[f"{split}.moves"] // sidecar.MOVE.itemsize
        written.write(name, table.tobytes())


class _Totals:
    """Counts over all parts."""

    def __init__(self) -> None:
        self.games = self.eligible = self.dropped = 0
        self.split_games = dict.fromkeys(SPLITS, 0)
        self.split_plies = dict.fromkeys(SPLITS, 0)
        self.winners: dict[str, dict[str, int]] = {s: {"W": 0, "B": 0} for s in SPLITS}

    def add(self, part: Mapping[str, Any]) -> None:
        self.games += part["games"]
        self.eligible += part["eligible"]
        for split in SPLITS:
            self.split_games[split] += part[split]["games"]
            self.split_plies[split] += part[split]["plies"]
            for winner, n in part[split]["winners"].items():
                self.winners[split][winner] = self.winners[split].get(winner, 0) + n


def _stats(valid: Path, published: Path, config: GameConfig, totals: _Totals) -> dict[str, Any]:
    games, plies = totals.split_games, totals.split_plies
    stats: dict[str, Any] = {
        "dataset_format": rows.GAME_FORMAT,
        "input_path": str(published_path(valid)),
        "output_dir": str(published_path(published)),
        "schema_move_field": "moves",
        "source_validated_move_alias_supported": ["moves", "moves_uci"],
        "keep_headers": config.keep_headers,
        "runtime_splice_defaults": {
            "min_context": config.min_context,
            "min_target": config.min_target,
        },
        "split_seed": config.seed,
        "train_ratio": config.train_ratio,
        "val_ratio": config.val_ratio,
        "decisive_only": config.games == "decisive",
        "input_games_total": totals.games,
        "input_games_after_filters": totals.eligible,
        "spliceable_games": sum(games.values()),
        "split_games": games,
        "split_plies_total": plies,
        "split_avg_plies": {s: plies[s] / games[s] if games[s] else 0.0 for s in SPLITS},
        "split_winner_counts": totals.winners,
    }
    if config.games != "decisive":
        stats["games"] = config.games
    if config.drop_duplicates:
        stats["dropped_duplicates"] = totals.dropped
    return stats | rule_stats(config)


def build_game_dataset(
    valid_games: Path,
    out: Path,
    config: GameConfig = GameConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
    progress: Progress = SILENT,
) -> GameSummary:
    """Build a game dataset: rows by split, sidecar and stats.

    Rows may have `moves` or `moves_uci`. A game with moves that are not legal from the start
    position gets the phase `unknown`.

    valid_games: a validated folder, or a JSONL file of valid games.
    out: folder to make; its files are those of docs/formats/chess.md#folders. An empty
        split is a file of 0 bytes.
    config: which games there are, and the split.
    parts: store of finished parts, from which a killed build goes on; None for no store.
    published: folder where the dataset will be, for stats.json; `out` by default.
    progress: gets the stage `games`, in bytes of rows; with the shuffle `split` before it.

    Raises BadInput for live bot games, for rows that cannot be read, and for a sidecar of
    other rows. Raises SplitLeakage where the same moves are in two splits.
    """
    valid = valid_file(valid_games)
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    beside = sidecar.Sidecar.open(valid.parent, "games")
    for split in SPLITS:
        if beside and beside.has_moves:
            files[f"{split}.moves"] = sidecar.moves_file(out, split)
            files[f"{split}.spans"] = sidecar.spans_file(out, split)
        files[f"{split}.games"] = sidecar.games_file(out, split)
        files[f"{split}.phases"] = sidecar.phases_file(out, split)
    totals = _Totals()
    with (
        split_tasks(valid, out, config, drop_empty=True, progress=progress) as tasks,
        StreamFiles(files) as written,
        progress.stage("games", unit="bytes", total=valid.stat().st_size) as stage,
    ):
        finished = run_streams(_make, tasks, parts, config.workers, scratch=out)
        for (_, task), (streams, part) in zip(tasks, finished, strict=True):
            _append(streams, written)
            totals.add(part)
            totals.dropped += len(task.repeated)
            stage.advance(task.size)
    if sidecar.sources_file(valid.parent).exists():
        sidecar.sources_file(out).write_bytes(sidecar.sources_file(valid.parent).read_bytes())
    (out / STATS).write_text(json.dumps(_stats(valid, published or out, config, totals), indent=2))
    games = totals.split_games
    sidecar.write_rows(out, {split: (out / f"{split}.jsonl", games[split]) for split in SPLITS})
    records = [sidecar.games_file(out, split) for split in SPLITS]
    shared = shared_sequences(out, records, config)
    duplicates = sum(count_duplicates([file]) for file in records)
    return _summary(totals, duplicates, shared)


def _summary(totals: _Totals, duplicates: int, shared: int) -> GameSummary:
    files = {STATS: FileNote(payload=False)}
    for split in SPLITS:
        rows_of_split = FileNote(rows=totals.split_games[split])
        files[f"{split}.jsonl"] = rows_of_split
        files[f"{sidecar.FOLDER}/{split}.games.bin"] = rows_of_split
    return GameSummary(
        files=files,
        input_games=totals.games,
        eligible_games=totals.eligible,
        spliceable_games=sum(totals.split_games.values()),
        games=totals.split_games,
        plies=totals.split_plies,
        duplicate_games=duplicates,
        dropped_duplicates=totals.dropped,
        shared_sequences=shared,
    )
