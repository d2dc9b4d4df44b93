"""What the code of an older version leaves, run with that code on PYTHONPATH.

`python old_world.py build FOLDER VOCABULARIES` writes what `SampleRoot` builds of the samples, a
pool whose members were deleted, a failed run, a mirror, and states of readers, each with digests of
the batches that follow. With the code of now, `python old_world.py resume FOLDER` begins with
these states, and prints the readers that give other batches.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.loading import Loader, read_mix
from gristmill.macroxue.samples import write_drop
from gristmill.puzzles import PuzzleDataset, PuzzleDatasetConfig
from gristmill.reasoning import ShardReader
from tests.sample_root import SampleRoot

MEMBERS: Final = ("member_1", "member_2")
POOL: Final = "of_deleted"
BROKEN: Final = "broken"

SOURCES: Final = {
    "macroxue/packs/sample_d6": "",
    "macroxue/pools/samples": 'held_out = 0.2\nside = "train"',
    f"macroxue/pools/{POOL}": "",
    "chess/dataset/elite_2024-01_game": 'split = "train"',
    "megatron/synth_kd_v1": 'split = "train"',
    "megatron/chat/talks__00": 'split = "train"\nseq_len = 64',
    "distill/synth/02": 'split = "train"',
    "reasoning/tokenized/gpt2": 'splits = ["train"]',
    "reasoning/tokens/mine": 'splits = ["train"]',
    "puzzles/arc-sample": "groups = true",
    "puzzles/sudoku-sample": '[source.two]\nepochs = 0.5\npath = "puzzles/maze-sample"',
}
"""Sources of a loader, and the other lines of their mix files. The last one is a mixture."""

_EACH: Final = 2  # batches before a state, and after it


def build(folder: Path, vocabularies: Path) -> None:
    """Fill `folder` with `data`, `home` of the instance, `mirror`, and `states.json`."""
    root = SampleRoot.build(folder, vocabularies)
    drops = root.data / "drops"
    for seed, name in enumerate((*MEMBERS, BROKEN), 1):
        write_drop(drops / "macroxue" / name, seed, games=2, max_moves=20, depth=6)
        (drops / "macroxue" / name / ".done").touch()
    for steps in (drops / "macroxue" / BROKEN).glob("*.jsonl.gz"):
        steps.write_bytes(b"no gzip")
    text = f"members = {list(MEMBERS)}\ndelete_members = true\n"
    (drops / "pools" / f"{POOL}.toml").write_text(text)
    try:
        root.command("materialize", "macroxue/pack", "macroxue/values", "macroxue/pool")
    except AssertionError as failed:
        assert f"failed macroxue/pack {BROKEN}" in str(failed), failed
    assert not (root.data / "macroxue/packs" / MEMBERS[0]).exists()
    root.command("push", str(folder / "mirror"))
    kept = {}
    for name, read, state, _ in _readers(root.data):
        batches = iter(read())
        _digests(batches)
        kept[name] = {"state": state(), "next": _digests(batches)}
        assert len(kept[name]["next"]) == _EACH, name
    (folder / "states.json").write_text(json.dumps(kept))


def resume(folder: Path) -> None:
    """Print the readers that give other batches after the states of `build`."""
    kept = json.loads((folder / "states.json").read_text())
    for name, read, _, load in _readers(folder / "data"):
        load(kept[name]["state"])
        if _digests(read()) != kept[name]["next"]:
            sys.stdout.write(f"{name}: other batches\n")


_Reader = tuple[str, Callable[[], Iterable[Any]], Callable[[], Any], Callable[[Any], None]]


def _readers(data: Path) -> Iterator[_Reader]:
    """The name of each reader, its batches, what gives its state, and what takes one."""
    for path, lines in SOURCES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(
                f'seed = 7\nwindow = 2\n[source.one]\nepochs = 3\npath = "{path}"\n{lines}\n'
            )
            file.flush()
            loader = Loader(read_mix(Path(file.name), data), 4, form="numpy")
        yield path, loader.__iter__, loader.state_dict, loader.load_state_dict
    shards = ShardReader(data / "reasoning/tokenized/gpt2", splits=["train"], seed=3)
    yield "ShardReader", partial(shards.batches, 1), shards.state, shards.load_state
    config = PuzzleDatasetConfig(
        seed=5,
        dataset_path=str(data / "puzzles/sudoku-sample"),
        global_batch_size=2,
        test_set_mode=False,
        epochs_per_iter=2,
        rank=0,
        num_replicas=1,
    )
    puzzles = PuzzleDataset(config)
    yield "PuzzleDataset", puzzles.__iter__, puzzles.state_dict, puzzles.load_state_dict


def _digests(batches: Iterable[Any]) -> list[str]:
    some = islice(batches, _EACH)
    return [hashlib.sha256(b"".join(_bytes(batch))).hexdigest() for batch in some]


def _bytes(value: Any) -> Iterator[bytes]:
    """Of all names and arrays of a batch."""
    if isinstance(value, dict):
        value = sorted(value.items())
    if isinstance(value, tuple | list):
        for part in value:
            yield from _bytes(part)
    else:
        array = np.asarray(value)
        yield f"{array.dtype.str}{array.shape}".encode() + array.tobytes()


if __name__ == "__main__":
    {"build": build, "resume": resume}[sys.argv[1]](*map(Path, sys.argv[2:]))
