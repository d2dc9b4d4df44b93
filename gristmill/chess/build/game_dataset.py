"""Validated games to a game dataset: one compact row a game, three splits, stats, sidecar.

Rules: docs/formats/chess.md#game-dataset. Phase codes that validation computed come along in row
order; nothing is replayed where the sidecar is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.build.splits import SplitTask, shared_sequences, split_tasks, taken
from gristmill.chess.config import SPLITS, GameConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.move_keys import count_duplicates
from gristmill.chess.format.names import STATS, valid_file
from gristmill.chess.read.row_batches import read_batch
from gristmill.contract import FileNote, Summary
from gristmill.run.part_streams import Bytes, Made, StreamFiles, run_streams
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress


@dataclass(frozen=True)
class GameSummary(Summary):
    """Counts of a game dataset; games and plies by split.

    duplicate_games: rows whose moves an earlier row of their split has too.
    shared_sequences: move sequences in more than one split; 0 unless split="shuffle".
    """

    input_games: int
    eligible_games: int
    spliceable_games: int
    games: Mapping[str, int]
    plies: Mapping[str, int]
    duplicate_games: int
    shared_sequences: int


def _make(task: SplitTask[GameConfig]) -> Made:
    from gristmill.chess.kernels import rowshape, rowtext

    batch = read_batch(task.range)
    passes, _ = taken(batch, task.config)
    places = task.places(batch)
    plies = batch.columns[:, rowshape.N]
    winner = batch.columns[:, rowshape.WINNER]
    out = np.empty(len(batch.buf) + 128 * len(batch.columns), np.uint8)
    used = 0
    streams: dict[str, Bytes] = {}
    summary: dict[str, Any] = {"games": len(batch.columns), "eligible": int(passes.sum())}
    for number, split in enumerate(SPLITS):
        picked = places == number
        lengths = np.zeros(int(picked.sum()), np.int64)
        room = out[used:]
        size = rowtext.write_games(
            batch.buf, batch.columns, picked, task.config.keep_headers, room, lengths
        )
        used += size
        records = batch.records[picked].copy()
        records["row"] = np.cumsum(lengths) - lengths
        streams[split] = room[:size].data
        streams[f"{split}.games"] = records.tobytes()
        streams[f"{split}.phases"] = batch.codes[np.repeat(picked, plies)].tobytes()
        chars, counts = np.unique(winner[picked], return_counts=True)
        summary[split] = {
            "games": len(lengths),
            "plies": int(batch.columns[picked, rowshape.PLIES].sum()),
            "winners": {chr(c): n for c, n in zip(chars.tolist(), counts.tolist(), strict=True)},
        }
    return streams, summary


def _append(streams: Iterable[tuple[str, Bytes]], written: StreamFiles) -> None:
    """Append one part's streams; its records learn where its rows begin in the whole."""
    bases = {split: written.sizes[split] for split in SPLITS}
    records = {split: bytearray() for split in SPLITS}
    for name, data in streams:
        split, _, kind = name.partition(".")
        if kind == "games":
            records[split] += data
        else:
            written.write(name, data)
    for split in SPLITS:
        games = np.frombuffer(records[split], sidecar.GAME)
        games["row"] += bases[split]
        written.write(f"{split}.games", games.tobytes())


class _Totals:
    """Counts over all parts."""

    def __init__(self) -> None:
        self.games = self.eligible = 0
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
        "input_path": str(valid.resolve()),
        "output_dir": str(published.resolve()),
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
        "decisive_only": not config.allow_draws,
        "input_games_total": totals.games,
        "input_games_after_filters": totals.eligible,
        "spliceable_games": sum(games.values()),
        "split_games": games,
        "split_plies_total": plies,
        "split_avg_plies": {s: plies[s] / games[s] if games[s] else 0.0 for s in SPLITS},
        "split_winner_counts": totals.winners,
    }
    if config.split != "shuffle":
        stats["split_rule"] = "move_key"
    return stats


def build_game_dataset(
    valid_games: Path,
    out: Path,
    config: GameConfig = GameConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
    progress: Progress = SILENT,
) -> GameSummary:
    """Build the compact game dataset of a validated folder (or JSONL file) into `out`.

    Writes {train,val,test}.jsonl (docs/formats/chess.md#game-rows; an empty split: 0 bytes),
    stats.json (#game-stats) and `sidecar/` (#sidecar). published: where the folder will stand, for
    stats.json. parts: store of finished parts, where a killed build goes on.
    progress: gets the stage "games", in bytes of rows; before it "deal" for
    split="shuffle". Rows may have `moves` or `moves_uci`; FEN or variant games that
    an earlier validation let through get phase `unknown`.

    Raises BadInput for live bot games, rows that cannot be read, and a sidecar
    that is not of these rows; SplitLeakage if moves stand in two splits.
    """
    valid = valid_file(valid_games)
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    for split in SPLITS:
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
            stage.advance(task.size)
    if sidecar.sources_file(valid.parent).exists():
        sidecar.sources_file(out).write_bytes(sidecar.sources_file(valid.parent).read_bytes())
    (out / STATS).write_text(json.dumps(_stats(valid, published or out, config, totals), indent=2))
    sidecar.write_rows(
        out, {split: (out / f"{split}.jsonl", totals.split_games[split]) for split in SPLITS}
    )
    by_split = [sidecar.games_file(out, split) for split in SPLITS]
    leaked = shared_sequences(out, by_split, config)
    notes = {STATS: FileNote(payload=False)}
    for split in SPLITS:
        n = totals.split_games[split]
        notes[f"{split}.jsonl"] = FileNote(rows=n)
        notes[f"{sidecar.FOLDER}/{split}.games.bin"] = FileNote(rows=n)
    return GameSummary(
        files=notes,
        input_games=totals.games,
        eligible_games=totals.eligible,
        spliceable_games=sum(totals.split_games.values()),
        games=totals.split_games,
        plies=totals.split_plies,
        duplicate_games=sum(count_duplicates([file]) for file in by_split),
        shared_sequences=leaked,
    )
