"""Small shards with index and alignment by hand, and what every token of them belongs to."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.reasoning.format import align, names
from tests.reasoning.shard_folders import write_manifest, write_shard

SEQ_LEN = 16
KEYS = (
    *("example_id", "shard_path", "sequence_index", "token_start", "num_tokens"),
    *("num_tokens_with_eos", "spans", "rank", "text_sha256"),
)
"""Of a line of the index, in its order; `extras` comes last."""


def span(shard_path: str, row: int, start: int, end: int) -> dict[str, Any]:
    return {"shard_path": shard_path, "sequence_index": row, "start": start, "end": end}


def index_line(values: Sequence[Any], extras: Mapping[str, Any]) -> bytes:
    """A line of the index, by the standard library. values: of `KEYS`."""
    extras_text = f', "extras": {json.dumps(extras, ensure_ascii=False)}' if extras else ""
    return f"{json.dumps(dict(zip(KEYS, values, strict=True)))[:-1]}{extras_text}}}\n".encode()


@dataclass
class Supervised:
    """A folder of shards and one of alignments, with the truth for every sequence."""

    root: Path
    steps: Path
    corpus: str
    split: str
    rows: int = 3
    step_id: dict[tuple[str, int], npt.NDArray[np.int64]] = field(default_factory=dict)
    example: dict[tuple[str, int], npt.NDArray[np.int64]] = field(default_factory=dict)
    extras: list[dict[str, Any]] = field(default_factory=list)


def write_supervised(
    folder: Path,
    corpus: str = "openr1_math_220k",
    split: str = "train",
    examples: int = 40,
    world_size: int = 1,
    seed: int = 0,
    prefix: str = "reasoning",
    rows: int = 3,
) -> Supervised:
    """Write shards, metas with the ids of their examples, manifest, index and alignment."""
    made = Supervised(folder / "gpt2", folder / "alignment", corpus, split, rows)
    chance = random.Random(seed)
    records = [record for record in range(examples) if chance.random() > 0.1]
    streams: list[list[tuple[int, int, int]]] = [[] for _ in range(world_size)]
    entries: dict[int, dict[str, Any]] = {}
    for line, record in enumerate(records):
        rank, length = record % world_size, chance.randint(1, 40)
        steps = _steps(chance, length)
        extras = {"difficulty": chance.choice(["easy", "hard"])} if chance.random() < 0.8 else {}
        made.extras.append(extras)
        entries[line] = {
            "example_id": names.example_id(corpus, split, record),
            "length": length,
            "steps": steps,
            "rank": rank,
            "at": len(streams[rank]),
        }
        number = np.zeros(length + 1, np.int64)
        for step, (start, stop) in enumerate(steps, 1):
            number[start:stop] = step
        streams[rank] += [(line, int(n), chance.randrange(50_256)) for n in number]
    for rank, stream in enumerate(streams):
        _write_rank(made, rank, world_size, stream, entries)
    write_manifest(made.root)
    _write_rows(made, entries, world_size, prefix)
    return made


def _steps(chance: random.Random, length: int) -> list[list[int]]:
    """Disjoint ranges in ascending order, some of them adjacent."""
    bounds = sorted(chance.sample(range(length + 1), min(length + 1, 2 * chance.randint(0, 3))))
    pairs = [[a, b] for a, b in zip(bounds[::2], bounds[1::2], strict=False)]
    if pairs and pairs[-1][1] < length and chance.random() < 0.5:
        pairs.append([pairs[-1][1], length])
    return pairs


def _shard_path(made: Supervised, rank: int, world_size: int, place: int) -> tuple[str, int, int]:
    """Shard, row and column of a place in the stream of a rank."""
    local, rest = divmod(place, made.rows * SEQ_LEN)
    path = names.shard(made.corpus, made.split, local * world_size + rank)
    return path, rest // SEQ_LEN, rest % SEQ_LEN


def _write_rank(
    made: Supervised,
    rank: int,
    world_size: int,
    stream: Sequence[tuple[int, int, int]],
    entries: dict[int, dict[str, Any]],
) -> None:
    for first in range(0, len(stream), made.rows * SEQ_LEN):
        own = stream[first : first + made.rows * SEQ_LEN]
        padded = [*own, *[(-1, 0, 50_256)] * (-len(own) % SEQ_LEN)]
        table = np.array(padded, np.int64).reshape(-1, SEQ_LEN, 3)
        path, _, _ = _shard_path(made, rank, world_size, first)
        meta = write_shard(made.root, path, table[:, :, 2].astype(np.int32))
        meta |= {"rank": rank, "world_size": world_size}
        meta |= {"first_example": entries[own[0][0]]["example_id"]}
        meta |= {"last_example": entries[own[-1][0]]["example_id"]}
        (made.root / names.meta(path)).write_text(json.dumps(meta))
        for row in range(len(table)):
            made.example[path, row] = table[row, :, 0]
            made.step_id[path, row] = table[row, :, 1]


def _write_rows(
    made: Supervised, entries: dict[int, dict[str, Any]], world_size: int, prefix: str
) -> None:
    lines, aligned = [], []
    for line, entry in entries.items():
        spans, place = [], entry["at"]
        end = place + entry["length"] + 1
        while place < end:
            path, row, column = _shard_path(made, entry["rank"], world_size, place)
            stop = min(SEQ_LEN, column + end - place)
            spans.append(span(f"{prefix}/tokenized/gpt2/{path}", row, column, stop))
            place += stop - column
        first = tuple(spans[0].values())[:3]
        counts = (entry["length"], entry["length"] + 1)
        values = (entry["example_id"], *first, *counts, spans, entry["rank"], "0" * 64)
        lines.append(index_line(values, made.extras[line]))
        labels = [f"Step {n}" for n in range(1, len(entry["steps"]) + 1)]
        confidence = (1.0, 0.5)[line % 2] if labels else 0.0
        aligned.append(
            align.line(
                align.AlignRow(
                    entry["example_id"],
                    first[1],
                    first[0],
                    entry["steps"],
                    entry["steps"],
                    labels,
                    confidence,
                    "explicit; pending manual audit",
                )
            )
        )
    for file, content in (
        (made.root / names.split_index(made.corpus, made.split), lines),
        (made.steps / names.alignment(made.corpus, made.split), aligned),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(content))
