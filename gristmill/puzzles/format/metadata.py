"""What a dataset says of itself, in JSON. Source: docs/formats/puzzles.md#contract."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.puzzles.format.names import is_set_name


@dataclass(frozen=True)
class Encoding:
    """The numbers that all examples of a dataset share.

    pad_id: the token of padding; default 0.
    ignore_label_id: the label that has no loss; None: every label has one. Default 0.
    blank_identifier_id: the identifier of puzzles without one; default 0.

    Raises ValueError for numbers that exclude each other.
    """

    seq_len: int
    vocab_size: int
    pad_id: int = 0
    ignore_label_id: int | None = 0
    blank_identifier_id: int = 0

    def __post_init__(self) -> None:
        if self.seq_len < 1 or self.vocab_size < 1:
            raise ValueError("seq_len and vocab_size must be at least 1")
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError("pad_id must be a token: 0 to vocab_size - 1")


_MOST_BYTES = 1 << 20
_INTEGERS = (
    "pad_id",
    "blank_identifier_id",
    "vocab_size",
    "seq_len",
    "num_puzzle_identifiers",
    "total_groups",
)
_OF_TRM = "total_puzzles"


@dataclass(frozen=True)
class PuzzleDatasetMetadata:
    """The metadata of a split: the keys of HRM in its order, then the one that TRM adds.

    pad_id: token of padding.
    ignore_label_id: label without loss; None where every label has one.
    blank_identifier_id: identifier of puzzles without one.
    vocab_size: number of tokens, the padding included.
    seq_len: tokens of an input, and of a label.
    num_puzzle_identifiers: number of identifiers, the blank one included.
    total_groups: groups of all sets.
    mean_puzzle_examples: examples of all sets, divided by their puzzles.
    sets: names of the sets, in the order in which training reads them.
    total_puzzles: puzzles of all sets; None where the file does not say it, as those of HRM.
    """

    pad_id: int
    ignore_label_id: int | None
    blank_identifier_id: int
    vocab_size: int
    seq_len: int
    num_puzzle_identifiers: int
    total_groups: int
    mean_puzzle_examples: float
    sets: tuple[str, ...]
    total_puzzles: int | None = None

    def text(self) -> str:
        """The content of `dataset.json`: one line without a newline at its end."""
        values = asdict(self)
        values["mean_puzzle_examples"] = float(self.mean_puzzle_examples)
        if self.total_puzzles is None:
            del values[_OF_TRM]
        return json.dumps(values)


def parsed_metadata(text: bytes, path: Path) -> PuzzleDatasetMetadata:
    """The metadata in the bytes of `dataset.json`; keys that are not known are ignored."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise BadInput(path, "must hold an object")
    names = [spec.name for spec in fields(PuzzleDatasetMetadata)]
    if missing := [name for name in names if name not in read and name != _OF_TRM]:
        raise BadInput(path, f"lacks the keys {', '.join(missing)}")
    _check_values(read, path)
    values: dict[str, Any] = {name: read.get(name) for name in names}
    values["sets"] = tuple(values["sets"])
    values["mean_puzzle_examples"] = float(values["mean_puzzle_examples"])
    return PuzzleDatasetMetadata(**values)


def read_metadata(path: Path) -> PuzzleDatasetMetadata:
    """Read a `dataset.json`. Raises BadInput as `parsed_metadata`, OSError as reading does."""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise BadInput(path, f"is larger than {_MOST_BYTES:,} bytes")
    return parsed_metadata(text, path)


def _check_values(read: Mapping[str, Any], path: Path) -> None:
    for name in (*_INTEGERS, *([_OF_TRM] if _OF_TRM in read else [])):
        if type(read[name]) is not int or not 0 <= read[name] < 1 << 31:
            raise BadInput(path, f"{name} must be an integer from 0 to 2147483647")
    ignored, mean, sets = (
        read[name] for name in ("ignore_label_id", "mean_puzzle_examples", "sets")
    )
    if ignored is not None and (type(ignored) is not int or abs(ignored) >= 1 << 31):
        raise BadInput(path, "ignore_label_id must be an integer or null")
    try:
        fits = type(mean) in (int, float) and math.isfinite(mean) and mean >= 0
    except OverflowError:
        fits = False
    if not fits:
        raise BadInput(path, "mean_puzzle_examples must be a number, at least 0")
    if not isinstance(sets, list) or not all(map(is_set_name, sets)):
        raise BadInput(path, "sets must be a list of names that can be parts of file names")
    if len(set(sets)) != len(sets) or not sets:
        raise BadInput(path, "sets must name at least one set, and none twice")
    if read["seq_len"] < 1 or read["vocab_size"] < 1:
        raise BadInput(path, "seq_len and vocab_size must be at least 1")


def read_identifiers(path: Path) -> list[str]:
    """Read the list of names. Raises BadInput where the file is missing or holds something else."""
    try:
        read = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is not JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(name, str) for name in read):
        raise BadInput(path, "must hold a list of names")
    return read


@dataclass(frozen=True)
class SourceFile:
    """One file that examples came from."""

    path: str
    sha256: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sources:
    """Where a dataset came from."""

    kind: str
    config: Mapping[str, Any]
    files: Sequence[SourceFile] = ()

    def text(self) -> str:
        """The content of `trace/sources.json`; one line for each file."""
        files = [
            json.dumps({"path": file.path, "sha256": file.sha256, **file.facts})
            for file in self.files
        ]
        listed = ",\n  ".join(files)
        head = f'{{"kind": {json.dumps(self.kind)}, "config": {json.dumps(dict(self.config))}'
        return f'{head}, "files": [\n  {listed}\n]}}\n' if files else f'{head}, "files": []}}\n'


def read_sources(path: Path) -> Sources:
    """Read `trace/sources.json`. Raises BadInput where it is not in its form."""
    try:
        read = json.loads(path.read_bytes())
        files = [
            SourceFile(
                str(entry["path"]),
                str(entry["sha256"]),
                {name: value for name, value in entry.items() if name not in ("path", "sha256")},
            )
            for entry in read["files"]
        ]
        return Sources(str(read["kind"]), dict(read["config"]), files)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(path, "is not a list of sources as docs/formats/puzzles.md says") from error
