"""What a reader keeps open, the columns of a batch that it reads there, and the gate of reports."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.loading.packing import segmented
from gristmill.loading.source import Columns
from gristmill.reading.folder import HeldFile, OpenFolder, Opening, made_from_another
from gristmill.reasoning.format import names, reports, staged
from gristmill.reasoning.format.index import Selection
from gristmill.reasoning.format.published import TOKENS
from gristmill.reasoning.format.shard_list import Shard
from gristmill.reasoning.read.shard_files import (
    MOST_HELD,
    ShardFiles,
    partition_folder,
    record_in,
)
from gristmill.reasoning.read.shard_rows import ShardRows, SplitRows, fill, kept_rows


class GateClosed(GristmillError):
    """The newest report drifted too far from its baseline."""


def check_gate(folder: Path) -> None:
    """Raise GateClosed where the gate of the newest report did not pass.

    folder: of the reports; without a folder or a report the gate is open.

    The error names the report, its breaches, and how a person accepts the change. Raises
    BadInput for a report that cannot be read.
    """
    days = reports.dates(folder)
    if not days:
        return
    path = reports.path(folder, days[-1])
    report = reports.read(path)
    if report["gate"]["passed"]:
        return
    breaches = report["gate"]["breaches"]
    accept = f'set baseline = "{days[-1]}" in [reasoning.qc_report]'
    if report["drift"]["baseline"] == report["date"]:
        # The counts of the first report of the day are its baseline, whoever builds it again.
        accept = (
            "remove baseline from [reasoning.qc_report], materialize reasoning/qc_report, and set "
            "baseline to the day of that report"
        )
    more = f"; and {len(breaches) - 5} more" if len(breaches) > 5 else ""
    raise GateClosed(
        f"{path}: the gate did not pass: {'; '.join(breaches[:5])}{more}: correct the data, or "
        f"accept a drift: {accept}; then materialize reasoning/qc_report again"
    )


MOST_LOADED: Final = 16
"""Shards whose examples and steps are kept, about 2 MB each."""

Wanted = Sequence[tuple[int, slice | npt.NDArray[np.int64]]]


@dataclass(frozen=True)
class Supervision:
    """What is read beside the tokens. steps: the folder of the alignments; None for no steps."""

    steps: Path | None
    least_confidence: float
    selection: Selection
    documents: bool = False

    def __bool__(self) -> bool:
        return self.steps is not None or bool(self.selection) or self.documents


def refuse_drift(root: Path) -> None:
    """Raise GristmillError where the newest report of a data root has drifted.

    root: the folder of all shards, or a link to it; nothing is known about one outside of a data
        root.
    """
    depth = len(Path(names.TOKENIZED).parts)
    for whole in (root.absolute(), root.resolve()):
        if whole.parts[-depth:] == Path(names.TOKENIZED).parts:
            check_gate(whole.parents[depth - 1] / names.REPORTS)
            return


@dataclass(frozen=True)
class Held:
    """The open files of a reader.

    indexes: `index.jsonl` of each partition that it needs. splits: its rows.
    """

    files: ShardFiles
    shards: tuple[Shard, ...]
    supervision: Supervision
    indexes: dict[str, HeldFile]
    splits: dict[str, SplitRows]
    loaded: OrderedDict[int, ShardRows]

    def kept(self, selection: Selection) -> dict[int, npt.NDArray[np.int64]]:
        """The sequences of each shard that hold a selected example."""
        kept: dict[int, npt.NDArray[np.int64]] = {}
        for partition, file in self.indexes.items():
            own = {
                shard.path: (number, shard.sequences)
                for number, shard in enumerate(self.shards)
                if shard.partition == partition
            }
            kept |= kept_rows(file, selection, own)
        if not kept:
            raise BadInput(next(iter(self.indexes.values())).path, f"no example has {selection}")
        return kept

    def rows(
        self,
        shards: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
        seq_len: int,
        dtype: Any,
    ) -> dict[str, npt.NDArray[Any]]:
        """The columns of a batch: of a row [N] of a shard [N] each, in the order asked."""
        columns = _empty(len(rows), seq_len, dtype, self.supervision)
        listed = shards.tolist()
        mapped = {each: self.files.tokens(each, MOST_HELD) for each in sorted(set(listed))}
        # Row by row: each is copied once, which a gather of each shard would do twice.
        ids = columns["input_ids"]
        for at, (shard, row) in enumerate(zip(listed, rows.tolist(), strict=True)):
            ids[at] = mapped[shard][row]
        columns["shard"][:], columns["row"][:] = shards, rows
        for shard in mapped if self.supervision else ():
            places = np.flatnonzero(shards == shard)
            own = {name: column[places] for name, column in columns.items()}
            self._supervise(own, shard, rows[places])
            for name in set(own) - {"input_ids", "shard", "row"}:
                columns[name][places] = own[name]
        return self._with_documents(columns)

    def columns(self, wanted: Wanted, seq_len: int, dtype: Any) -> dict[str, npt.NDArray[Any]]:
        """The columns of a batch: of rows of shards, in order."""
        if len(wanted) == 1 and not self.supervision:
            ((shard, rows),) = wanted
            input_ids = np.array(self.files.tokens(shard)[rows], dtype)
            shards = np.empty(len(input_ids), np.int32)
            shards.fill(shard)
            return {"input_ids": input_ids, "shard": shards, "row": _numbers(rows, np.int32)}
        listed = [(shard, rows, _numbers(rows, np.int64)) for shard, rows in wanted]
        count = sum(len(numbers) for _, _, numbers in listed)
        columns = _empty(count, seq_len, dtype, self.supervision)
        at = 0
        for shard, rows, numbers in listed:
            tokens = self.files.tokens(shard)
            own = {name: column[at : at + len(numbers)] for name, column in columns.items()}
            own["input_ids"][:] = tokens[rows]
            own["shard"][:], own["row"][:] = shard, numbers
            if self.supervision:
                self._supervise(own, shard, numbers)
            at += len(numbers)
        return self._with_documents(columns)

    def _with_documents(self, columns: Columns) -> Columns:
        if not self.supervision.documents:
            return columns
        return columns | segmented(columns["input_ids"], columns["example"])

    def _supervise(
        self, own: dict[str, npt.NDArray[Any]], shard: int, numbers: npt.NDArray[np.int64]
    ) -> None:
        rows = self._rows_of(shard)
        fill(own["example"], numbers, rows.examples, -1)
        if "step_id" in own:
            fill(own["step_id"], numbers, rows.steps, 0)
        if "selected" in own:
            fill(own["selected"], numbers, rows.selected, 0)

    def _rows_of(self, number: int) -> ShardRows:
        if number not in self.loaded:
            shard = self.shards[number]
            split = self.splits[shard.partition]
            self.loaded[number] = split.of(shard, self.supervision.selection)
            while len(self.loaded) > MOST_LOADED:
                self.loaded.popitem(last=False)
        self.loaded.move_to_end(number)
        return self.loaded[number]


def open_held(
    opening: Opening,
    root: Path,
    shards: tuple[Shard, ...],
    own: range,
    supervision: Supervision,
) -> Held:
    """Open the shards of a rank, and index and alignment where they are needed."""
    if opening.first:
        paths = (shards[number].path for number in own)
        staged.refuse_missing(root, paths, own.start, own.step)
    files = ShardFiles(opening, root, shards, own)
    needed = {shards[number].partition for number in own} if supervision else set()
    if supervision.selection:
        needed = {shard.partition for shard in shards}
    indexes, splits = {}, {}
    for partition in sorted(needed):
        corpus, split = partition.split("__")
        folder = partition_folder(opening, root, partition)
        indexes[partition] = folder.keep(names.split_index(corpus, split))
        aligned = None
        if supervision.steps is not None:
            made = opening.folder(supervision.steps, record_in(supervision.steps, partition))
            name = names.alignment(corpus, split)
            _refuse_other_alignment(made, folder, supervision.steps / name, name)
            aligned = made.keep(name)
        splits[partition] = SplitRows(indexes[partition], aligned, supervision.least_confidence)
    return Held(files, shards, supervision, indexes, splits, OrderedDict())


def _refuse_other_alignment(made: OpenFolder, shards: OpenFolder, path: Path, name: str) -> None:
    """Raise BadInput where an alignment is of other shards, or a dataset was built without it."""
    of, by = made.record, shards.record
    if of is None or by is None:
        return
    if TOKENS not in (of.asset, by.asset):
        if of == by:  # the folder of all shards of GPT-2
            raise BadInput(path, "is not there: give the folder of reasoning/alignment")
        if made_from_another(made, shards):
            rule = f"was built from another version of {shards.path}"
            raise BadInput(path, f"{rule}: build reasoning/alignment again")
    elif of.data_version != by.data_version:
        raise BadInput(path, f"is of other shards than {shards.path}: give the alignment of these")
    elif name not in {output.path for output in of.outputs}:
        rule = 'write outputs = ["bin", "alignment"] in the recipe'
        raise BadInput(path, f"was not built: {rule}, and build reasoning/tokens")


def _numbers(rows: slice | npt.NDArray[np.int64], dtype: Any) -> npt.NDArray[Any]:
    if isinstance(rows, slice):
        return np.arange(rows.start, rows.stop, dtype=dtype)
    return rows.astype(dtype)


def _empty(
    count: int, seq_len: int, dtype: Any, supervision: Supervision
) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        "input_ids": np.empty((count, seq_len), dtype),
        "shard": np.empty(count, np.int32),
        "row": np.empty(count, np.int32),
    }
    if supervision.steps is not None:
        columns["step_id"] = np.empty((count, seq_len), np.int32)
    if supervision:
        columns["example"] = np.empty((count, seq_len), np.int64)
    if supervision.selection:
        columns["selected"] = np.empty((count, seq_len), np.bool_)
    return columns
