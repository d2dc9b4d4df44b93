"""The base of the builders: a plan of tasks becomes a dataset of the contract."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.provenance import config_fields
from gristmill.puzzles import format as names
from gristmill.puzzles.format.dataset import (
    Batch,
    Encoding,
    PartBatches,
    PuzzleDatasetMetadata,
    SetFiles,
    Sets,
    SourceFile,
    Sources,
    write_part,
)
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import Engine, ordered_map

Task = TypeVar("Task")

MOST_EXAMPLES = 2**31 - 1
"""Of a set: the index arrays are int32."""
_ONE_SET = ("all",)


@dataclass(frozen=True)
class Plan(Generic[Task]):
    """What a builder has to say.

    kind: name of the kind of puzzle, as `sudoku`.
    encoding: numbers that all examples share.
    config: the builder's config, with the fields `dtype` ("int32" or "uint8") and `workers`.
    tasks: name and task, in the order of the dataset. A name stands for one content: it is the key
        of a finished part. A task covers sources whose batches take some 8 to 64 MB.
    make: returns the batches of a task by split and set. It is pure: a task gives the same batches
        in any thread and process.
    files: the files that the origins number.
    sets: names of the sets of each split, in the order of training (default: `all`).
    first_identifier: number of the first name; those before it are blank (default 1).
    num_puzzle_identifiers: what the metadata states; the names from the last one on are blank.
        Default: one more than the last identifier.
    engine: what runs `make`: processes (the default), for which it must pickle, or threads, for a
        `make` that spends its time in compiled functions, since a process takes a second to start.
    """

    kind: str
    encoding: Encoding
    config: Any
    tasks: Sequence[tuple[str, Task]]
    make: Callable[[Task], Mapping[Sets, Batch]]
    files: Sequence[SourceFile] = ()
    sets: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: dict.fromkeys(names.SPLITS, _ONE_SET)
    )
    first_identifier: int = 1
    num_puzzle_identifiers: int | None = None
    engine: Engine = ordered_map


@dataclass(frozen=True)
class DatasetSummary(Summary):
    """What was built; the summary of a builder adds its own counts."""

    examples: Mapping[str, int]
    puzzles: Mapping[str, int]
    groups: Mapping[str, int]
    identifiers: int
    augmented: int


def build_dataset(
    plan: Plan[Any], out: Path, parts: PartStore | None = None, progress: Progress = SILENT
) -> DatasetSummary:
    """Build a dataset in `out`, a folder that does not exist yet.

    plan: what to build.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the rows done.

    Raises BadInput where a split would have no example; ValueError where batches break the
    encoding; WorkerDied and what `plan.make` raises.
    """
    if plan.encoding.blank_identifier_id != 0:
        raise ValueError("the blank identifier must be 0, the first entry of identifiers.json")
    held = np.iinfo(plan.config.dtype)
    if plan.encoding.vocab_size - 1 > held.max:
        raise ValueError(f"{plan.config.dtype} cannot hold {plan.encoding.vocab_size} tokens")
    ignored = plan.encoding.ignore_label_id
    if ignored is not None and not held.min <= ignored <= held.max:
        raise ValueError(f"{plan.config.dtype} cannot hold the label {ignored}, which is ignored")
    if len({name for name, _ in plan.tasks}) != len(plan.tasks):
        raise ValueError("two tasks have the same name")
    out.mkdir()
    for split in names.SPLITS:
        (out / split).mkdir()
        (out / "trace" / split).mkdir(parents=True)
    store = parts or PartStore(out / ".parts")
    store.folder.mkdir(parents=True, exist_ok=True)
    try:
        made = _parts(plan, store, out, progress)
        return _joined(plan, out, made, progress)
    finally:
        if parts is None:
            for path in store.folder.iterdir():
                path.unlink()
            store.folder.rmdir()


@contextmanager
def scratch_folder(out: Path, parts: PartStore | None) -> Iterator[Path]:
    """A folder for what is read once, beside the dataset or the parts; removed at the end."""
    place = parts.folder if parts is not None else out.parent
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=place) as name:
        yield Path(name)


@dataclass(frozen=True)
class _Make:
    plan: Plan[Any]

    def __call__(self, task: Any, path: Path) -> dict[str, Any]:
        batches = self.plan.make(task)
        for (split, set_name), batch in batches.items():
            if set_name not in self.plan.sets.get(split, ()):
                raise ValueError(f"{split} has no set {set_name}")
            _check_batch(batch, self.plan.encoding)
        return {
            **write_part(path, batches),
            "augmented": sum(
                int(np.count_nonzero(batch.origins[:, 2]))
                for (split, _), batch in batches.items()
                if split == "train"
            ),
        }


def _check_batch(batch: Batch, encoding: Encoding) -> None:
    most = encoding.vocab_size - 1
    for name, tokens in (("inputs", batch.inputs), ("labels", batch.labels)):
        if tokens.shape[1] != encoding.seq_len:
            raise ValueError(f"{name} have {tokens.shape[1]} tokens, not {encoding.seq_len}")
        if not tokens.size or 0 <= int(tokens.min()) <= int(tokens.max()) <= most:
            continue
        is_bad = (tokens < 0) | (tokens > most)
        if name == "labels" and encoding.ignore_label_id is not None:
            is_bad &= tokens != encoding.ignore_label_id
        if is_bad.any():
            raise ValueError(f"{name} have tokens outside of 0 to {most}")


def _parts(
    plan: Plan[Any], store: PartStore, out: Path, progress: Progress
) -> list[tuple[PartBatches, dict[str, Any]]]:
    # The tasks travel to the workers one by one, without the plan's own list of them.
    make = _Make(Plan(plan.kind, plan.encoding, None, (), plan.make, (), plan.sets))
    with progress.stage("parts", "files", len(plan.tasks)) as stage:
        made = []
        for _, path, summary in run_parts(
            make, plan.tasks, store, plan.config.workers, scratch=out, engine=plan.engine
        ):
            made.append((PartBatches(path, summary), summary))
            stage.advance(1)
    return made


def _joined(
    plan: Plan[Any],
    out: Path,
    made: Sequence[tuple[PartBatches, dict[str, Any]]],
    progress: Progress,
) -> DatasetSummary:
    batches = [part for part, _ in made]
    files: dict[str, FileNote] = {}
    identifiers: dict[str, int] = {names.BLANK: plan.encoding.blank_identifier_id}

    def identifier_of(name: str) -> int:
        return identifiers.setdefault(name, plan.first_identifier + len(identifiers) - 1)

    sets = {
        split: [
            SetFiles(out, (split, name), batches, plan.encoding.seq_len)
            for name in plan.sets[split]
        ]
        for split in names.SPLITS
    }
    for split in names.SPLITS:
        _check_sizes(plan, split, sets[split])
    total = sum(each.examples for split in names.SPLITS for each in sets[split])
    with (
        progress.stage("join", "rows", total) as stage,
        ThreadPoolExecutor(max(1, plan.config.workers)) as threads,
    ):
        writing = [
            threads.submit(write)
            for split in names.SPLITS
            for each in sets[split]
            for write in each.token_files(plan.config.dtype, stage.advance)
        ]
        for split in names.SPLITS:
            for each in sets[split]:
                files.update(each.write_indices(identifier_of))
        files.update(written.result() for written in writing)
    listed = _listed(plan, list(identifiers))
    for split in names.SPLITS:
        metadata = _metadata(plan, split, sets[split], len(listed))
        (out / names.metadata(split)).write_text(metadata.text())
    (out / names.IDENTIFIERS).write_text(json.dumps(listed))
    config = config_fields(plan.config, affecting_output=True)
    (out / names.SOURCES).write_text(Sources(plan.kind, config, plan.files).text())
    return DatasetSummary(
        files=files,
        examples={split: sum(each.examples for each in sets[split]) for split in names.SPLITS},
        puzzles={split: sum(each.puzzles for each in sets[split]) for split in names.SPLITS},
        groups={split: sum(each.groups for each in sets[split]) for split in names.SPLITS},
        identifiers=len(identifiers),
        augmented=sum(summary["augmented"] for _, summary in made),
    )


def _listed(plan: Plan[Any], found: list[str]) -> list[str]:
    """The content of `identifiers.json`. found: the names, the blank one first."""
    before = plan.first_identifier if len(found) > 1 else 1
    needed = before + len(found) - 1
    stated = plan.num_puzzle_identifiers or needed
    if stated < needed:
        raise BadInput(
            plan.kind,
            f"num_puzzle_identifiers = {stated}: the last puzzle has the identifier {needed - 1}:"
            f" set it to {needed} or more",
        )
    return [*[names.BLANK] * before, *found[1:], *[names.BLANK] * (stated - needed)]


def _check_sizes(plan: Plan[Any], split: str, sets: Sequence[SetFiles]) -> None:
    for name, each in zip(plan.sets[split], sets, strict=True):
        if not each.examples:
            raise BadInput(
                plan.kind, f"the set {name} of the split {split} would have no example: add sources"
            )
        if each.examples > MOST_EXAMPLES:
            raise BadInput(
                plan.kind,
                f"the set {name} of the split {split} would have {each.examples:,} examples, more"
                f" than int32 indices can count: take fewer augmentations",
            )


def _metadata(
    plan: Plan[Any], split: str, sets: Sequence[SetFiles], identifiers: int
) -> PuzzleDatasetMetadata:
    encoding = plan.encoding
    return PuzzleDatasetMetadata(
        pad_id=encoding.pad_id,
        ignore_label_id=encoding.ignore_label_id,
        blank_identifier_id=encoding.blank_identifier_id,
        vocab_size=encoding.vocab_size,
        seq_len=encoding.seq_len,
        num_puzzle_identifiers=identifiers,
        total_groups=sum(each.groups for each in sets),
        mean_puzzle_examples=sum(each.examples for each in sets)
        / sum(each.puzzles for each in sets),
        sets=tuple(plan.sets[split]),
        total_puzzles=sum(each.puzzles for each in sets),
    )
