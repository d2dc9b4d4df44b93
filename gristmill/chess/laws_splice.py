"""What must hold of a legacy splice dataset: counts of all rows, every rule on a sample of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gristmill.chess import rows
from gristmill.chess.config import SPLITS
from gristmill.chess.game_dataset import STATS
from gristmill.chess.laws_files import lacks, read_json, relative
from gristmill.chess.phases import phase_codes
from gristmill.contract import Violation

_SAMPLE = 200
_STATS = ("split_samples", "split_phase_counts", "params")
_CHUNK = 1 << 20


def _lines(path: Path) -> int:
    count = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_CHUNK):
            count += piece.count(b"\n")
    return count


def _picked(path: Path) -> Iterator[bytes]:
    """Whole lines at places spread evenly over the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for number in range(_SAMPLE if size else 0):
            file.seek(size * number // _SAMPLE)
            if number:
                file.readline()
            if line := file.readline():
                yield line


def _row_faults(row: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with one sample row (spec 2.5, 2.7, 2.8)."""
    index, total = row["splice_index"], row["plies_total"]
    context, target = row["context"], row["target"]
    if not (len(context) == index + 1 == row["ply"] and index + 1 >= params["min_context"]):
        yield "context and splice index disagree"
    if len(target) != min(params["k"], total - row["ply"]) or len(target) < params["min_target"]:
        yield "the target has not the plies it should have"
    if target[:1] != [row["next_move"]]:
        yield "next_move is not the first move of the target"
    if row["plies_remaining"] != total - row["ply"]:
        yield "plies_remaining is off"
    if row["plies_remaining_bucket"] != rows.remaining_bucket(row["plies_remaining"]):
        yield "plies_remaining_bucket is off"
    if row["relative_progress_bucket"] != rows.progress_bucket(row["ply"], total):
        yield "relative_progress_bucket is off"
    code = phase_codes([context])[0][-1]
    if (row["phase"], row["phase_reason"]) != (rows.PHASES[code & 3], rows.PHASE_REASONS[code]):
        yield "phase or its reason is not that of the replayed context"


@relative
def splice_laws(path: Path) -> Iterator[Violation]:
    """A legacy splice dataset: rows counted, a sample of them checked by every rule."""
    stats, wrong = read_json(path / STATS)
    yield from wrong
    lacking = lacks(stats, path / STATS, *_STATS) if stats else []
    yield from lacking
    if wrong or lacking:
        return
    split_of: dict[str, str] = {}
    for split in SPLITS:
        jsonl = path / f"{split}.jsonl"
        if not jsonl.is_file():
            yield Violation("missing_file", str(jsonl), "missing")
            continue
        count, told = _lines(jsonl), stats["split_samples"][split]
        if count != told:
            yield Violation("samples_counted", str(jsonl), f"{count} rows, told {told}")
        if sum(stats["split_phase_counts"][split].values()) != told:
            yield Violation("phases_counted", str(jsonl), "phase counts do not sum to the rows")
        for line in _picked(jsonl):
            try:
                row = json.loads(line)
                faults = list(_row_faults(row, stats["params"]))
                game_id = str(row["game_id"])
            except (ValueError, KeyError, TypeError, IndexError) as error:
                faults, game_id = [f"not a sample row ({error!r})"], ""
            for fault in faults:
                yield Violation("sample_rows", f"{jsonl}: {line[:80]!r}", fault)
            if game_id and split_of.setdefault(game_id, split) != split:
                yield Violation("games_in_one_split", str(jsonl), game_id)
