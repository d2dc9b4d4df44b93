"""What must hold of a legacy splice dataset: counts of all rows, every rule on a sample of them.

That no game stands in two splits is asked of all rows, in bounded memory: of
ids where the ids were dealt, else of the moves. A row shows all moves of its
game where its target reaches the end; of games that a cap left without such a
row the builder alone has seen the moves, and it refuses to build a leak.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS
from gristmill.chess.format import move_keys, rows
from gristmill.chess.format.names import STATS
from gristmill.chess.format.sidecar import GAME
from gristmill.chess.laws.files import lacks, read_json, relative
from gristmill.chess.read.phases import phase_codes
from gristmill.contract import Violation

_SAMPLE = 200
_STATS = ("split_samples", "split_phase_counts", "params")
_KEYS = 1 << 14  # written at a time
_HEAD = re.compile(rb'\{"game_id": ("(?:[^"\\]|\\.)*"), .*?"plies_remaining": (\d+), ')


def _key_of(line: bytes, game: bytes, by_moves: bool, k: int) -> tuple[bytes, bytes]:
    """(the id as it is written, what stands for the game, empty where the row does not tell).

    game: the id of the row before. Raises ValueError, KeyError or TypeError for
    what is no sample row.
    """
    head = _HEAD.match(line)
    if head is None:
        raise ValueError("no id and plies_remaining where they belong")
    if not by_moves:
        return head[1], b"" if head[1] == game else head[1]
    if int(head[2]) > k:
        return head[1], b""
    row = json.loads(line)
    return head[1], " ".join(row["context"] + row["target"]).encode()


def _read(jsonl: Path, by_moves: bool, k: int, out: Path) -> Iterator[int | Violation]:
    """Write the keys of a split's games to `out`, as records of GAME; last, the rows there are."""
    count, game, digests = 0, b"", bytearray()
    with jsonl.open("rb") as file, out.open("wb") as found:

        def spill() -> None:
            records = np.zeros(len(digests) // 8, GAME)
            records["move_key"] = np.frombuffer(digests, ">u8")
            found.write(records.tobytes())
            digests.clear()

        for line in file:
            count += 1
            try:
                game, words = _key_of(line, game, by_moves, k)
            except (ValueError, KeyError, TypeError) as error:
                where = f"{jsonl}: row {count}: {line[:80]!r}"
                yield Violation("sample_rows", where, f"not a sample row ({error!r})")
                break
            if words:
                digests += hashlib.sha256(words).digest()[:8]
            if len(digests) >= 8 * _KEYS:
                spill()
        count += sum(1 for _ in file)
        spill()
    yield count


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
    """What is wrong with one sample row (docs/formats/chess.md#legacy-rows)."""
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
    """A legacy splice dataset: rows counted, a sample checked by every rule; no leakage."""
    stats, wrong = read_json(path / STATS)
    yield from wrong
    lacking = lacks(stats, path / STATS, *_STATS) if stats else []
    yield from lacking
    if wrong or lacking:
        return
    by_moves, k = stats["params"].get("split_rule") == "move_key", int(stats["params"]["k"])
    with tempfile.TemporaryDirectory(prefix="gristmill_") as folder:
        files = [Path(folder) / split for split in SPLITS]
        for split, file in zip(SPLITS, files, strict=True):
            jsonl, count = path / f"{split}.jsonl", 0
            file.touch()
            if not jsonl.is_file():
                yield Violation("missing_file", str(jsonl), "missing")
                continue
            for item in _read(jsonl, by_moves, k, file):
                if isinstance(item, Violation):
                    yield item
                else:
                    count = item
            yield from _split_holds(jsonl, stats, count)
        if n := move_keys.count_shared(files):
            words = "move sequences" if by_moves else "game ids"
            yield Violation("no_leakage", str(path), f"{n} {words} in more than one split")


def _split_holds(jsonl: Path, stats: Mapping[str, Any], count: int) -> Iterator[Violation]:
    """One split's rows are as many as told, and those of a sample obey every rule."""
    split = jsonl.stem
    told = stats["split_samples"][split]
    if count != told:
        yield Violation("samples_counted", str(jsonl), f"{count} rows, told {told}")
    if sum(stats["split_phase_counts"][split].values()) != told:
        yield Violation("phases_counted", str(jsonl), "phase counts do not sum to the rows")
    for line in _picked(jsonl):
        try:
            faults = list(_row_faults(json.loads(line), stats["params"]))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            faults = [f"not a sample row ({error!r})"]
        for fault in faults:
            yield Violation("sample_rows", f"{jsonl}: {line[:80]!r}", fault)
