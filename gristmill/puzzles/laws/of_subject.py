"""The laws of puzzles asked about a subject: its dataset is opened once for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from gristmill.contract import Violation
from gristmill.families import Subject
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
