"""Rated CSV files of mazes become a dataset.

The mazes are read once, into one file of tokens beside the parts; tasks name rows of it.
Source: docs/formats/puzzles.md#maze, docs/formats/puzzles.md#leaks
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.inbox.marks import not_samples
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset, scratch_folder
from gristmill.puzzles.config import MazeConfig
from gristmill.puzzles.domains.grid import (
    MAZE,
    SYMMETRIES,
    decoded,
    index_maps,
    maze_encoding,
    side_of,
)
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format import SET, SPLITS, Split
from gristmill.puzzles.format.dataset import Batch, Sets, SourceFile
from gristmill.puzzles.raw.drops import MAZE_FILES
from gristmill.puzzles.raw.file_forms import both_tables, labelled_folders, source_folders
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import threaded_map
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, has_file
from gristmill.untrusted.walk import list_files

_TASK_BYTES = 16 << 20
_MOST_NAMED: Final = 10


@dataclass(frozen=True)
class MazeSummary(DatasetSummary):
    """What was built."""

    duplicates_removed: int
    first_repeats: Mapping[str, int]
    leaks_dropped: int


@dataclass
class _Mazes:
    """The mazes of a split: number of their file, line, row of the file of tokens, and key."""

    files: list[int]
    lines: list[int]
    rows: list[int]
    keys: list[bytes]

    def origin(self, place: int, files: Sequence[SourceFile]) -> str:
        return f"{files[self.files[place]].path} line {self.lines[place]}"


@dataclass(frozen=True)
class _Task:
    """Some mazes of one split. origins: file and line, int32 [mazes, 2]. rows: of the tokens."""

    split: str
    origins: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]


def build_maze(
    csv_dir: Path | Sequence[Path],
    out: Path,
    config: MazeConfig | None = None,
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> MazeSummary:
    """Write the mazes of `train.csv` and `test.csv` as a dataset.

    csv_dir: the folder of the two files, or several folders, whose order does not matter.
    out: a folder that does not exist yet.
    config: default `MazeConfig()`.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the rows done.
    links: what happens to files that are links; default: they are refused.

    Raises BadInput with file and line for a maze that breaks a rule; for `train.csv` or `test.csv`
    that a folder lacks, or has packed, or in capitals; for a folder that is named twice; where a
    test maze is also a training maze up to symmetry and `config.leaks` is `refuse`; where a split
    has no maze.
    """
    config = config or MazeConfig()
    folders = labelled_folders(source_folders(csv_dir))
    for _, folder in folders:
        _refuse_sample(folder, links)
    with scratch_folder(out, parts) as scratch:
        path = scratch / "mazes.tokens"
        reader = _Reader(links)
        with path.open("wb") as tokens, progress.stage("read", "files", None) as stage:
            mazes: dict[Split, _Mazes] = {}
            for split in SPLITS:
                mazes[split] = reader.read(folders, split, tokens)
                stage.advance(1)
        train = _subsampled(mazes["train"], path, reader.length, config)
        kept, leaks = _without_leaks(mazes, train, reader.files, config)
        aug = SYMMETRIES if config.aug else 1
        plan = Plan(
            kind=MAZE,
            encoding=maze_encoding(side_of(reader.length) or 1),
            config=config,
            tasks=[
                *_tasks("train", mazes["train"], train, reader.length * aug),
                *_tasks("test", mazes["test"], kept, reader.length),
            ],
            make=_Make(path, reader.length, config.aug),
            files=reader.files,
            engine=threaded_map,
        )
        summary = build_dataset(plan, out, parts, progress)
    return MazeSummary(
        **vars(summary),
        duplicates_removed=reader.duplicates,
        first_repeats=reader.first_repeats,
        leaks_dropped=leaks,
    )


class _Reader:
    def __init__(self, links: LinkRule) -> None:
        self.files: list[SourceFile] = []
        self.length = 0
        self.duplicates = 0
        self.first_repeats: dict[str, int] = {}
        self._links = links
        self._rows = 0

    def read(self, folders: Sequence[tuple[str, Path]], split: Split, tokens: BinaryIO) -> _Mazes:
        """Read a split; each maze's input and label go to `tokens`. folders: with their names."""
        if not folders:
            raise BadInput(split, "is missing: a maze source needs it")
        mazes, seen = _Mazes([], [], [], []), set[bytes]()
        for label, folder in folders:
            listed = list_files(folder, root=folder, links=self._links, deep=False)
            path = both_tables(folder, [entry.name for entry in listed])[split]
            has_file(path, root=folder, links=self._links)  # it raises for a link
            self._read_file(path, label, tokens, mazes, seen)
        return mazes

    def _read_file(
        self, path: Path, label: str, tokens: BinaryIO, mazes: _Mazes, seen: set[bytes]
    ) -> None:
        from gristmill.puzzles.domains.maze_paths import canonical
        from gristmill.puzzles.raw.tables import read_mazes

        digest = hashlib.sha256()
        for read in read_mazes(
            path, length=self.length or None, links=self._links, see=digest.update
        ):
            self.length = read.inputs.shape[1]
            tokens.write(np.stack([read.inputs, read.labels], axis=1).data)
            keys = canonical(read.inputs)
            for row, (line, key) in enumerate(zip(read.lines.tolist(), keys, strict=True)):
                if key in seen:
                    self.duplicates += 1
                    self.first_repeats.setdefault(f"{label}/{path.name}", line)
                    continue
                seen.add(key)
                mazes.files.append(len(self.files))
                mazes.lines.append(line)
                mazes.rows.append(self._rows + row)
                mazes.keys.append(key)
            self._rows += len(keys)
        self.files.append(SourceFile(f"{label}/{path.name}", digest.hexdigest()))


def _refuse_sample(folder: Path, links: LinkRule) -> None:
    """Raise BadInput where one of the two files is of a sample, and the other one is real."""
    listed = list_files(folder, root=folder, links=links, deep=False)
    names = [entry.name for entry in listed]
    if left := not_samples(folder, filter(MAZE_FILES.__contains__, names)):
        rule = "is of a sample, and the other file is real: bring the real one"
        raise BadInput(folder / min(left), rule)


def _rows(path: Path, length: int) -> npt.NDArray[np.uint8]:
    """The file of tokens, mapped: uint8 [mazes, 2, length]."""
    return np.memmap(path, np.uint8, "r").reshape(-1, 2, length)


def _subsampled(mazes: _Mazes, path: Path, length: int, config: MazeConfig) -> list[int]:
    """Places of the training mazes to take, in order."""
    places = list(range(len(mazes.keys)))
    if config.subsample_size is None or config.subsample_size >= len(places):
        return places
    tokens = _rows(path, length)
    keys = [
        source_key(config.seed, f"{MAZE}:subsample", "".join(decoded(tokens[row, 0])))
        for row in mazes.rows
    ]
    return sorted(places, key=lambda place: (keys[place], place))[: config.subsample_size]


def _without_leaks(
    mazes: Mapping[Split, _Mazes],
    train: Sequence[int],
    files: Sequence[SourceFile],
    config: MazeConfig,
) -> tuple[list[int], int]:
    """Places of the test mazes that training does not have, and how many it has."""
    trained = {mazes["train"].keys[place]: place for place in train}
    test = mazes["test"]
    leaks = [place for place, key in enumerate(test.keys) if key in trained]
    if leaks and config.leaks == "refuse":
        named = [
            f"{test.origin(place, files)} is"
            f" {mazes['train'].origin(trained[test.keys[place]], files)}"
            for place in leaks[:_MOST_NAMED]
        ]
        more = ", ..." if len(leaks) > _MOST_NAMED else ""
        rule = (
            f"{len(leaks)} mazes of the test split are also in the training split, up to symmetry:"
            f" {', '.join(named)}{more}; leaks = drop leaves them out"
        )
        raise BadInput(MAZE, rule)
    left_out = set(leaks)
    return [place for place in range(len(test.keys)) if place not in left_out], len(leaks)


def _tasks(
    split: str, mazes: _Mazes, places: Sequence[int], tokens: int
) -> list[tuple[str, _Task]]:
    """tokens: of an input and its augmentations."""
    step = max(1, _TASK_BYTES // (2 * tokens))
    tasks = []
    for begin in range(0, len(places), step):
        chosen = places[begin : begin + step]
        origins = np.array([(mazes.files[k], mazes.lines[k]) for k in chosen], np.int32)
        rows = np.array([mazes.rows[k] for k in chosen], np.int64)
        tasks.append((f"{split}-{begin:09d}", _Task(split, origins, rows)))
    return tasks


@dataclass(frozen=True)
class _Make:
    path: Path
    length: int
    aug: bool

    def __call__(self, task: _Task) -> Mapping[Sets, Batch]:
        tokens = _rows(self.path, self.length)[task.rows]
        turned = SYMMETRIES if self.aug and task.split == "train" else 1
        if turned > 1:
            cells = index_maps(side_of(self.length) or 1)
            tokens = tokens[:, :, cells].transpose(0, 2, 1, 3).reshape(-1, 2, self.length)
        origins = np.empty((len(tokens), 3), np.int32)
        origins[:, :2] = np.repeat(task.origins, turned, axis=0)
        origins[:, 2] = np.tile(np.arange(turned), len(task.rows))
        groups = np.full(len(task.rows), turned, np.int32)
        examples = np.ones(len(tokens), np.int32)
        inputs, labels = (np.ascontiguousarray(tokens[:, side]) for side in (0, 1))
        return {(task.split, SET): Batch(inputs, labels, origins, examples, groups)}
