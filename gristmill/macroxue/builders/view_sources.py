"""What a training view takes from its sources. Source: docs/formats/macroxue.md#training-view."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.builders.values import SETTINGS
from gristmill.macroxue.format.metadata_db import Gap
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.format.shards import open_values, value_files
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.played import gaps_of, played
from gristmill.macroxue.read.step_stream import Batch, StepStream
from gristmill.macroxue.rules.board_eval import FITS_INT32
from gristmill.run.progress import Progress

BATCH_ROWS: Final = 1 << 15
"""Rows that are held at once, where no run is longer."""


@dataclass(frozen=True)
class Judged:
    """What the games of a pack or pool are fit for.

    imageless: ids of the runs with a tile whose rank cannot be found, or is so high that an image's
        board_eval may not fit int32.
    """

    gaps: dict[int, Gap]
    imageless: frozenset[int]


def judged(stream: StepStream, progress: Progress) -> Judged:
    """Play all games of a pack or pool."""
    gaps: dict[int, Gap] = {}
    imageless: set[int] = set()
    with progress.stage("gaps", unit="rows", total=stream.rows) as stage:
        for batch in stream.batches(whole_runs=True, most=BATCH_ROWS):
            games = played(batch)
            known = games.known
            wrong = known.unknown | (known.ranks.max(axis=1, initial=0) > FITS_INT32)
            imageless |= set(np.unique(batch.rows["run_id"][wrong]).tolist())
            gaps |= {gap.run_id: gap for gap in gaps_of(batch, stream.runs, games)}
            stage.advance(len(batch.rows))
    return Judged(gaps, frozenset(imageless))


class JoinedValues:
    """The values of the rows of a pack, or of a pool by those of its members.

    folders: value sidecars, one after another as their rows are in the stream.
    settings: gamma, reward_scale, epsilon and compat, which are equal in all of them.
    """

    def __init__(self, folders: Sequence[Path], stream: StepStream) -> None:
        self._folders, self._stream = folders, stream
        self.files = [value_files(folder) for folder in folders]
        self._maps = [Gather([open_values(file) for file in files]) for files in self.files]
        self._firsts = np.cumsum([0, *map(len, self._maps)])
        if int(self._firsts[-1]) != stream.rows:
            raise BadInput(
                stream.folder,
                f"has {stream.rows} rows, but the values have {int(self._firsts[-1])}: build the"
                " values of its packs again",
            )
        # Runs of a member are numbered from the first run that it has in the pool.
        self._shifts = [
            stream.batch(first, first + 1).rows["run_id"] - values.rows(np.zeros(1, int))["run_id"]
            for first, values in zip(self._firsts.tolist(), self._maps, strict=False)
        ]
        self.settings = self._settings()

    def _settings(self) -> dict[str, Any]:
        found = []
        for folder in self._folders:
            try:
                settings = json.loads((folder / SETTINGS).read_bytes())
                found.append({k: v for k, v in settings.items() if k not in ("rows", "runs")})
            except (OSError, ValueError, AttributeError) as error:
                raise BadInput(folder / SETTINGS, f"cannot be used: {error!r}") from error
            if found[-1] != found[0]:
                raise GristmillError(
                    f"{folder}: the values have other settings than {self._folders[0]}: build both"
                    " with the same [macroxue.values]"
                )
        return found[0]

    def of(self, batch: Batch) -> Rows:
        """The values of consecutive rows [N], with their run ids; BadInput for other rows."""
        rows, parts = batch.rows, []
        stop = batch.start + len(rows)
        for at, values in enumerate(self._maps):
            first, last = int(self._firsts[at]), int(self._firsts[at + 1])
            if first < stop and batch.start < last:
                own = np.arange(max(batch.start, first), min(stop, last))
                parts.append(values.rows(own - first))
                parts[-1]["run_id"] += self._shifts[at]
        values_of = np.concatenate(parts) if len(parts) > 1 else parts[0]
        for column in ("run_id", "step_index"):
            wrong = np.flatnonzero(values_of[column] != rows[column])
            if len(wrong):
                raise BadInput(
                    self._stream.folder,
                    f"row {batch.start + int(wrong[0])} has another {column} in the values: build"
                    " the values of its packs again",
                )
        return values_of
