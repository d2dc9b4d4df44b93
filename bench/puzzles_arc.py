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

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from bench.cpu_seconds import cpu_seconds
from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Subject
from gristmill.provenance import Input, config_fields
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig

HERE = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", HERE.parent / "shared" / "data")) / "puzzles"

_AUGMENTATIONS = 100
_EVERY = 8
_FLOOR = 8.0
_LAWS = 0.5
_WORKERS = 0.85
_MEMORY = 1000
Grid = np.ndarray


def published(root: Path, source: Path, config: ArcConfig) -> int:
    """Build and publish a dataset as the asset does; the number of examples."""
    inputs = [
        Input(path=path.name, sha256="0" * 64, bytes=path.stat().st_size)
        for path in sorted(source.glob("*/*.json"))
    ]
    held: dict[str, int] = {}

    def make(attempt: Attempt) -> Summary:
        summary = build_arc(source, attempt.out, config, attempt.parts)
        held.update(summary.examples)
        return summary

    def laws(out: Path) -> Iterator[Violation]:
        began = cpu_seconds()
        yield from families.check("puzzles/arc", Subject(out, config=config_fields(config)))
        law_seconds.append(cpu_seconds() - began)

    publish(
        Build(
            root=root,
            artifact="puzzles/arc-bench",
            asset="puzzles/arc",
            partition="arc-bench",
            code_version=ArcConfig.CODE_VERSION,
            config=config,
            inputs=inputs,
            make=make,
            laws=laws,
        )
    )
    shutil.rmtree(root)
    return sum(held.values())


law_seconds: list[float] = []
"""CPU seconds of the laws of each published build."""


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


def cpu(work: Callable[[], int]) -> float:
    """CPU microseconds of this process and its children for each example of `work`."""
    before = cpu_seconds()
    count = work()
    return (cpu_seconds() - before) / count * 1e6


def against_plain(scratch: Path, rounds: int) -> list[str]:
    """Rate of our published build over that of the plain loop, and the part of the laws in it."""
    source, config = REAL / "arc", ArcConfig(num_aug=_AUGMENTATIONS, dtype="uint8")
    published(scratch / "warm", source, ArcConfig(num_aug=1, dtype="uint8"))
    ratios, shares = [], []
    for number in range(rounds):
        before = cpu(lambda: plain(source, scratch / "plain", _AUGMENTATIONS))
        began = cpu_seconds()
        ours = cpu(lambda: published(scratch / "ours", source, config))
        whole = cpu_seconds() - began
        theirs = (before + cpu(lambda: plain(source, scratch / "plain", _AUGMENTATIONS))) / 2
        ratios.append(theirs / ours)
        shares.append(law_seconds[-1] / (whole - law_seconds[-1]))
        print(
            f"  round {number + 1}, us an example: plain loop {theirs:.1f}; published build"
            f" {ours:.1f}, {whole:.2f} s, of which {law_seconds[-1]:.2f} s laws"
        )
    ratio, share = median(ratios), median(shares)
    print(f"published build over the plain loop: {ratio:.1f} times; floor {_FLOOR}")
    print(f"laws over the rest of the build: {share:.2f}; ceiling {_LAWS}")
    misses = [] if ratio >= _FLOOR else [f"build over plain loop: {ratio:.2f}, floor {_FLOOR}"]
    return misses + ([] if share <= _LAWS else [f"laws: {share:.3f}, ceiling {_LAWS}"])


def against_two(scratch: Path, rounds: int) -> list[str]:
    """Two workers on ARC-1 over two independent processes, each on every other task.

    By the clock, so it needs an idle machine.
    """
    halves = [scratch / f"half_{number}" for number in range(2)]
    for number, path in enumerate(sorted((REAL / "arc").glob("*/*.json"))):
        folder = halves[number % 2] / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)

    def seconds(sources: list[Path], workers: int) -> float:
        began = time.perf_counter()
        running = [
            child("build", scratch / f"root_{number}", source, 2 * _AUGMENTATIONS, workers)
            for number, source in enumerate(sources)
        ]
        if any(process.wait() for process in running):
            raise SystemExit("a build failed")
        return time.perf_counter() - began

    ratios = [seconds(halves, 1) / seconds([REAL / "arc"], 2) for _ in range(rounds)]
    print(
        f"two workers over two independent processes: {median(ratios):.3f} of their joint rate;"
        f" floor {_WORKERS}"
    )
    ratio = median(ratios)
    return [] if ratio >= _WORKERS else [f"two workers: {ratio:.3f}, floor {_WORKERS}"]


def memory(scratch: Path, augmentations: int) -> list[str]:
    """Peak resident memory of ARC-1 with many augmentations, laws and publishing included."""
    process = child(
        "peak", scratch / "peak", REAL / "arc", augmentations, 1, stdout=subprocess.PIPE
    )
    peak = int(process.communicate()[0]) / 1e6
    print(f"peak memory with {augmentations} augmentations: {peak:.0f} MB; ceiling {_MEMORY} MB")
    return [] if peak <= _MEMORY else [f"peak memory: {peak:.0f} MB, ceiling {_MEMORY} MB"]


def child(
    what: str, root: Path, source: Path, augmentations: int, workers: int, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    arguments = [what, str(root), str(source), str(augmentations), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.puzzles_arc", "--child", *arguments], cwd=HERE, stdout=stdout
    )


def run_child(what: str, root: str, source: str, augmentations: str, workers: str) -> None:
    config = ArcConfig(num_aug=int(augmentations), dtype="uint8", workers=int(workers))
    published(Path(root), Path(source), config)
    if what == "peak":
        # Not ru_maxrss: a child inherits its parent's.
        status = Path("/proc/self/status").read_text()
        print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--augmentations", type=int, default=1000)
    parser.add_argument("--only", choices=["build", "two", "memory"])
    parser.add_argument("--child", nargs=5)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*arguments.child)
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as folder:
        scratch = Path(folder)
        parts: dict[str, Callable[[], list[str]]] = {
            "build": lambda: against_plain(scratch, arguments.rounds),
            "two": lambda: against_two(scratch, arguments.rounds),
            "memory": lambda: memory(scratch, arguments.augmentations),
        }
        misses = [
            miss
            for name, part in parts.items()
            if arguments.only in (None, name)
            for miss in part()
        ]
    for miss in misses:
        print(f"MISSED {miss}")
    if misses:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
