"""Merging, values, views and reading of 2048 packs, each against its limit, in turns in one run.

Run from the checkout: python -m bench.macroxue_pools [--rows N]. Packs are made
of games played here. Exit status 1 where a required ratio is missed: merge at
least 0.5 of copying the same bytes through numpy memory maps, values at least 20
times a Python loop over steps, a split view, without the search for gaps, at least
0.5 of copying its steps and values, that search as fast as the game laws, random
reads at least 0.8 of a bare numpy gather, and the memory of merge, values and views
flat in rows (within a tenth, and 8 MiB for the tables of runs).
"""

from __future__ import annotations

import gc
import itertools
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import kit
from bench.python_values import python_values
from gristmill.macroxue import (
    MergeConfig,
    StepDataset,
    ValueConfig,
    ViewConfig,
    merge,
    training_view,
    value_sidecar,
)
from gristmill.macroxue.builders.training_view import _judged
from gristmill.macroxue.format.files import Run, write_metadata, write_valuation_types
from gristmill.macroxue.format.rows import (
    STEP_FORMATS,
    STEP_ROW_DTYPE,
    Layout,
    ShardWriter,
    pack_boards,
    to_layout,
)
from gristmill.macroxue.laws import game_laws
from gristmill.macroxue.read.stream import StepStream
from gristmill.macroxue.rules.game import board_eval, legal_moves, move
from gristmill.run.progress import SILENT

ROUNDS = 5
GAMES, STEPS = 40, 500
BATCH = 4096
RUN_TABLES = 8 << 20
"""Bytes that `runs` and the trace may add, which are held by run, not by row."""


def played() -> tuple[np.ndarray, np.ndarray]:
    """GAMES games of STEPS rows each, aligned, and the points of each: a few start from 65536."""
    random = np.random.default_rng(0)
    boards = np.zeros((GAMES, 16), np.uint8)
    boards[:, :6] = [13, 12, 11, 10, 9, 8]
    boards[::5, 0] = 17
    boards[::5, 1] = 16
    rows = np.zeros((GAMES, STEPS), STEP_ROW_DTYPE)
    score = np.zeros(GAMES, np.int64)
    for step in range(STEPS):
        legal = legal_moves(boards)
        stuck = np.flatnonzero(legal == 0)
        # A stuck board is cleared of its small tiles, so that games continue; bench, not play.
        boards[stuck] = np.where(boards[stuck] < 8, 0, boards[stuck])
        boards[stuck, 15] = 1
        legal = legal_moves(boards)
        moves = np.array(
            [next(k for k in (0, 2, 3, 1) if bits >> k & 1) for bits in legal], np.uint8
        )
        row = rows[:, step]
        row["step_index"] = step
        row["board"], row["tile_65536_mask"] = pack_boards(boards)
        row["board_eval"] = board_eval(boards)
        row["move_dir"], row["max_rank"], row["ev_legal"] = moves, boards.max(axis=1), legal
        after, reward, _ = move(boards, moves)
        score += reward
        for board in after:
            board[random.choice(np.flatnonzero(board == 0))] = 1
        boards = after
    return rows, score


def write_pack(folder: Path, rows: int, layout: Layout = "aligned48", shard_rows: int = 0) -> Path:
    """A pack of the played games over and over, at least `rows` rows."""
    folder.mkdir()
    games, score = played()
    runs: list[Run] = []
    with ShardWriter(folder, STEP_FORMATS[layout], shard_rows) as writer:
        while len(runs) * STEPS < rows:
            for one, points in zip(games, score.tolist(), strict=True):
                one["run_id"] = len(runs)
                writer.write(to_layout(one, layout))
                runs.append(Run(len(runs), len(runs), STEPS, points, 1 << 20))
    write_metadata(folder / "metadata.db", runs, {})
    write_valuation_types(folder / "valuation_types.json", ["search", "tuple11", "tuple10"])
    return folder


def report(what: str, ours: float, theirs: float, need: float, unit: str) -> None:
    """Print both medians (seconds) and theirs / ours."""
    times = f"{ours * 1e3:.3f} against {theirs * 1e3:.3f} {unit}"
    kit.bounded(f"{what}: {times}, ratio", theirs / ours, least=need)


def in_turns(
    *tasks: Callable[[], object],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Median seconds of each task, all run once a round, without garbage of the one before."""
    times = [[(gc.collect(), kit.spent(task, clock))[1] for task in tasks] for _ in range(rounds)]
    return [median(column) for column in zip(*times, strict=True)]


def copy(maps: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Copy arrays, one after the other.

    Not flushed to the disk, as `merge` does not: making durable is the publisher's.
    """
    at = 0
    for rows in maps:
        out[at : at + len(rows)] = rows
        at += len(rows)


def copy_maps(sources: list[Path], target: Path) -> None:
    """Copy step rows into one new npy through numpy memory maps."""
    maps = [np.load(source, mmap_mode="r") for source in sources]
    shape = (sum(map(len, maps)),)
    copy(maps, np.lib.format.open_memmap(target, "w+", maps[0].dtype, shape))


def copy_bytes(sources: list[Path], target: Path) -> None:
    """As copy_maps, but of opaque bytes: the harder limit, since no field is looked at."""
    maps = [np.memmap(source, np.uint8, "r") for source in sources]
    copy(maps, np.memmap(target, np.uint8, "w+", shape=(sum(map(len, maps)),)))


def bench_merge(root: Path, rows: int) -> None:
    """Merge in every pairing of layouts against the copies."""
    a = write_pack(root / "a", rows)
    b = write_pack(root / "b", rows, shard_rows=rows // 3)
    p = write_pack(root / "p", rows, "packed46")
    for name, packs, layout in (
        ("merge aligned to aligned", [a, b], "aligned48"),
        ("merge packed and aligned to aligned", [p, a], "aligned48"),
        ("merge aligned to packed", [a, b], "packed46"),
    ):
        sources = [file for pack in packs for file in sorted(pack.glob("steps*.npy"))]

        def ours(packs: list[Path] = packs, layout: Layout = layout) -> None:
            shutil.rmtree(root / "out", ignore_errors=True)
            merge(packs, root / "out", MergeConfig(layout))

        def threads(packs: list[Path] = packs, layout: Layout = layout) -> None:
            shutil.rmtree(root / "out", ignore_errors=True)
            merge(packs, root / "out", MergeConfig(layout, workers=2))

        def octets(sources: list[Path] = sources) -> None:
            (root / "copy").unlink(missing_ok=True)
            copy_bytes(sources, root / "copy")

        one, two, limit = in_turns(ours, threads, octets)
        report(f"{name}, bytes copied", one, limit, 0.5, "ms")
        print(f"    with two threads: ratio {limit / two:.2f}")
        if len({np.load(s, mmap_mode="r").dtype for s in sources}) == 1:

            def fields(sources: list[Path] = sources) -> None:
                (root / "copy").unlink(missing_ok=True)
                copy_maps(sources, root / "copy")

            one, limit = in_turns(ours, fields)
            report(f"{name}, rows copied", one, limit, 0.5, "ms")


def bench_values(root: Path, rows: int) -> None:
    """Rows a second of the sidecar against the loop on a share of the rows."""
    pack = root / "a"
    share = np.array(np.load(pack / "steps.npy", mmap_mode="r")[:10_000])
    counted = len(np.load(pack / "steps.npy", mmap_mode="r"))

    def ours() -> None:
        shutil.rmtree(root / "values", ignore_errors=True)
        value_sidecar(pack, root / "values", ValueConfig())

    ours()
    spent, loop = in_turns(ours, lambda: python_values(share), rounds=3)
    report("values, a million rows", spent / counted * 1e6, loop / len(share) * 1e6, 20, "ms")
    print(f"    {counted / spent / 1e6:.1f} million rows a second")
    start = time.perf_counter()
    violations = sum(1 for v in game_laws(pack) if v.law not in ("follows", "further places"))
    print(
        f"    game laws: {counted / (time.perf_counter() - start) / 1e6:.1f} million rows a second",
        end="",
    )
    print(f", {violations} violations beside those that the bench makes")


def bench_views(root: Path) -> None:
    """CPU seconds of a split view of a pack, of its images and of the search for gaps.

    Each writes into a folder of its own: to remove files takes as long as to write them.
    """
    pack, values, numbers = root / "a", root / "values", itertools.count()
    sources = [pack / "steps.npy", values / "values.npy"]

    def view(**settings: Any) -> None:
        config = ViewConfig(num_bins=0, **settings)
        training_view(pack, [values], root / f"view{next(numbers)}", config)

    search, laws, split, limit = in_turns(
        lambda: _judged(StepStream(pack), SILENT),
        lambda: list(game_laws(pack)),
        lambda: view(validation_share=0.1),
        lambda: copy_bytes(sources, root / f"copy{next(numbers)}"),
        rounds=3,
        clock=time.process_time,
    )
    report("split view but for its gaps, bytes copied", split - search, limit, 0.5, "CPU ms")
    report("search for gaps, game laws", search, laws, 1, "CPU ms")
    (images,) = in_turns(lambda: view(symmetries="all"), rounds=1, clock=time.process_time)
    print(f"    all images: {images / search:.1f} times the search for gaps")


def bench_reads(root: Path) -> None:
    """Gathers of BATCH rows from 2 million, one file and sharded, against bare ones."""
    random = np.random.default_rng(0)
    single = write_pack(root / "single", 2_000_000)
    sharded = write_pack(root / "sharded", 2_000_000, shard_rows=150_000)
    bare = np.asarray(np.load(single / "steps.npy", mmap_mode="r"))
    for name, pack in (("one file", single), ("14 shards", sharded)):
        data = StepDataset(pack)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(400):
            # Other rows for each, so that neither finds them in the processor's cache.
            for spent, read in ((ours, data.rows), (theirs, bare.__getitem__)):
                indices = random.integers(0, len(bare), BATCH)
                start = time.perf_counter()
                read(indices)
                spent.append(time.perf_counter() - start)
        report(f"{BATCH} random rows, {name}", median(ours), median(theirs), 0.8, "ms")
    start = time.perf_counter()
    StepDataset(sharded)
    print(f"    opening the sharded pack: {(time.perf_counter() - start) * 1e3:.1f} ms")


def child(what: str, out: str, *packs: str) -> int:
    """One build in a process of its own; its peak memory."""
    source, target = [Path(pack) for pack in packs], Path(out)
    if what == "merge":
        merge(source, target, MergeConfig())
    elif what == "values":
        value_sidecar(source[0], target, ValueConfig())
    else:
        training_view(source[0], source[1:], target, ViewConfig(0.1, num_bins=0))
    shutil.rmtree(target)
    return kit.peak_bytes()


def memory(root: Path, rows: int) -> None:
    """Peaks for a tenth of the rows and for all; a tenth apart but for what is held by run."""
    few = [write_pack(root / f"few{i}", rows // 10) for i in range(2)]
    many = [root / "a", root / "b"]
    value_sidecar(few[0], root / "few_values", ValueConfig())
    valued = [few[0], root / "few_values"], [many[0], root / "values"]
    for what in ("merge", "values", "view"):
        of = valued if what == "view" else (few, many)
        small, large = (kit.finish(kit.start(what, root / "peak", *packs)) for packs in of)
        of_tables = f"but for {RUN_TABLES >> 20} MiB of tables of ten times the runs"
        peaks = f"{small >> 20} MiB, with ten times the rows {large >> 20} MiB"
        kit.bounded(
            f"{what}: peak {peaks}, ratio {large / small:.2f}, {of_tables}",
            (large - RUN_TABLES) / small,
            most=1.1,
        )


def pools(given: kit.Given) -> None:
    root = given.scratch
    bench_merge(root, given.rows)
    bench_values(root, given.rows)
    bench_views(root)
    memory(root, given.rows)
    bench_reads(root)


if __name__ == "__main__":
    kit.main(__doc__, pools, child=child, rows=1_000_000)
