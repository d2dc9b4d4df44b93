"""Two builds in different processes give the same bytes, whatever differs around them."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from gristmill.puzzles.config import KINDS
from tests.paths import CHECKOUT
from tests.puzzles import arc_tasks, grids, sudoku
from tests.puzzles.builders.test_arc import digests
from tests.puzzles.plain_mazes import maze, write_csv

BUILD = """
import sys
from pathlib import Path

from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig

if __name__ == "__main__":
    root, out, workers = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    names = sys.argv[4:]

    def sources(kind: str) -> list[Path]:
        return [root / kind / name for name in names]

    build_arc(sources("arc"), out / "arc", ArcConfig(num_aug=5, workers=workers))
    build_sudoku(sources("sudoku"), out / "sudoku", SudokuConfig(num_aug=3, workers=workers))
    build_maze(sources("maze"), out / "maze", MazeConfig(aug=True, workers=workers))
    build_domino(out / "domino", DominoConfig(num_games=60, num_aug=2, workers=workers))
    grids = GridConfig(values=4, dihedral=True, identifiers=True, workers=workers)
    build_grid(sources("grid"), out / "grid", grids)
"""


def write_sources(root: Path) -> None:
    """Two sources of each kind; the names are in another order than they are written in."""
    random = Random(1)
    pairs = sudoku.pairs(0, 8)
    arc_tasks.source(root / "arc/one")
    arc_tasks.write(root / "arc/two", {"training/dd": arc_tasks.task(9)})
    for number, name in enumerate(("two", "one")):
        here = pairs[4 * number : 4 * number + 4]
        sudoku.write_drop(root / "sudoku" / name, here[:3], here[3:])
        rows = [grids.row(10 * number + k, k, 3, puzzle=f"p{k}") for k in range(1, 4)]
        grids.write(root / "grid" / name / "train.jsonl", rows[:2])
        grids.write(root / "grid" / name / "test.jsonl", rows[2:])
        (root / "maze" / name).mkdir(parents=True)
        for split in ("train", "test"):
            rows = [maze(random, 6) for _ in range(3)]
            write_csv(root / "maze" / name / f"{split}.csv", rows)


def built(root: Path, out: Path, seed: str, workers: int, *names: str) -> dict[str, str]:
    """Digests of what a process of its own builds."""
    out.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", BUILD, str(root), str(out), str(workers), *names]
    subprocess.run(command, env=environment, check=True, cwd=CHECKOUT)
    return digests(out)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    """Two builds of all kinds, with other hash seeds, workers and orders of the sources."""
    folder = tmp_path_factory.mktemp("processes")
    write_sources(folder / "drops")
    return (
        built(folder / "drops", folder / "first", "1", 1, "one", "two"),
        built(folder / "drops", folder / "second", "4242", 2, "two", "one"),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_builds_of_two_processes_have_equal_digests(builds, kind):
    first, second = (
        {path: digest for path, digest in each.items() if path.startswith(f"{kind}/")}
        for each in builds
    )
    assert len(first) > 12
    assert first == second
