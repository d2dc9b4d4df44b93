"""The encoding of a kind: what the metadata must say, and which puzzles have no name.

Source: docs/formats/puzzles.md#contract, docs/formats/puzzles.md#identifiers
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from gristmill.contract import Violation
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import Encoding
from gristmill.puzzles.read.rows import Dataset

_MOST: Final = 24


def encoding_laws(dataset: Dataset, encoding: Encoding) -> Iterator[Violation]:
    """Yields numbers in the metadata of a dataset that are not those of its kind."""
    for split in names.SPLITS:
        metadata = dataset.metadata(split)
        for key, expected in asdict(encoding).items():
            if (found := getattr(metadata, key)) != expected:
                place = names.metadata(split)
                yield Violation("encoding", place, f"{key} is {found}, must be {expected}")


def unnamed_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields identifiers of a dataset whose puzzles have none."""
    if dataset.identifiers != [names.BLANK]:
        yield Violation("identifier", names.IDENTIFIERS, f"must hold {names.BLANK} alone")
    for split, set_name in dataset.sets():
        identifiers = dataset.arrays(split, set_name).puzzle_identifiers
        if identifiers.any():
            place = names.array(split, set_name, "puzzle_identifiers")
            first = (
                int(identifiers.argmax()) if identifiers.max() > 0 else int(identifiers.argmin())
            )
            yield Violation("identifier", f"{place} entry {first}", "must be 0, the blank one")
