"""Step lines and raw drops that tests write."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STEP: dict[str, Any] = {
    "seed": 7,
    "step_index": 0,
    "max_rank": 3,
    "move": "left",
    "valuation_type": "search",
    "valuation": 0.5,
    "board": [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    "branch_evs": {"up": None, "left": 0.5, "right": -1.25, "down": 0.031},
}
META: dict[str, Any] = {
    "seed": 272350805,
    "depth": 6,
    "game_index": 0,
    "steps_file": "logs/x.jsonl.gz",
    "num_moves": 1,
    "score": 80004,
    "max_tile": 4096,
    "max_rank": 12,
    "sum_tile": 8146,
    "seconds": 35.25,
}


def compact(value: Any) -> bytes:
    """JSON as the capture program writes it: no spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def step(drop: Sequence[str] = (), **changes: Any) -> bytes:
    """A step line without its newline; `drop` leaves keys out."""
    return compact({k: v for k, v in (STEP | changes).items() if k not in drop})


def write_run(
    folder: Path,
    stem: str,
    lines: Sequence[bytes] = (),
    *,
    meta: Mapping[str, Any] | bytes | None = None,
    zipped_meta: bool = False,
    steps: bytes | None = None,
) -> None:
    """Write one raw pair; `steps` are the steps file's own bytes instead of `lines`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (
        meta
        if isinstance(meta, bytes)
        else compact(META | {"num_moves": len(lines)} | dict(meta or {}))
    )
    if zipped_meta:
        (folder / f"{stem}.meta.json.gz").write_bytes(gzip.compress(text, mtime=0))
    else:
        (folder / f"{stem}.meta.json").write_bytes(text)
    raw = b"".join(line + b"\n" for line in lines)
    (folder / f"{stem}.jsonl.gz").write_bytes(
        gzip.compress(raw, mtime=0) if steps is None else steps
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a finished pack, to compare packs byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
