"""Training examples of a dataset that another one of its kind tests with, up to symmetry.

Within one dataset the laws `leak` say it, and the symmetries are theirs. Examples are compared by
a number that no symmetry changes; where it is equal, the whole form decides.
Source: docs/leaks.md#puzzles
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.families import TestsSeen
from gristmill.provenance import Record
from gristmill.provenance.find_artifacts import Artifact, artifacts, readable
from gristmill.provenance.record import RECORD
from gristmill.puzzles import format as names
from gristmill.puzzles.domains import maze_paths
from gristmill.puzzles.domains.arc_grid import decode, flat
from gristmill.puzzles.domains.arc_kernels import canonical_pair
from gristmill.puzzles.domains.domino_augment import MODULAR
from gristmill.puzzles.domains.grid import CELLS, side_of
from gristmill.puzzles.domains.sudoku_symmetry import canonical_forms, invariants
from gristmill.puzzles.laws import games
from gristmill.puzzles.read.rows import Dataset, Integers, index_faults

_TOGETHER: Final = 4096
_Rows = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]
_Forms = Callable[[Integers, Integers], list[bytes]]
"""Takes inputs and labels of examples; returns forms that are equal up to symmetry alone.

A form has 8 bytes at least, or none for an example that breaks rules: that one is no other."""


def seen(root: Path, folder: Path, wanted: Collection[str] = ()) -> Iterator[TestsSeen]:
    """Yield what training of a dataset has of the test splits of others, or of those wanted."""
    every = {item.folder: record for item, record, _ in readable(artifacts(root / "puzzles"))}
    asset, own = every[folder].asset, Dataset(folder)
    rule = _rule(asset, own)
    tested = [
        _Tested(f"{record.partition}__test", dataset, rule)
        for place, record in every.items()
        if record.asset == asset and place != folder
        if not wanted or f"{record.partition}__test" in wanted
        for dataset in [Dataset(place)]
        if rule.compared and rule.compared == _rule(asset, dataset).compared
    ]
    trained = 0
    for name, rows, inputs, labels in _sources(own, "train") if tested else ():
        trained += len(rows)
        keys = rule.keys(inputs, labels)
        for each in tested:
            each.take(name, rows, inputs, labels, keys)
    for each in tested:
        yield TestsSeen(each.name, trained, len(each.keys), sorted(each.found))


def noted(record: Record, folder: Path) -> Iterator[Violation]:
    """Yield of which other datasets the training split has test examples, with the first one."""
    root = Artifact(folder.absolute(), folder.absolute() / RECORD).data_root(record)
    for each in seen(root, folder.absolute()) if root is not None else ():
        if each.places:
            yield Violation("tests_elsewhere", record.artifact, each.line)


@dataclass(frozen=True)
class _Rule:
    """How examples are compared where `compared` is equal and true: by keys, then forms."""

    compared: object
    forms: _Forms
    quick: Callable[[Integers], _Keys] | None = None

    def keys(self, inputs: Integers, labels: Integers) -> _Keys:
        """A number for each example, 0 for one that is not compared."""
        if self.quick is not None:
            return self.quick(inputs)
        heads = (int.from_bytes(form[:8], "little") for form in self.forms(inputs, labels))
        return np.fromiter(heads, np.uint64, len(inputs))


def _rule(asset: str, dataset: Dataset) -> _Rule:
    kind, width = asset.rpartition("/")[2], dataset.metadata("test").seq_len
    if kind == "sudoku":
        return _Rule(
            width == CELLS,
            lambda given, _: [form.tobytes() for form in canonical_forms(games.boards_of(given))],
            lambda given: invariants(games.boards_of(given)),
        )
    if kind == "maze":
        return _Rule(side_of(width) and width, lambda given, _: maze_paths.canonical(given))
    if kind == "domino":
        plain = MODULAR if dataset.kind is None else str(dataset.config.get("augmentation"))
        return _Rule(width, partial(_of_domino, plain))
    if kind == "arc":
        return _Rule(width, _of_arc)
    facts = [dataset.config[name] for name in ("height", "width", "alphabet", "values", "pad")]
    sides = (facts[0], facts[1])
    return _Rule(facts, partial(games.grid_marks, sides, bool(dataset.config["dihedral"])))


def _of_domino(kind: str, inputs: Integers, labels: Integers) -> list[bytes]:
    found = games.looked_at(inputs, labels, np.zeros(len(inputs), np.bool_), kind)[1]
    return [each.tobytes() if each else b"" for each in found]


def _of_arc(inputs: Integers, labels: Integers) -> list[bytes]:
    pairs = zip(inputs, labels, strict=True)
    arrays = flat([(decode(one).grid, decode(two).grid) for one, two in pairs])
    forms = (canonical_pair(*arrays, pair) for pair in range(len(inputs)))
    return [hashlib.blake2b(each.tobytes(), digest_size=16).digest() for each in forms]


class _Tested:
    """The test split of another dataset, and what training has of it so far."""

    def __init__(self, name: str, dataset: Dataset, rule: _Rule) -> None:
        self.name, self._rule, self._dataset = name, rule, dataset
        self.found: list[tuple[str, int, str, int]] = []
        self._sets = dataset.metadata("test").sets
        keys, places = [np.empty(0, np.uint64)], [np.empty((0, 2), np.int64)]
        for set_name, rows, inputs, labels in _sources(dataset, "test"):
            keys.append(rule.keys(inputs, labels))
            places.append(np.stack([np.full(len(rows), self._sets.index(set_name)), rows], 1))
        self.keys, self._places = np.concatenate(keys), np.concatenate(places)

    def take(self, name: str, rows: _Rows, inputs: Integers, labels: Integers, keys: _Keys) -> None:
        """Note which examples of training are test examples. name: of their set."""
        near = np.flatnonzero(np.isin(keys, self.keys) & (keys != 0))
        # Copies are known by their bytes: the form of a Sudoku takes a millisecond.
        for forms in (_bytes, self._rule.forms) if len(near) else ():
            wanted = self._places[np.isin(self.keys, keys[near])].tolist()
            named = [(self._sets[of], row) for of, row in wanted]
            arrays = [(self._dataset.arrays("test", its), row) for its, row in named]
            its_inputs = np.stack([each.inputs[row] for each, row in arrays])
            its_labels = np.stack([each.labels[row] for each, row in arrays])
            places = ((f"test/{its}", row) for its, row in named)
            known = dict(zip(forms(its_inputs, its_labels), places, strict=True))
            found = [known.get(form) for form in forms(inputs[near], labels[near])]
            for at, place in zip(near.tolist(), found, strict=True):
                if place is not None:
                    self.found.append((f"train/{name}", int(rows[at]), *place))
            near = near[[place is None for place in found]]
            if not len(near):
                return


def _bytes(inputs: Integers, labels: Integers) -> list[bytes]:
    return [row.tobytes() for row in np.concatenate([inputs, labels], 1).astype(np.int32)]


def _sources(dataset: Dataset, split: str) -> Iterator[tuple[str, _Rows, Integers, Integers]]:
    """Yield the examples that are no augmentations: set, rows, inputs and labels."""
    metadata = dataset.metadata(split)
    for name in metadata.sets:
        arrays = dataset.arrays(split, name)
        faults = [(field, found) for _, field, found in index_faults(arrays, metadata)]
        if arrays.inputs.shape[1] != metadata.seq_len:
            faults.append(("inputs", f"has {arrays.inputs.shape[1]} tokens a row"))
        for field, found in faults:
            path = dataset.folder / names.array(split, name, field)
            raise BadInput(path, f"{found}: build the dataset again")
        if arrays.origins is not None:
            rows = np.flatnonzero(arrays.origins[:, 2] == 0)
        else:
            puzzles, firsts = np.asarray(arrays.puzzle_indices, np.int64), arrays.group_indices[:-1]
            is_own = np.isin(np.arange(len(puzzles) - 1), firsts)
            rows = np.flatnonzero(np.repeat(is_own, np.diff(puzzles)))
        for first in range(0, len(rows), _TOGETHER):
            some = rows[first : first + _TOGETHER]
            yield name, some, arrays.inputs[some], arrays.labels[some]
