"""Laws of a game dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gristmill.chess.config import SPLITS, WINNERS_OF
from gristmill.chess.format import folders
from gristmill.chess.format.folders import STATS, split_file
from gristmill.chess.laws.files import (
    SIDECAR_LAWS,
    check_rows,
    difference,
    law,
    missing_keys,
    read_json,
)
from gristmill.chess.read.row_batches import RowBatch
from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.hashing import sha256_file

_STATS = (
    *("runtime_splice_defaults", "decisive_only", "split_games"),
    *("split_seed", "train_ratio", "val_ratio"),
)


@dataclass
class _Dataset:
    """A dataset while it is checked."""

    path: Path
    stats: Mapping[str, Any]
    recorded: Mapping[str, Mapping[str, Any]]
    is_ours: bool
    has_sidecar: bool
    split_of_id: dict[str, int] = field(default_factory=dict)

    @property
    def by_moves(self) -> bool:
        """Whether the moves of a game decide its split, all or the first of them."""
        return self.stats.get("split_rule") in ("move_key", "opening_key")


@law
def dataset_laws(subject: Subject) -> Iterator[Violation]:
    """Find where rows, sidecar, phases, splits and stats do not agree, and what leaks."""
    path = subject.folder
    has_sidecar = not subject.missing({folders.FOLDER: f"{SIDECAR_LAWS}, rows_noted"})
    stats, faults = read_json(path / STATS)
    yield from faults
    missing = missing_keys(stats, path / STATS, *_STATS) if stats else []
    yield from missing
    if faults or missing:
        return
    dataset = _Dataset(path, stats, folders.read_rows(path), subject.has_record, has_sidecar)
    for number in range(len(SPLITS)):
        yield from _check_split(dataset, number)
    files = [folders.games_file(path, split) for split in SPLITS]
    if dataset.by_moves and all(file.exists() for file in files):
        shared = folders.count_shared(files)
        if shared:
            found = f"{shared} move sequences in more than one split"
            yield Violation("no_leakage", str(path), found)


def _check_split(dataset: _Dataset, number: int) -> Iterator[Violation]:
    split, games = SPLITS[number], 0
    jsonl = split_file(dataset.path, split)
    if not jsonl.is_file():
        yield Violation("missing_file", str(jsonl), "missing")
        return
    for item in check_rows(
        jsonl, dataset.path, split, is_ours=dataset.is_ours, has_sidecar=dataset.has_sidecar
    ):
        if isinstance(item, Violation):
            yield item
            continue
        games += len(item.columns)
        yield from _check_eligibility(item, dataset.stats, jsonl)
        yield from _check_places(item, dataset, number, jsonl)
    yield from difference("games_counted", jsonl, games, dataset.stats["split_games"][split])
    if dataset.recorded:
        recorded = dataset.recorded.get(split, {}).get("sha256")
        yield from difference("rows_noted", jsonl, sha256_file(jsonl), recorded)


def _check_eligibility(
    batch: RowBatch, stats: Mapping[str, Any], jsonl: Path
) -> Iterator[Violation]:
    from gristmill.chess.kernels import rowshape

    shortest = sum(stats["runtime_splice_defaults"].values())
    if (batch.columns[:, rowshape.N] < shortest).any():
        yield Violation("games_spliceable", str(jsonl), "a game is too short to splice")
    sides = set(map(chr, batch.columns[:, rowshape.WINNER].tolist()))
    taken = WINNERS_OF[stats.get("games", "decisive" if stats["decisive_only"] else "all")]
    if taken and not sides <= set(taken):
        yield Violation("games_decisive", str(jsonl), f"winners {sorted(sides)}")


def _check_places(
    batch: RowBatch, dataset: _Dataset, number: int, jsonl: Path
) -> Iterator[Violation]:
    """Each game is in the split of its moves; with the shuffle, its id is in no other split."""
    stats = dataset.stats
    if dataset.by_moves:
        opening = stats["split_rule"] == "opening_key"
        keys = batch.opening_keys(stats["opening_plies"]) if opening else batch.records["move_key"]
        ratios = (stats["train_ratio"], stats["val_ratio"])
        if (folders.split_of(keys, stats["split_seed"], *ratios) != number).any():
            law_name = "split_of_opening" if opening else "split_of_moves"
            yield Violation(law_name, str(jsonl), "a game belongs to another split")
        return
    for game_id in batch.ids():
        if dataset.split_of_id.setdefault(game_id, number) != number:
            yield Violation("ids_in_one_split", str(jsonl), game_id)
