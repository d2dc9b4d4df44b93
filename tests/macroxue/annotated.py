"""Annotations of a pack as the trainer's annotator writes them, with made-up numbers."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.macroxue.format import rows as form
from gristmill.macroxue.format.rows import MANIFEST, ROWS, STUDENT, VALUE_BINS, VALUES, Rows
from tests.macroxue.games import all_rows

BINS = 5


def annotated(steps: Rows) -> dict[str, np.ndarray[Any, Any]]:
    """Rows of all four stems for steps [N]: each number tells its row and its move."""
    rows = np.zeros(len(steps), form.ROW_DTYPE)
    values = np.zeros(len(steps), form.VALUE_DTYPE)
    for each in (rows, values):
        each["run_id"], each["step_index"] = steps["run_id"], steps["step_index"]
    number = np.arange(len(steps), dtype=np.float32)
    rows["teacher_move"], rows["argmax_head"] = steps["move_dir"], (steps["move_dir"] + 1) % 4
    rows["legal_mask"], rows["policy_kind_mask"] = steps["ev_legal"], 1 | 8
    rows["argmax_prob"], values["value"] = number, number
    for name in ("policy_p1", "policy_logp", "policy_hard"):
        rows[name] = number[:, None] * 4 + np.arange(4)
    student = rows["policy_p1"][:, :, None] + np.linspace(0, 0.5, BINS, dtype=np.float32)
    return {ROWS: rows, STUDENT: student, VALUES: values, VALUE_BINS: student[:, 0]}


def write_annotations(folder: Path, pack: Path, keep: slice = slice(None), files: int = 1) -> Path:
    """Write a folder of annotations of a pack's rows, or of some of them, in so many files."""
    folder.mkdir(parents=True)
    of_stems = annotated(all_rows(pack))
    for stem, rows in of_stems.items():
        for number, part in enumerate(np.array_split(rows[keep], files)):
            np.save(folder / f"{stem}-{number:06d}.npy", part)
    for name in ("metadata.db", "valuation_types.json"):
        shutil.copy(pack / name, folder)
    runs = [{"run_id": int(run), "policy_kind_mask": 9} for run in set(of_stems[ROWS]["run_id"])]
    said = {"kinds": ["p1"], "runs": runs, "student_bins": {"dtype": "f32", "num_bins": BINS}}
    (folder / MANIFEST).write_text(json.dumps(said))
    return folder
