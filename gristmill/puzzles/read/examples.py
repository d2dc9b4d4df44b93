"""The examples of a split by number, for a data loader; where each came from; their history.

A trace leads from an example to its raw file, the row in it, and the augmentation of that row.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Request
from gristmill.hashing import kept
from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading.bijection import Numbers
from gristmill.loading.past import Past
from gristmill.loading.source import Columns, Grouped, Source, identity_of, only
from gristmill.provenance import RECORD, Record
from gristmill.provenance.trace_inputs import Origin, source
from gristmill.puzzles import format as names
from gristmill.puzzles.format.dataset import SourceFile, Sources
from gristmill.puzzles.read.dataset import SplitReader, batch_of, owners_of
from gristmill.puzzles.read.rows import Dataset
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.sample_numbers import number_of, numbers_of
from gristmill.reading.torch_batch import ColumnBatch, Row
from gristmill.untrusted.lines import line_places, reads

_ASSET: Final = "puzzles"
"""All kinds have the same arrays; data versions tell them apart."""

__all__ = ["PuzzleExamples", "StaleDataset", "trace"]


class PuzzleExamples(SplitReader):
    """Random access to the examples of one split: all sets in their order, row by row.

    folder: the folder with `train` and `test`.
    split: "train" (default) or "test".
    verify: how much is compared with the record: "none", "sizes" (the default) or "hash".

        DataLoader(PuzzleExamples(folder), batch_size=768, shuffle=True, num_workers=2)

    An example has `inputs` and `labels` [seq_len] and `puzzle_identifiers`, a number, as int32
    tensors; those of a data loader are stacked. Labels equal to `ignore_label_id` are -100. Every
    example counts once: `PuzzleDataset` takes one puzzle of each group at a time instead.

    Token arrays are mapped into memory. A folder without a record, as the original builders make
    it, can be read too.

    Raises BadInput where a file is missing or damaged, StaleDataset where another version is
    published than was opened, ValueError for another split or level.
    """

    def __init__(
        self, folder: Path | str, split: str = "train", *, verify: Verify | bool = "sizes"
    ) -> None:
        self._place(folder, split)
        self.start(verify)
        self._ends = np.cumsum([made.examples for made in self.held.sets], dtype=np.int64)

    def __len__(self) -> int:
        """Number of examples."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: int) -> Row:
        """One example as tensors; a negative number counts from the end. Raises as `batch`."""
        return self.__getitems__([number_of(number, len(self), "example")])[0]

    def __getitems__(self, numbers: Sequence[int]) -> ColumnBatch:
        """Examples by number as one batch; a data loader of torch calls it.

        Negative numbers count from the end. Raises as `batch`.
        """
        import torch

        columns = self._columns(numbers_of(numbers, len(self), "example"))
        return ColumnBatch({name: torch.from_numpy(column) for name, column in columns.items()})

    def batch(self, numbers: Sequence[int] | npt.NDArray[np.integer]) -> dict[str, Any]:
        """Examples by number, in any order, as new int32 arrays.

        numbers: [N], from 0 up to the number of examples.

        Returns inputs and labels [N, seq_len] and puzzle_identifiers [N]. Raises IndexError for a
        number outside, TypeError for anything but integers.
        """
        return self._columns(numbers_of(numbers, len(self), "example", from_end=False))

    def source(self, *, groups: bool = False) -> Source:
        """The examples by number, for `gristmill.loading`; columns as `batch`.

        groups: one example of each group an epoch, drawn in each, as `PuzzleDataset` has one
            puzzle of each; default every example once.

        Raises GristmillError for a folder without a record.
        """
        from gristmill.loading.source import Grouped

        own = ExampleSource(self)
        return Grouped(own, own.group_bounds) if groups else own

    def _columns(self, wanted: npt.NDArray[np.int64]) -> dict[str, Any]:
        set_of = np.searchsorted(self._ends, wanted, "right")
        places, found = [], []
        for number, made in enumerate(self.held.sets):
            place = np.flatnonzero(set_of == number)
            rows = wanted[place] - (self._ends[number] - made.examples)
            places.append(place)
            found.append(batch_of(made, self.metadata, rows, owners_of(made, rows), len(rows)))
        if len(found) == 1:
            return found[0]
        back = np.argsort(np.concatenate(places))
        return {name: np.concatenate([each[name] for each in found])[back] for name in found[0]}


class ExampleSource:
    """Examples by number over all sets of a split, one shard a set."""

    def __init__(self, data: PuzzleExamples) -> None:
        self._data = data
        self.identity = identity_of(_ASSET, data.generations, data.split)
        ends = np.cumsum([made.examples for made in data.held.sets])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    @property
    def group_bounds(self) -> Numbers:
        """The first example of each group of each set, and the number of all."""
        firsts = [
            first + made.puzzle_indices[made.group_indices[:-1]].astype(np.int64)
            for first, made in zip(self.cuts.tolist(), self._data.held.sets, strict=False)
        ]
        return np.concatenate([*firsts, self.cuts[-1:]])

    def read(self, numbers: Numbers) -> Columns:
        """Inputs, labels and puzzle_identifiers, int32."""
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The example."""
        place = int(np.searchsorted(self.cuts, number, "right")) - 1
        row, name = number - int(self.cuts[place]), self._data.held.sets[place].name
        options = {"split": self._data.split, "set": name}
        yield Request(self._data.generations[0].folder, str(row), options)

    def origin(self, number: int) -> Iterator[contract.Trace]:
        """The raw row of an example, and what was done with it."""
        for request in self.shown(number):
            yield from traced_example(request)


def opened(
    folders: Sequence[Path], *, split: Literal["train", "test"] = "train", groups: bool = False
) -> Source:
    """A dataset as a source; arguments as `PuzzleExamples` and its `source`."""
    return PuzzleExamples(only(folders), split).source(groups=groups)


@dataclass(frozen=True)
class Example:
    """One example: its numbers, its tokens and those of the first of its group, its origin."""

    split: str
    set_name: str
    row: int
    group: int
    puzzle: int
    identifier: int
    name: str
    inputs: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    file: SourceFile | None
    source_row: int
    draw: int


def example(data: Dataset, split: str, set_name: str, row: int) -> Example:
    """Read an example. Arguments and errors as for `trace`."""
    if split not in names.SPLITS:
        raise BadInput(data.folder, f"has no split {split!r}: it is train or test")
    if set_name not in (sets := data.metadata(split).sets):
        rule = f"has no set {set_name!r} in {split}: it has {', '.join(sets)}"
        raise BadInput(data.folder, rule)
    arrays = data.arrays(split, set_name)
    path, count = data.folder / names.array(split, set_name, "inputs"), len(arrays.inputs)
    if not 0 <= row < count:
        raise BadInput(path, f"has {count:,} examples, no example {row:,}; they count from 0")
    puzzle = int(np.searchsorted(arrays.puzzle_indices, row, side="right")) - 1
    group = int(np.searchsorted(arrays.group_indices, puzzle, side="right")) - 1
    in_range = 0 <= puzzle < len(arrays.puzzle_identifiers)
    begin = int(arrays.group_indices[group]) if in_range and group >= 0 else -1
    if not 0 <= begin <= puzzle:
        rule = f"example {row} belongs to no puzzle or to no group: the index arrays are damaged"
        raise BadInput(path, rule)
    identifier, listed = int(arrays.puzzle_identifiers[puzzle]), data.identifiers
    if not 0 <= identifier < len(listed):
        rule = f"has {len(listed)} names, none for identifier {identifier}"
        raise BadInput(data.folder / names.IDENTIFIERS, rule)
    path = data.folder / names.origins(split, set_name)
    if arrays.origins is None:
        raise BadInput(path, "is missing: the dataset was not built here, and has no trace")
    file, source_row, draw = arrays.origins[row].tolist()
    files = data.sources.files
    if not -1 <= file < len(files):
        raise BadInput(path, f"names file {file} of {len(files)} in {names.SOURCES}", row)
    first = min(max(int(arrays.puzzle_indices[begin]), 0), count - 1)
    place = (split, set_name, row, group, puzzle, identifier, listed[identifier])
    tokens, of_first = (arrays.inputs[at].astype(np.int64) for at in (row, first))
    origin = files[file] if file >= 0 else None
    return Example(*place, tokens, of_first, origin, source_row, draw)


SYMMETRIES: Final = (
    "as it is",
    "rotated by 90° counter-clockwise",
    "rotated by 180°",
    "rotated by 270° counter-clockwise",
    "mirrored left and right",
    "mirrored up and down",
    "transposed",
    "transposed along the other diagonal",
)
"""What the symmetries 0 to 7 do, in words."""


_PLACES: Final = {"arc": "pair {} in the order of the file", "domino": "game {}"}
"""How the row of a source is named; it is a line of other files."""


def trace(folder: Path, row: int, split: str = "train", set_name: str = names.SET) -> Origin:
    """Trace an example.

    folder: of the dataset. row: of the example in its set, from 0.
    split: `train` (default) or `test`. set_name: default `all`.

    Gives its split, set and row; group and puzzle, numbered in the set from 0; the number and the
    name of its identifier; path and sha256 of the file, or that it is generated; the line of the
    file (from 1), pair of the task (from 0) or game (from 0); the number of the draw, 0 for the
    source itself, and what that did. Raises BadInput where there is no such example, or the dataset
    has no trace.
    """
    data = Dataset(folder)
    return Origin(_facts(data, example(data, split, set_name, row)))


def _facts(data: Dataset, found: Example) -> dict[str, object]:
    kind, file = data.sources.kind, found.file
    place = _PLACES.get(kind, "line {}" if file else "number {}")
    return {
        "example": f"{found.split} {found.set_name} {found.row}",
        "group": found.group,
        "puzzle": found.puzzle,
        "identifier": f"{found.identifier} {found.name}",
        **({"source": file.path, "sha256": file.sha256} if file else {"source": "generated"}),
        "place": place.format(found.source_row),
        "augmentation": found.draw,
        **parameters(data.sources, found),
    }


def parameters(sources: Sources, found: Example) -> dict[str, object]:
    """An augmentation in words, empty for none. Raises BadInput where it cannot be read."""
    of_kind = _BY_KIND.get(sources.kind)
    try:
        return of_kind(sources.config, found) if of_kind else {}
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, GristmillError) as error:
        where = f"{found.split} {found.set_name}"
        rule = f"the augmentation of example {found.row} cannot be read: {error}"
        raise BadInput(where, rule) from error


def _symmetry(number: int) -> str:
    return f"{number}: {SYMMETRIES[number]}"


def _arc(config: Mapping[str, Any], found: Example) -> dict[str, object]:
    from gristmill.puzzles.domains.arc_grid import decode, parse_id

    task, augmentation = parse_id(found.name)
    place = decode(found.inputs)
    first_cell = {"first cell": f"row {place.row}, column {place.column}"}
    # The id of the source may have `_`.
    task = str(found.file.facts.get("task", task)) if found.file else task
    if augmentation is None:
        return {"task": task, **first_cell}
    moved = [f"{old} to {new}" for old, new in enumerate(augmentation.colours) if str(old) != new]
    return {
        "task": task,
        "symmetry": _symmetry(augmentation.symmetry),
        "colours": ", ".join(moved) or "as they are",
        **first_cell,
    }


def _sudoku(config: Mapping[str, Any], found: Example) -> dict[str, object]:
    from gristmill.puzzles.domains.grid import text_of
    from gristmill.puzzles.domains.sudoku_symmetry import augmentation

    if not found.draw:
        return {}
    question = text_of(np.clip(found.first, 1, 10) - 1)
    done = augmentation(int(config["seed"]), question, found.draw)
    return {
        "transposed": "yes, first" if done.transposes else "no",
        "rows from": " ".join(map(str, done.rows)),
        "columns from": " ".join(map(str, done.columns)),
        "digits 1 to 9 become": " ".join(map(str, done.digits[1:])),
    }


def _turned(config: Mapping[str, Any], found: Example) -> dict[str, object]:
    return {"symmetry": _symmetry(found.draw)} if found.draw else {}


def _domino(config: Mapping[str, Any], found: Example) -> dict[str, object]:
    from gristmill.puzzles.domains.domino_augment import MODULAR, augmentation

    if not found.draw:
        return {}
    source = f"{found.split}:{found.source_row}"
    how = str(config["augmentation"])
    done = augmentation(int(config["seed"]), source, found.draw, how)
    if how == MODULAR:
        return {"added to values": f"{done.offset} modulo 7"}
    return {
        "chain": "turned round" if done.is_reversed else "as it is",
        "hand": "tiles of the slots " + " ".join(map(str, done.order)),
    }


_BY_KIND: Final[dict[str, Callable[..., dict[str, object]]]] = {
    "arc": _arc,
    "sudoku": _sudoku,
    "maze": _turned,
    "domino": _domino,
    "grid": _turned,
}


def traced_example(request: Request) -> list[contract.Trace]:
    """Trace the example of a request, with the raw file below the data root."""
    split, set_name = (request.options.get(name) for name in ("split", "set"))
    data = Dataset(request.path)
    found = example(data, split or "train", set_name or names.SET, request.number)
    return [Origin({**_facts(data, found), **_raw_file(data, found)})]


def _raw_file(data: Dataset, found: Example) -> Mapping[str, object]:
    """The raw file of an example below the data root, and whether it is still as it was."""
    if found.file is None or not (data.folder / RECORD).is_file():
        return {}
    published = source(data.folder)
    for item in published.raw_inputs():
        if item.sha256 == found.file.sha256 and f"/{item.path}".endswith(f"/{found.file.path}"):
            facts = published.raw_facts(item)
            if "raw_note" in facts or data.kind in _PLACES:
                return facts
            ends = 2 * found.source_row
            place = kept(_lines, published.root / str(item.path))[ends - 2 : ends]
            return {**facts, "raw_bytes": "-".join(map(str, place))} if place else facts
    return {}


def _lines(path: Path) -> array[int]:
    """Where each line of a raw file begins and ends, without its end."""
    with path.open("rb") as file:
        return array("q", chain.from_iterable(line_places(reads(file), path)))


_LINES: Final = ("sudoku", "maze", "grid")
"""Kinds whose source row is a line."""


def rows(folder: Path, _: Record) -> Iterator[Kept]:
    """A row for each group, by the name of its first puzzle: identifiers get other numbers."""
    data, before = Dataset(folder), dict[str, int]()
    files = [f"{DROPS}/puzzles/{each.path}" for each in data.sources.files]
    for split, set_name in data.sets():
        arrays, first = data.arrays(split, set_name), before.get(split, 0)
        for puzzle, after in pairwise(map(int, arrays.group_indices)):
            begin, end = (int(arrays.puzzle_indices[each]) for each in (puzzle, after))
            name = data.identifiers[int(arrays.puzzle_identifiers[puzzle])]
            tokens = np.stack([arrays.inputs[begin:end], arrays.labels[begin:end]])
            where, place = "", -1
            if arrays.origins is not None:
                file, place, _draw = arrays.origins[begin].tolist()
                where = files[file] if file >= 0 else ""
                place = place if data.kind in _LINES else -1
            own, at = "" if name == names.BLANK else name, first + begin
            yield Kept(split, own, tokens.tobytes(), where, place, -1, at, end - begin)
        before[split] = first + len(arrays.inputs)


def past(kept: Past, **options: Any) -> Source:
    """The examples of a dataset as `examples.opened` gives them."""
    own, split = kept.of(), f"{kept.identity.split}/"
    files = [each.path for each in kept.versions[0].record.outputs]
    own.shards = sum(each.startswith(split) and each.endswith("__inputs.npy") for each in files)
    return Grouped(own, np.append(own.firsts, own.cuts[-1:])) if options.get("groups") else own
