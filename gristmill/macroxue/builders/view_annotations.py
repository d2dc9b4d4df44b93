"""The annotations of a training view, row by row. Source: docs/formats/macroxue.md#annotations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import FileNote
from gristmill.macroxue.format.annotations import MANIFEST, ROWS, VALUES, file_name, unannotated
from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.raw.annotations import Annotations
from gristmill.macroxue.rules.symmetries import turned_annotations
from gristmill.untrusted.npy_header import npy_header


class AnnotationWriter:
    """Writes the annotations of one side of a view.

    annotated: rows that have an annotation. notes: of the files, complete after `finish`.
    """

    def __init__(self, folder: Path, annotations: Annotations, shards: Sequence[int]) -> None:
        self._folder, self._annotations, self._shards = folder, annotations, shards
        self._masks: dict[int, int] = {}
        self._ends = np.cumsum(shards)
        self._row = self.annotated = 0
        self.notes: dict[str, FileNote] = {}
        for stem, maps in annotations.maps.items():
            for number, rows in enumerate(shards):
                name = file_name(stem, number)
                dtype = maps[0].dtype
                shape = (rows,) if stem in (ROWS, VALUES) else (rows, *dtype["bins"].shape)
                plain = dtype if stem in (ROWS, VALUES) else "<f4"
                (folder / name).write_bytes(npy_header(plain, shape))
                self.notes[name] = FileNote(rows=rows)

    def add(self, steps: Rows, runs: Mapping[int, Run], symmetry: int, images: int) -> None:
        """Write the annotations of whole games.

        steps: their rows [N] in the source. runs: of the source, by id.
        symmetry: that turns them. images: runs of the view for each of the source.
        """
        cuts = np.flatnonzero(np.diff(steps["run_id"])) + 1
        for own in np.split(np.arange(len(steps)), cuts) if len(steps) else ():
            rows = steps[own[0] : own[-1] + 1]
            run = int(rows["run_id"][0])
            places = self._annotations.places(runs[run], rows)
            found = np.flatnonzero(places >= 0)
            self.annotated += len(found)
            view_run = run * images + symmetry
            for stem, maps in self._annotations.maps.items():
                said = unannotated(maps[0].dtype, len(rows))
                said[found] = self._annotations.take(stem, places[found])
                said = turned_annotations(stem, said, symmetry)
                if stem in (ROWS, VALUES):
                    said["run_id"], said["step_index"] = view_run, rows["step_index"]
                if stem == ROWS and len(found):
                    mask = int(np.bitwise_or.reduce(said["policy_kind_mask"]))
                    self._masks[view_run] = mask
                self._write(stem, said)
            self._row += len(rows)

    def _write(self, stem: str, said: npt.NDArray[Any]) -> None:
        """Append rows to the files of a stem, from the present row on."""
        at = 0
        while at < len(said):
            number = int(np.searchsorted(self._ends, self._row + at, "right"))
            take = min(int(self._ends[number]) - self._row - at, len(said) - at)
            with (self._folder / file_name(stem, number)).open("ab") as file:
                file.write(said[at : at + take].tobytes())
            at += take

    def finish(self) -> None:
        """Write the manifest: that of the student, with the runs of the view."""
        runs = [
            {"run_id": run, "policy_kind_mask": mask} for run, mask in sorted(self._masks.items())
        ]
        text = json.dumps({**self._annotations.manifest, "runs": runs}, indent=2)
        (self._folder / MANIFEST).write_text(text + "\n")
        self.notes[MANIFEST] = FileNote()
