"""Laws of a legacy splice dataset: counts of all rows, every rule on a sample of them.

Leakage is checked over all rows in bounded memory: by ids with the shuffle, else by moves, all or
those of the opening. A row shows all moves of its game only where its target reaches the end. Of a
capped game without such a row only the builder saw the moves, and it refuses to build a leak.
Source: docs/formats/chess.md#splice-laws
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import GAME, STATS, split_file
from gristmill.chess.laws.files import law, missing_keys, read_json
from gristmill.chess.read.phases import phase_codes
from gristmill.contract import Violation
from gristmill.families import Subject

_SAMPLE = 200
_STATS = ("split_samples", "split_phase_counts", "params")
_READ_BYTES = 1 << 19
_HEAD = re.compile(
    rb'\{"game_id": ("(?:[^"\\]|\\.)*"), .*?"ply": (\d+), "plies_remaining": (\d+), '
)


@law
def splice_laws(subject: Subject) -> Iterator[Violation]:
    """Find rows that are not counted, what is wrong in a sample of rows, and what leaks."""
    path = subject.folder
    stats, faults = read_json(path / STATS)
    yield from faults
    missing = missing_keys(stats, path / STATS, *_STATS) if stats else []
    yield from missing
    if faults or missing:
        return
    params = stats["params"]
    kind, plies = "game ids", None
    if params.get("split_rule") == "move_key":
        kind, plies = "move sequences", 0
    elif params.get("split_rule") == "opening_key":
        kind, plies = "openings", int(params["opening_plies"])
    with tempfile.TemporaryDirectory(prefix="gristmill_") as folder:
        files = [Path(folder) / split for split in SPLITS]
        for split, file in zip(SPLITS, files, strict=True):
            jsonl = split_file(path, split)
            file.touch()
            if not jsonl.is_file():
                yield Violation("missing_file", str(jsonl), "missing")
                continue
            count, faults = _write_keys(jsonl, plies, int(params["k"]), file)
            yield from faults
            yield from _check_counts(jsonl, stats, count)
            yield from _check_sample(jsonl, stats["params"])
        if shared := folders.count_shared(files):
            yield Violation("no_leakage", str(path), f"{shared} {kind} in more than one split")


def _write_keys(jsonl: Path, plies: int | None, k: int, out: Path) -> tuple[int, list[Violation]]:
    """Write keys of a split's games as records of GAME, up to a row that cannot be read.

    plies: a key is of so many first moves, 0 for all moves, None for the game's id.
    """
    count = 0
    with jsonl.open("rb") as file, out.open("wb") as records:
        while data := file.read(_READ_BYTES):
            data += file.readline()
            rows, texts, fault = _keys_in(data, plies, k)
            keys = np.zeros(len(texts), GAME)
            digests = b"".join([hashlib.sha256(text).digest()[:8] for text in texts])
            keys["move_key"] = np.frombuffer(digests, ">u8")
            records.write(keys.tobytes())
            if fault is not None:
                line, error = fault
                where = f"{jsonl}: row {count + rows + 1}: {line[:80]!r}"
                count += data.count(b"\n") + (not data.endswith(b"\n")) + sum(1 for _ in file)
                return count, [Violation("sample_rows", where, f"not a sample row ({error!r})")]
            count += rows
    return count, []


def _keys_in(
    data: bytes, plies: int | None, k: int
) -> tuple[int, list[bytes], tuple[bytes, Exception] | None]:
    """The rows of whole lines, the texts of their keys, and what cannot be read, where both end.

    The kernel reads the rows of the builder's form, `_key_of` those of any other.
    """
    from gristmill.chess.kernels.splicetext import LEAST_BYTES, PADDING, read_keys

    buf = np.zeros(len(data) + PADDING, np.uint8)
    buf[: len(data)] = np.frombuffer(data, np.uint8)
    out, ends = np.empty(len(data), np.uint8), np.empty(len(data) // LEAST_BYTES + 1, np.int64)
    place, rows = 0, 0
    texts: list[bytes] = []
    while place < len(data):
        first = -1 if plies is None else plies
        place, read, found = read_keys(buf, place, len(data), first, k, out, ends)
        rows += read
        text = out[: ends[found - 1] if found else 0].tobytes()
        texts += [text[a:b] for a, b in pairwise((0, *ends[:found].tolist()))]
        if place < len(data):
            end = data.find(b"\n", place) + 1 or len(data)
            line = data[place:end]
            try:
                texts += filter(None, [_key_of(line, plies, k)])
            except (ValueError, KeyError, TypeError) as error:
                return rows, texts, (line, error)
            place, rows = end, rows + 1
    return rows, texts, None


def _key_of(line: bytes, plies: int | None, k: int) -> bytes:
    """The text of a row's key, empty for a row that does not show the moves of the key."""
    head = _HEAD.match(line)
    if head is None:
        raise ValueError("no id, ply and plies_remaining where they belong")
    if plies is None:
        return head[1]
    ply, left = int(head[2]), int(head[3])
    if plies and ply >= plies:
        moves = line[head.end() :].partition(b'"context": [')[2].split(b'"', 2 * plies)
        return b" ".join(moves[1 : 2 * plies : 2])
    if left > k and (not plies or ply + k < plies):
        return b""
    row = json.loads(line)
    return " ".join((row["context"] + row["target"])[: plies or None]).encode()


def _check_counts(jsonl: Path, stats: Mapping[str, Any], count: int) -> Iterator[Violation]:
    recorded = stats["split_samples"][jsonl.stem]
    if count != recorded:
        yield Violation("samples_counted", str(jsonl), f"{count} rows, recorded {recorded}")
    if sum(stats["split_phase_counts"][jsonl.stem].values()) != recorded:
        yield Violation("phases_counted", str(jsonl), "phase counts do not sum to the rows")


def _check_sample(jsonl: Path, params: Mapping[str, Any]) -> Iterator[Violation]:
    for line in _spread_lines(jsonl):
        try:
            faults = _row_faults(json.loads(line), params)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            faults = [f"not a sample row ({error!r})"]
        for fault in faults:
            yield Violation("sample_rows", f"{jsonl}: {line[:80]!r}", fault)


def _spread_lines(path: Path) -> Iterator[bytes]:
    """Whole lines at places spread evenly over a file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for number in range(_SAMPLE if size else 0):
            file.seek(size * number // _SAMPLE)
            if number:
                file.readline()
            if line := file.readline():
                yield line


def _row_faults(row: Mapping[str, Any], params: Mapping[str, Any]) -> list[str]:
    """The rules of docs/formats/chess.md#legacy-rows that a row breaks, as texts."""
    index, total, ply = row["splice_index"], row["plies_total"], row["ply"]
    context, target, left = row["context"], row["target"], row["plies_remaining"]
    code = phase_codes([context])[0][-1]
    phase = (rows.PHASES[code & 3], rows.PHASE_REASONS[code])
    rules = {
        "context and splice index disagree": len(context) == index + 1 == ply,
        "the context is too short": len(context) >= params["min_context"],
        "the target has not the plies it should have": len(target) == min(params["k"], total - ply),
        "the target is too short": len(target) >= params["min_target"],
        "next_move is not the first move of the target": target[:1] == [row["next_move"]],
        "plies_remaining is wrong": left == total - ply,
        "plies_remaining_bucket is wrong": (
            row["plies_remaining_bucket"] == rows.remaining_bucket(left)
        ),
        "relative_progress_bucket is wrong": (
            row["relative_progress_bucket"] == rows.progress_bucket(ply, total)
        ),
        "phase or its reason is not that of the replayed context": (
            (row["phase"], row["phase_reason"]) == phase
        ),
    }
    return [fault for fault, holds in rules.items() if not holds]
