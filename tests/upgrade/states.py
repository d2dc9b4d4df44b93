"""States of loaders and readers: `python states.py write|resume DATA FILE`.

`write` reads a few batches of each, and writes the state and the digests of the batches that come
next; `resume` begins with the states, and prints where its batches are others. Each is run with
the code of one version on PYTHONPATH.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.loading import Loader, read_mix
from gristmill.puzzles import PuzzleDataset, PuzzleDatasetConfig
from gristmill.reasoning import ShardReader

SOURCES: Final = {
    "macroxue/packs/sample_d6": "",
    "macroxue/pools/samples": 'held_out = 0.2\nside = "train"',
    "macroxue/pools/of_deleted": "",
    "chess/dataset/elite_2024-01_game": 'split = "train"',
    "megatron/synth_kd_v1": 'split = "train"',
    "megatron/chat/talks__00": 'split = "train"\nseq_len = 64',
    "distill/synth/02": 'split = "train"',
    "reasoning/tokenized/gpt2": 'splits = ["train"]',
    "reasoning/tokens/mine": 'splits = ["train"]',
    "puzzles/arc-sample": "groups = true",
    "puzzles/sudoku-sample": "",
}
BEFORE, AFTER = 2, 2


class _Loader:
    """A loader with the methods that the readers have."""

    def __init__(self, data: Path, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mix.toml"
            file.write_text(text)
            self._loader = Loader(read_mix(file, data), 4, form="numpy")
        self.state, self.resume = self._loader.state_dict, self._loader.load_state_dict

    def batches(self) -> Iterator[Any]:
        return iter(self._loader)


class _Shards:
    def __init__(self, data: Path, seed: int | None) -> None:
        reader = ShardReader(data / "reasoning/tokenized/gpt2", splits=["train"], seed=seed)
        self.state, self.resume = reader.state, reader.load_state
        self.batches: Callable[[], Iterable[Any]] = lambda: reader.batches(1)


class _Puzzles:
    def __init__(self, data: Path, split: str) -> None:
        config = PuzzleDatasetConfig(
            seed=5,
            dataset_path=str(data / "puzzles/sudoku-sample"),
            global_batch_size=2,
            test_set_mode=split == "test",
            epochs_per_iter=2,
            rank=0,
            num_replicas=1,
        )
        reader = PuzzleDataset(config, split)
        self.state, self.resume = reader.state_dict, reader.load_state_dict
        self.batches: Callable[[], Iterable[Any]] = lambda: reader


def readers() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """Names, and what opens each on a data root."""
    for path, keys in SOURCES.items():
        text = f'seed = 7\nwindow = 2\n[source.one]\npath = "{path}"\nepochs = 3\n{keys}\n'
        yield f"loader of {path}", lambda data, text=text: _Loader(data, text)  # type: ignore[misc]
    mixed = "".join(
        f'[source.d{n}]\npath = "macroxue/packs/sample_d{n}"\nepochs = {n / 4}\n' for n in (6, 7)
    )
    yield "loader of a mixture", lambda data: _Loader(data, f"seed = 7\n{mixed}")
    for seed in (None, 3):
        yield f"ShardReader, seed {seed}", lambda data, seed=seed: _Shards(data, seed)  # type: ignore[misc]
    for split in ("train", "test"):
        yield f"PuzzleDataset, {split}", lambda data, split=split: _Puzzles(data, split)  # type: ignore[misc]


def digest(value: Any) -> str:
    """Of all arrays and other values of a batch."""
    found = hashlib.sha256()

    def add(part: Any) -> None:
        if isinstance(part, dict):
            for name in sorted(part):
                add(name), add(part[name])
        elif isinstance(part, tuple | list):
            for each in part:
                add(each)
        else:
            array = np.asarray(part)
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(array.tobytes())

    add(value)
    return found.hexdigest()


def main(action: str, data: Path, file: Path) -> None:
    kept: dict[str, Any] = {} if action == "write" else json.loads(file.read_text())
    for name, opened in readers():
        reader = opened(data)
        if action == "resume":
            reader.resume(kept[name]["state"])
            found = [digest(each) for each in islice(reader.batches(), AFTER)]
            if found != kept[name]["next"]:
                sys.stdout.write(f"{name}: other batches\n")
            continue
        batches = iter(reader.batches())
        for _ in islice(batches, BEFORE):
            pass
        state = json.loads(json.dumps(reader.state()))
        kept[name] = {"state": state, "next": [digest(each) for each in islice(batches, AFTER)]}
        assert len(kept[name]["next"]) == AFTER, name
    file.write_text(json.dumps(kept))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
