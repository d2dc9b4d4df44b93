"""The contract of every row, index and origin, and what the laws of all puzzles have in common.

Beside it: what augmentation leaves in place, and notes on what is unusual but breaks no law.
Source: docs/formats/puzzles.md#contract, docs/formats/puzzles.md#augmentation-law
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.laws import MOST, Few, or_unreadable
from gristmill.provenance import Record
from gristmill.puzzles import format as names
from gristmill.puzzles.domains.grid import KIND as GRID
from gristmill.puzzles.format import SOURCES
from gristmill.puzzles.format.dataset import (
    Encoding,
    PuzzleDatasetMetadata,
    SourceFile,
    Sources,
    read_sources,
)
from gristmill.puzzles.read.rows import Dataset, Integers, Rows, SetArrays, index_faults


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


_SHARED = (
    "pad_id",
    "ignore_label_id",
    "blank_identifier_id",
    "vocab_size",
    "seq_len",
    "num_puzzle_identifiers",
)
_DOMINO_BLANK = "<domino_game>"
"""What the original's Domino builder calls identifier 0, its only one."""
_OfRows = tuple[str, int, list[tuple[str, str]]]
"""Law, how many rows break it, and of the first ones the place and what is there."""
_TOKEN_TYPES = {"|u1": "uint8", "<i4": "int32"}
"""By NumPy's string, which names the order of the bytes, too."""
_TYPES_OF_OTHERS = {**_TOKEN_TYPES, "<i8": "int64"}
"""Of datasets without a trace: TRM writes augmented Sudokus as int64."""


Laws = Callable[[Dataset], Iterable[Violation]]


def guarded(
    laws: Laws, *, limited: bool = False
) -> Callable[[Dataset | Path], Iterator[Violation]]:
    """Laws of a dataset, or of its folder; what cannot be read breaks one, too.

    limited: whether the first 20 violations of each law are named; default False: all.
    """

    @wraps(laws)
    def of(dataset: Dataset | Path) -> Iterator[Violation]:
        dataset = Dataset.of(dataset)
        few = Few(str(dataset.folder), "{more:,} more violations")
        found = few.of(laws(dataset)) if limited else laws(dataset)
        return or_unreadable(found, str(dataset.folder))

    return of


@guarded
def contract_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what breaks the contract in a dataset, or in its folder, published or staged."""
    metadata = {split: dataset.metadata(split) for split in names.SPLITS}
    train = metadata["train"]
    for name in _SHARED:
        one, other = getattr(train, name), getattr(metadata["test"], name)
        if one != other:
            yield Violation("splits_agree", name, f"{one} in train, {other} in test")
    if not train.blank_identifier_id < train.num_puzzle_identifiers:
        yield Violation("identifiers", "blank_identifier_id", "is not an identifier")
    if not train.pad_id < train.vocab_size:
        yield Violation("tokens", "pad_id", "is not a token")
    yield from _identifiers(dataset.identifiers, train, dataset.kind is not None)
    for split, described in metadata.items():
        yield from or_unreadable(_split(dataset, split, described), split)


def _identifiers(
    listed: list[str], metadata: PuzzleDatasetMetadata, is_traced: bool
) -> Iterator[Violation]:
    if len(listed) != metadata.num_puzzle_identifiers:
        found = f"{len(listed)} names, but num_puzzle_identifiers {metadata.num_puzzle_identifiers}"
        yield Violation("identifiers", names.IDENTIFIERS, found)
    if listed[:1] != [names.BLANK] and (listed != [_DOMINO_BLANK] or is_traced):
        yield Violation("identifiers", names.IDENTIFIERS, f"must begin with {names.BLANK}")
    named = [name for name in listed if name != names.BLANK]
    if len(set(named)) != len(named):
        yield Violation("identifiers", names.IDENTIFIERS, "has a name twice")


def _split(dataset: Dataset, split: str, metadata: PuzzleDatasetMetadata) -> Iterator[Violation]:
    examples = puzzles = groups = 0
    for name in metadata.sets:
        arrays = dataset.arrays(split, name)
        for law, field, found in index_faults(arrays, metadata):
            yield Violation(law, names.array(split, name, field), found)
        for field in names.INDICES:
            if (dtype := getattr(arrays, field).dtype).str != "<i4":
                yield Violation(
                    "dtype", names.array(split, name, field), f"{dtype}, expected int32"
                )
        yield from _tokens(dataset, split, name, arrays, metadata)
        examples += len(arrays.inputs)
        puzzles += len(arrays.puzzle_identifiers)
        groups += len(arrays.group_indices) - 1
    place = names.metadata(split)
    if groups != metadata.total_groups:
        yield Violation("metadata", place, f"total_groups {metadata.total_groups}, not {groups}")
    # TRM writes groups for Sudokus and mazes; HRM writes nothing.
    allowed = {None, puzzles} | ({groups} if dataset.kind is None else set())
    if metadata.total_puzzles not in allowed:
        found_puzzles = f"total_puzzles {metadata.total_puzzles}, not {puzzles}"
        yield Violation("metadata", place, found_puzzles)
    mean = examples / puzzles if puzzles else 0.0
    if metadata.mean_puzzle_examples != mean:
        found_mean = f"mean_puzzle_examples {metadata.mean_puzzle_examples}, not {mean}"
        yield Violation("metadata", place, found_mean)


def _tokens(
    dataset: Dataset, split: str, name: str, arrays: SetArrays, metadata: PuzzleDatasetMetadata
) -> Iterator[Violation]:
    place = names.array(split, name, "inputs")
    if not len(arrays.inputs):
        yield Violation("examples", place, "has no example")
    if arrays.inputs.shape[1] != metadata.seq_len:
        found = f"{arrays.inputs.shape[1]} tokens a row, but seq_len {metadata.seq_len}"
        yield Violation("seq_len", place, found)
    types = _TYPES_OF_OTHERS if dataset.kind is None else _TOKEN_TYPES
    for field in names.TOKENS:
        array: Integers = getattr(arrays, field)
        if array.dtype.str not in types:
            found = f"{array.dtype}, expected {' or '.join(types.values())}"
            yield Violation("dtype", names.array(split, name, field), found)
    few = Few(f"{split}/{name}")
    look = partial(_wrong_tokens, split, name, metadata)
    with closing(dataset.each(split, name, look)) as batches:
        for found_in_rows in (found for batch in batches for found in batch):
            few.add_all(*found_in_rows)
    yield from few.added()


def _wrong_tokens(
    split: str, name: str, metadata: PuzzleDatasetMetadata, rows: Rows
) -> list[_OfRows]:
    """The first rows of a batch with a token that is none, or without loss, and their numbers."""
    ignored, most = metadata.ignore_label_id, metadata.vocab_size - 1
    place = partial(names.array, split, name)
    found = []
    for field in names.TOKENS:
        batch: Integers = getattr(rows, field)
        if not batch.size or _is_within(batch, most):
            continue
        is_bad = (batch < 0) | (batch > most)
        if field == "labels" and ignored is not None:
            is_bad &= batch != ignored
        if is_bad.any():
            rule = f"has a token outside of 0 to {most}"
            found.append(_of_rows("tokens", place(field), rows, is_bad.any(axis=1), rule))
    if ignored is not None and rows.labels.size:
        without = np.asarray((rows.labels == ignored).all(axis=1))
        if without.any():
            rule = f"has no loss: every label is ignore_label_id, {ignored}"
            found.append(_of_rows("loss", place("labels"), rows, without, rule))
    return found


def _of_rows(law: str, place: str, rows: Rows, is_wrong: npt.ArrayLike, found: str) -> _OfRows:
    wrong = rows.first + np.flatnonzero(is_wrong)
    return law, len(wrong), [(f"{place} row {row}", found) for row in wrong[:MOST].tolist()]


def _is_within(batch: Integers, most: int) -> bool:
    """Whether all tokens are 0 to `most`."""
    if batch.dtype.kind == "i":
        # As numbers without a sign, those below 0 are the largest ones: one pass in place of two.
        batch = batch.view(batch.dtype.str.replace("i", "u"))
    return int(batch.max()) <= most


@guarded
def trace_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what is wrong with the trace of a dataset that keeps to the contract."""
    files = len(dataset.sources.files)
    for split, name in dataset.sets():
        arrays = dataset.arrays(split, name)
        place = names.origins(split, name)
        if arrays.origins is None:
            yield Violation("trace", place, "is missing")
            continue
        # Rows name the groups of grids, so that a group may have several sources.
        several = dataset.kind == GRID
        for row, found in _origins(arrays, arrays.origins, files, several):
            yield Violation("trace", f"{place} row {row}", found)


def _origins(
    arrays: SetArrays, origins: Integers, files: int, several: bool
) -> Iterator[tuple[int, str]]:
    """The first row that breaks each rule, and how."""
    file, source, draw = (np.ascontiguousarray(origins[:, column]) for column in range(3))
    least = 0 if files else -1
    rules: list[tuple[npt.NDArray[np.bool_], str]] = [
        ((file < least) | (file >= files), f"its file is not one of {files}"),
        (source < 0, "its row in the source is negative"),
        (draw < 0, "the number of its draw is negative"),
    ]
    puzzles = arrays.puzzle_indices.astype(np.int64)
    sizes = np.diff(puzzles)
    first_of_puzzle = np.repeat(puzzles[:-1], sizes)
    rules.append((draw != draw[first_of_puzzle], "its puzzle has another draw"))

    groups = arrays.group_indices.astype(np.int64)
    draws = draw[puzzles[:-1]].astype(np.int64)
    begins = np.zeros(len(draws), bool)
    begins[groups[:-1]] = True
    if several:
        begins |= draws == 0
    first_puzzle = np.maximum.accumulate(np.where(begins, np.arange(len(draws)), 0))
    first_of_group = np.repeat(puzzles[first_puzzle], sizes)
    if not several:
        rules.append((file != file[first_of_group], "its group has another file"))
    grows = np.ones(len(draws), bool)
    grows[1:] = draws[1:] > draws[:-1]
    grows[begins] = draws[begins] == 0
    wrong = "a group begins with draw 0, and each puzzle has a later one"
    rules.append((np.repeat(~grows, sizes), wrong))
    if (sizes == sizes[first_puzzle]).all():
        twin = first_of_group + (np.arange(len(file)) - first_of_puzzle)
        moved = (source != source[twin]) | (file != file[twin])
        rules.append((moved, "the first puzzle of its group has another row"))
    else:
        rules.append((np.repeat(sizes != sizes[first_puzzle], sizes), "its group has other sizes"))
    for broken, found in rules:
        if broken.any():
            yield int(broken.argmax()), found


Positions = Sequence[int] | npt.NDArray[np.bool_] | npt.NDArray[np.integer]


def augmentation_law(
    folder: Path, fixed: Positions = (), separators: Sequence[int] = ()
) -> Iterator[Violation]:
    """Yields the rows in which an augmentation changed more than the puzzle.

    folder: of the dataset, published or staged.
    fixed: the control fields: their positions in a row, or a mask bool [seq_len]. A row has there,
        in inputs and in labels, what the first row of its group has. Default none.
    separators: tokens that keep their positions in inputs. Default none.

    Padding keeps its positions in inputs, and the labels without loss keep theirs. At most 20 rows
    of a set are named, and the rest is counted. Raises ValueError for positions outside of a row.
    """
    return or_unreadable(_violations(Dataset(folder), fixed, separators), str(folder))


def _violations(
    dataset: Dataset, fixed: Positions, separators: Sequence[int]
) -> Iterator[Violation]:
    for split, name in dataset.sets():
        few = Few(names.array(split, name, "inputs"), "{more:,} more rows like these")
        yield from few.of(_of_set(dataset, split, name, np.asarray(fixed), separators))


def _of_set(
    dataset: Dataset,
    split: str,
    name: str,
    fixed: npt.NDArray[np.generic],
    separators: Sequence[int],
) -> Iterator[Violation]:
    """The rows of one set that differ from the first rows of their groups."""
    metadata, arrays = dataset.metadata(split), dataset.arrays(split, name)
    length, ignored = metadata.seq_len, metadata.ignore_label_id
    if fixed.dtype == np.bool_ and fixed.shape != (length,):
        raise ValueError(f"a mask of the shape {fixed.shape} for rows of {length} tokens")
    places = np.flatnonzero(fixed) if fixed.dtype == np.bool_ else fixed.astype(np.int64)
    if len(places) and not 0 <= places.min() <= places.max() < length:
        raise ValueError(f"positions outside of a row of {length} tokens")
    starts = arrays.puzzle_indices[arrays.group_indices[:-1]].astype(np.int64)
    for rows in dataset.rows(split, name):
        here = rows.first + np.arange(len(rows.inputs))
        first = starts[np.searchsorted(starts, here, "right") - 1]
        inputs, labels = (rows.inputs, arrays.inputs[first]), (rows.labels, arrays.labels[first])
        rules = {
            "padding": _moved(*inputs, [metadata.pad_id]),
            "a separator": _moved(*inputs, separators),
            "a label without loss": _moved(*labels, [] if ignored is None else [ignored]),
        }
        for noun, (tokens, of_group) in (("inputs", inputs), ("labels", labels)):
            changed = tokens[:, places] != of_group[:, places]
            rules[f"a control field of the {noun}"] = changed.any(axis=1)
        for row in np.flatnonzero(np.any(list(rules.values()), axis=0)).tolist():
            what = ", ".join(noun for noun, broken in rules.items() if broken[row])
            where = f"{names.array(split, name, 'inputs')} row {rows.first + row}"
            yield Violation("augmentation", where, f"{what} differs from the group's first row")


def _moved(tokens: Integers, of_group: Integers, kept: Sequence[int]) -> npt.NDArray[np.bool_]:
    """The rows in which one of the tokens `kept` has other positions."""
    moved = np.zeros(len(tokens), np.bool_)
    for token in kept:
        moved |= ((tokens == token) != (of_group == token)).any(axis=1)
    return moved


def of_dataset(laws: Laws, subject: Subject) -> Iterable[Violation]:
    """Yields what the dataset of a subject breaks of some laws."""
    return laws(_dataset(subject))


def of_traced(rules: str, laws: Laws, subject: Subject) -> Iterable[Violation]:
    """Yields laws that need a trace. rules: what nobody looks at without one, in words."""
    return () if subject.missing({SOURCES: rules}) else laws(_dataset(subject))


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
    """The ARC tasks that have the pairs of an earlier one, and that one: paths of their files."""
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
    """Yield which rows of tables or banks are left out, with their number and the first lines."""
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
