"""What 2048former demands of a dataset folder, of its two branches, and how it draws rows."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
KINDS = ("search", "tuple10", "tuple11")


def _shards(folder: Path, stem: str) -> list[Array]:
    """The shards of a stem. If there are numbered ones, the single file is not read."""
    found = sorted(folder.glob(f"{stem}-[0-9]*.npy")) or [folder / f"{stem}.npy"]
    return [np.load(path, mmap_mode="r") for path in found if path.exists()]


class Folder:
    """A dataset folder as master opens it. Raises AssertionError where a part is missing."""

    def __init__(self, folder: Path) -> None:
        for name in ("metadata.db", "valuation_types.json"):
            assert (folder / name).exists(), f"no dataset: {name}"
        self.path = folder
        self.shards = _shards(folder, "steps")
        assert self.shards, "no steps.npy"
        self.steps = np.concatenate(self.shards)
        with closing(sqlite3.connect(folder / "metadata.db")) as db:
            columns = {row[1] for row in db.execute("PRAGMA table_info(runs)")}
            count = next(name for name in ("steps", "num_steps", "num_moves") if name in columns)
            self.runs = dict(db.execute(f"SELECT id, {count} FROM runs"))
        names = json.loads((folder / "valuation_types.json").read_text())
        assert isinstance(names, list), "invalid literal for int()"
        self.ids = {name: number for number, name in enumerate(names)}
        assert set(np.unique(self.steps["run_id"]).tolist()) <= set(self.runs)

    def differences(self, kind: str, cutoff: int) -> Array:
        """What the fit of a kind is over: the negative differences of branches to the winner."""
        own = self.steps[self.steps["valuation_type"] == self.ids[kind]]
        found = []
        for row in own:
            values, winner = _values(row, kind), int(row["move_dir"])
            assert row["ev_legal"] >> winner & 1, "Winner branch marked illegal"
            for move in range(4):
                if move != winner and row["ev_legal"] >> move & 1:
                    difference = values[move] - values[winner]
                    failed = _failed(row, kind, values[move], cutoff)
                    if not failed and abs(difference) > (0.5 if kind == "search" else 1e-9):
                        found.append(difference)
        return np.array([each for each in found if each < 0])

    def targets(self) -> tuple[Array, int]:
        """Targets int64 [N, 4] and number of classes of the mode `macroxue_tokens`."""
        said = json.loads((self.path / "tokenizer.json").read_text())
        assert (said["tokenizer_type"], said["version"]) == ("macroxue_ev_advantage_v2", 2)
        assert set(KINDS) <= set(self.ids), "all three kinds must be named"
        bins, cutoff = said["num_bins"], said["search"]["failure_cutoff"]
        bin_names = [f"BIN_{number}" for number in range(bins)]
        assert said["vocab_order"] == ["ILLEGAL", "FAILURE", *bin_names, "WINNER"]
        targets = np.zeros((len(self.steps), 4), np.int64)
        of_id = {self.ids[kind]: kind for kind in KINDS}
        for row, target in zip(self.steps, targets, strict=True):
            kind, winner = of_id[int(row["valuation_type"])], int(row["move_dir"])
            edges, values = said[kind]["bin_edges"], _values(row, kind)
            assert len(edges) == bins + 1
            for move in range(4):
                if not row["ev_legal"] >> move & 1:
                    assert move != winner, "Winner branch marked illegal"
                elif move == winner:
                    target[move] = 2 + bins
                elif _failed(row, kind, values[move], cutoff):
                    target[move] = 1
                else:
                    difference = values[move] - values[winner]
                    is_zero = abs(difference) <= (0.5 if kind == "search" else 1e-9)
                    place = int(np.searchsorted(edges, difference, "right")) - 1
                    target[move] = 2 + (bins - 1 if is_zero else min(max(place, 0), bins - 1))
        return targets, bins + 3

    def values(self) -> Array:
        """The values beside the steps, as value-head-v2 joins them."""
        shards = _shards(self.path, "values")
        assert shards, (
            f"value_sidecar requested but no values.npy/values-*.npy found in {self.path}"
        )
        assert len(shards) == len(self.shards)
        for values, steps in zip(shards, self.shards, strict=True):
            assert len(values) == len(steps), "value shard has another number of rows"
            for row in (0, 1, -1):
                for name in ("run_id", "step_index"):
                    assert values[name][row] == steps[name][row], (row, name)
        assert sum(map(len, shards)) == sum(self.runs.values())
        return np.concatenate(shards)

    def annotations(self) -> dict[str, Array]:
        """The files of each stem of annotations, joined; each row is that of the steps."""
        assert json.loads((self.path / "annotation_manifest.json").read_text())["runs"]
        stems = ("annotations", "annotations-student", "annotations-value")
        found = {stem: np.concatenate(_shards(self.path, stem)) for stem in stems}
        for name in ("run_id", "step_index"):
            for stem in (stems[0], stems[2]):
                assert np.array_equal(found[stem][name], self.steps[name])
        assert found["annotations-student"].shape[:2] == (len(self.steps), 4)
        return found


def _values(row: Any, kind: str) -> list[float]:
    values = row["branch_evs"].astype(np.float64)
    return [float(value) for value in (np.rint(1000 * values) if kind == "search" else values)]


def _failed(row: Any, kind: str, value: float, cutoff: int) -> bool:
    return value - int(row["board_eval"]) < cutoff if kind == "search" else value <= 1e-9
