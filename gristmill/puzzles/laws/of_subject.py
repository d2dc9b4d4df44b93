"""The laws of puzzles asked about a subject, and notes on what is unusual but breaks no law."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.provenance import Record
from gristmill.puzzles.format.metadata import SourceFile, Sources, read_sources
from gristmill.puzzles.format.names import SOURCES
from gristmill.puzzles.read.rows import Dataset

Laws = Callable[[Dataset], Iterable[Violation]]


def of_dataset(laws: Laws, subject: Subject) -> Iterable[Violation]:
    """Yields what the dataset of a subject breaks of some laws."""
    return laws(_dataset(subject))


def of_trace(laws: Laws, subject: Subject) -> Iterable[Violation]:
    """Yields what a dataset breaks of the laws of its trace, which other programs do not write."""
    if subject.missing({SOURCES: "trace, draws of augmentations"}):
        return ()
    return laws(_dataset(subject))


def of_grids(laws: Laws, subject: Subject) -> Iterable[Violation]:
    """Yields what a dataset of grids breaks; without its config its sizes are not known."""
    if subject.missing({SOURCES: "rules of grids"}):
        return ()
    return laws(_dataset(subject))


def of_other(subject: Subject) -> Iterable[Violation]:
    """Says of a dataset of an unknown puzzle that nobody looks at the rules of the puzzle."""
    subject.left_out.append("rules of its puzzle: its files do not say which puzzle it is")
    return ()


def _dataset(subject: Subject) -> Dataset:
    """The dataset of a subject, with the workers of its config."""
    if "dataset" not in subject.opened:
        asked = subject.config.get("workers")
        # A record of a larger machine may name more than this one has.
        workers = min(asked, os.cpu_count() or 1) if type(asked) is int else 1
        subject.opened["dataset"] = Dataset(subject.folder, workers)
    dataset: Dataset = subject.opened["dataset"]
    return dataset


_NAMED: Final = 5
_REPEATED: Final = "repeat an earlier one of their split"
_AMBIGUOUS: Final = "have another number of solutions than one"


def puzzle_notes(folder: Path) -> Iterator[Violation]:
    """Yields what is unusual in the sources of a dataset, of which the check `noteworthy` warns."""
    try:
        sources = read_sources(folder / SOURCES)
    except BadInput as error:
        yield Violation("sources", error.file, error.rule)
        return
    if equal := equal_tasks(sources):
        named = ", ".join(f"{one} = {two}" for one, two in equal[:_NAMED])
        more = ", ..." if len(equal) > _NAMED else ""
        rule = f"{len(equal):,} tasks have the pairs of an earlier one: {named}{more}"
        yield Violation("equal_tasks", SOURCES, rule)


def equal_tasks(sources: Sources) -> list[tuple[str, str]]:
    """The ARC tasks that have the pairs of an earlier one, and that one: paths of their files.

    sources: of the dataset. None of another kind of puzzle is among them.
    """
    first_of: dict[str, str] = {}
    pairs = [
        (first_of.setdefault(str(file.facts["task_hash"]), _named(file)), _named(file))
        for file in sources.files
        if "task_hash" in file.facts
    ]
    return [(path, first) for first, path in pairs if path != first]


def _named(file: SourceFile) -> str:
    """The path of a file, and the task in it where the file has several."""
    return f"{file.path} {file.facts['task']}" if "task" in file.facts else file.path


def rows_left_out(record: Record, _: Path) -> Iterator[Violation]:
    """Yield which rows of tables or banks are left out, with their number and the first lines.

    ambiguous_puzzles: Sudokus with more than one solution, where `unique` is "drop".
    """
    for law, first, count, said in (
        ("repeated_puzzles", "first_repeats/", "duplicates_removed", _REPEATED),
        ("ambiguous_puzzles", "first_ambiguous/", "ambiguous_dropped", _AMBIGUOUS),
    ):
        lines = [
            f"{name.removeprefix(first)} line {line}"
            for name, line in record.counts.items()
            if name.startswith(first)
        ]
        # Of ARC `duplicates_removed` counts draws, and there are no such lines.
        if lines:
            rule = (
                f"{record.counts.get(count, 0):,} rows {said}, and are left out; the first of each "
                f"file: {', '.join(lines[:_NAMED])}"
            )
            yield Violation(law, SOURCES, rule)
