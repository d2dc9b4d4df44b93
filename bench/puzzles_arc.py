"""ARC: our whole build against a plain loop over puzzles, its laws, its workers, its memory.

Builds ARC-1 with 100 augmentations in uint8, JSON files to a published dataset, laws and hashes
included, beside a loop in numpy that augments puzzle by puzzle and compares them by sha256, on
every eighth task. Two workers beside two independent processes; and the peak memory with 1,000
augmentations, which writes 7 GB. CPU seconds of this process and its children; medians of
interleaved rounds. Ends with status 1 where a floor is missed. Needs the real tasks beside the
checkout (GRISTMILL_REAL_DATA).

    python -m bench.puzzles_arc [--rounds 3] [--only memory] [--augmentations 1000]
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from statistics import median

import numpy as np

from bench import kit
from bench.puzzles_build import Built, published
from gristmill.provenance import Input
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig

_AUGMENTATIONS = 100
_EVERY = 8
_FLOOR = 8.0
_LAWS = 0.5
_MEMORY = 1000
Grid = np.ndarray


def our_build(root: Path, source: Path, config: ArcConfig) -> Built:
    """Publish a dataset, and remove it."""
    inputs = [
        Input(path=path.name, sha256="0" * 64, bytes=path.stat().st_size)
        for path in sorted(source.glob("*/*.json"))
    ]
    done = published(
        *(root, "puzzles/arc", config),
        lambda attempt: build_arc(source, attempt.out, config, attempt.parts),
        inputs,
        kit.cpu_seconds,
    )
    shutil.rmtree(root)
    return done


def plain(source: Path, out: Path, augmentations: int) -> int:
    """The same dataset by a plain loop, without origins, laws and records."""
    random = np.random.default_rng(42)
    out.mkdir()
    count = 0
    results: dict[str, dict[str, list[Grid]]] = {
        split: {"inputs": [], "labels": []} for split in ("train", "test")
    }
    names: list[str] = []
    for path in sorted(source.glob("*/*.json"))[::_EVERY]:
        task = json.loads(path.read_text())
        pairs = {
            key: [
                (np.array(pair["input"], np.uint8), np.array(pair["output"], np.uint8))
                for pair in task[key]
            ]
            for key in ("train", "test")
        }
        group = [(path.stem, pairs)]
        known = {_hash(pairs)}
        for _ in range(5 * augmentations):
            if len(group) > augmentations:
                break
            symmetry = int(random.integers(8))
            colours = np.concatenate([[0], random.permutation(np.arange(1, 10))]).astype(np.uint8)
            made = {
                key: [(_turned(colours[a], symmetry), _turned(colours[b], symmetry)) for a, b in of]
                for key, of in pairs.items()
            }
            if (digest := _hash(made)) not in known:
                known.add(digest)
                group.append((f"{path.stem}_t{symmetry}_{''.join(map(str, colours))}", made))
        for name, made in group:
            names.append(name)
            for key, of in made.items():
                is_test = key == "test" and path.parent.name == "evaluation"
                split = results["test" if is_test else "train"]
                fixed = random.integers(len(of))
                for number, (a, b) in enumerate(of):
                    row = column = 0
                    if not is_test and number != fixed:
                        row = int(random.integers(31 - max(a.shape[0], b.shape[0])))
                        column = int(random.integers(31 - max(a.shape[1], b.shape[1])))
                    split["inputs"].append(_tokens(a, row, column))
                    split["labels"].append(_tokens(b, row, column))
                    count += 1
    for split, fields in results.items():
        for field, rows in fields.items():
            np.save(out / f"{split}__{field}.npy", np.stack(rows))
    (out / "identifiers.json").write_text(json.dumps(names))
    shutil.rmtree(out)
    return count


def _turned(grid: Grid, symmetry: int) -> Grid:
    if symmetry < 4:
        return np.rot90(grid, symmetry)
    if symmetry == 6:
        return grid.T
    return np.flipud(grid) if symmetry == 5 else np.fliplr(np.rot90(grid) if symmetry > 6 else grid)


def _hash(pairs: dict[str, list[tuple[Grid, Grid]]]) -> str:
    def of(grid: Grid) -> str:
        return hashlib.sha256(bytes(grid.shape) + grid.tobytes()).hexdigest()

    texts = sorted(f"{of(a)}|{of(b)}" for listed in pairs.values() for a, b in listed)
    return hashlib.sha256("|".join(texts).encode()).hexdigest()


def _tokens(grid: Grid, row: int, column: int) -> Grid:
    height, width = grid.shape
    cells = np.pad(grid + 2, ((row, 30 - row - height), (column, 30 - column - width)))
    if row + height < 30:
        cells[row + height, column : column + width] = 1
    if column + width < 30:
        cells[row : row + height, column + width] = 1
    return cells.reshape(-1)


def build(given: kit.Given) -> None:
    """Compare our published build with the plain loop, and its laws with the rest of it."""
    source, config = kit.real("puzzles/arc"), ArcConfig(num_aug=_AUGMENTATIONS, dtype="uint8")
    our_build(given.scratch / "warm", source, ArcConfig(num_aug=1, dtype="uint8"))
    shares: list[float] = []

    def ours() -> int:
        done = our_build(given.scratch / "ours", source, config)
        shares.append(done.laws / (done.whole - done.laws))
        return done.examples

    kit.compare(
        *("published build and the plain loop", ours),
        lambda: plain(source, given.scratch / "plain", _AUGMENTATIONS),
        "examples per CPU second",
        least=_FLOOR,
        rounds=given.rounds,
        clock=kit.cpu_seconds,
        warm=False,
        around=True,
    )
    kit.bounded("laws by the rest of the build", median(shares), most=_LAWS)


def two(given: kit.Given) -> None:
    """Compare two workers on ARC-1 with two processes, each on every other task."""
    source = kit.real("puzzles/arc")
    halves = [given.scratch / f"half_{number}" for number in range(2)]
    for number, path in enumerate(sorted(source.glob("*/*.json"))):
        folder = halves[number % 2] / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)
    words = [
        (given.scratch / f"root_{number}", half, 2 * _AUGMENTATIONS, 1)
        for number, half in enumerate(halves)
    ]
    kit.two_workers(words, (words[0][0], source, 2 * _AUGMENTATIONS, 2), given.rounds)


def memory(given: kit.Given) -> None:
    """Peak memory of ARC-1 with many augmentations, laws and publishing included."""
    words = given.scratch / "peak", kit.real("puzzles/arc"), given.augmentations, 1
    peak = kit.finish(kit.start(*words)) / 1e6
    kit.bounded(f"peak memory with {given.augmentations} augmentations: MB", peak, most=_MEMORY)


def child(root: str, source: str, augmentations: str, workers: str) -> int:
    """A build in a process of its own; its peak memory."""
    config = ArcConfig(num_aug=int(augmentations), dtype="uint8", workers=int(workers))
    our_build(Path(root), Path(source), config)
    return kit.peak_bytes()


if __name__ == "__main__":
    kit.main(__doc__, build, two, memory, child=child, rounds=3, augmentations=1000)
