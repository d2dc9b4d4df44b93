"""The rows of distill datasets as a source of the loader: token ids and the labels of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, identity_of
from gristmill.reading.folder import Opening
from gristmill.reading.generation import Verify
from gristmill.reading.reader import Reader, located
from gristmill.synth.read import distill
from gristmill.synth.read.origins import own_document_origins
from gristmill.synth.read.shard_files import HARMONY_WORDS

_ASSET: Final = "synth/distill"
_LISTS: Final = {"input_ids": 0, "labels": distill.IGNORED}
"""The columns of lists, and what is behind the end of a row."""


class _Held(NamedTuple):
    """Batches of rows of all folders, the number of the first row of each, and those of folders."""

    batches: list[pa.RecordBatch]
    firsts: Numbers
    cuts: Numbers


class DistilledRows(Reader[_Held]):
    """Rows of one split of distill datasets, by number from 0, one folder after the other.

    folders: of artifacts of `synth/distill` or `chat/distill`. split: "train" or "valid".
    verify: how much is compared with the records: "none", "sizes" (the default) or "hash".

    It is a source of `gristmill.loading`, and can be pickled: a worker maps the files again, and
    raises StaleDataset at its first read where a dataset was rebuilt.

    Raises BadInput where a file is missing or damaged, GristmillError for a folder without a
    record.
    """

    words = HARMONY_WORDS
    behind = _LISTS

    def __init__(
        self, folders: Sequence[Path | str], split: str = "train", *, verify: Verify = "sizes"
    ) -> None:
        self._folders, self.split = [located(each) for each in folders], split
        self.start(verify)
        self.identity = identity_of(_ASSET, self.generations, split)
        self.cuts: Numbers = self.held.cuts

    def open_files(self, opening: Opening) -> _Held:
        """Map the batches of all folders."""
        batches, cuts = list[pa.RecordBatch](), [0]
        for folder in self._folders:
            root = opening.folder(folder)
            state = f"{distill.SPLITS[self.split]}/{distill.STATE}"
            root.check(state)
            for path in distill.files_of(root.inside, self.split):
                kept = root.keep(f"{distill.SPLITS[self.split]}/{path.name}")
                batches += distill.batches_of(kept.opened, kept.path)
            cuts.append(sum(map(len, batches)))
        firsts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        return _Held(batches, firsts, np.array(cuts, np.int64))

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.cuts[-1])

    def lengths(self) -> Numbers:
        """Tokens of each row, int64 [N]."""
        found = [batch["input_ids"].value_lengths().to_numpy() for batch in self.held.batches]
        return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)

    def read(self, numbers: Numbers) -> Columns:
        """input_ids int32, 0 behind the end, and labels int32, -100 there [N, longest]; length."""
        held = self.held
        places = np.searchsorted(held.firsts, numbers, "right") - 1
        rows = [
            {
                name: held.batches[place][name][number - int(held.firsts[place])].values.to_numpy()
                for name in _LISTS
            }
            for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
        ]
        lengths = np.array([len(row["input_ids"]) for row in rows], np.int64)
        columns: Columns = {}
        for name, behind in _LISTS.items():
            filled = np.full((len(rows), int(lengths.max(initial=0))), behind, np.int32)
            for at, row in enumerate(rows):
                filled[at, : lengths[at]] = row[name]
            columns[name] = filled
        return {**columns, "length": lengths}

    def shown(self, number: int) -> Iterator[Request]:
        """The row."""
        folder, row = self._place(number)
        yield Request(folder, str(row), {"split": self.split})

    def origin(self, number: int) -> Iterator[Trace]:
        """The row of Harmony, or of the conversations, and the raw row of a row."""
        folder, row = self._place(number)
        return own_document_origins(folder, self.split, row)

    def _place(self, number: int) -> tuple[Path, int]:
        place = int(np.searchsorted(self.cuts, number, "right")) - 1
        return self.generations[place].folder, number - int(self.cuts[place])


def opened(folders: Sequence[Path], *, split: Literal["train", "valid"] = "train") -> DistilledRows:
    """The rows of a split of one or more datasets."""
    return DistilledRows(folders, split)
