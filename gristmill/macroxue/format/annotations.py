"""Annotations as .npy; NaN where a row has none. Source: docs/formats/macroxue.md#annotations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

MANIFEST: Final = "annotation_manifest.json"
UNKNOWN: Final = 255
"""A `teacher_move` or `argmax_head` that is none."""

ROW_DTYPE = np.dtype(
    [
        ("run_id", "<u4"),
        ("step_index", "<u4"),
        ("teacher_move", "u1"),
        ("legal_mask", "u1"),
        ("policy_kind_mask", "u1"),
        ("argmax_head", "u1"),
        ("argmax_prob", "<f4"),
        ("policy_p1", "<f4", (4,)),
        ("policy_logp", "<f4", (4,)),
        ("policy_hard", "<f4", (4,)),
    ]
)
"""One row of `annotations-*.npy`, 64 bytes, no padding."""

VALUE_DTYPE = np.dtype(
    [("run_id", "<u4"), ("step_index", "<u4"), ("value", "<f4"), ("value_xform", "<f4")]
)
"""One row of `annotations-value-*.npy`, 16 bytes, no padding."""

ROWS, STUDENT = "annotations", "annotations-student"
VALUES, VALUE_BINS = "annotations-value", "annotations-value-bins"
STEMS: Final = (ROWS, STUDENT, VALUES, VALUE_BINS)
"""The stems of the files; a folder has the first, and any of the others with as many files."""


def file_name(stem: str, number: int) -> str:
    """The name of a file, as `annotations-000000.npy`."""
    return f"{stem}-{number:06d}.npy"


def row_dtype(stem: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype of one row of a file, None where the stem has no such file.

    shape, dtype: of the file. Bins are plain float32: [N, 4, bins] of a student, [N, bins] of
    values.
    """
    if stem in (ROWS, VALUES):
        wanted = ROW_DTYPE if stem == ROWS else VALUE_DTYPE
        return wanted if dtype == wanted and len(shape) == 1 else None
    inner = shape[1:]
    fits = inner[:1] == (4,) and len(inner) == 2 if stem == STUDENT else len(inner) == 1
    if dtype != np.dtype("<f4") or not fits or not inner[-1]:
        return None
    return np.dtype([("bins", "<f4", inner)])


def unannotated(dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Rows [N] of a file's dtype that say nothing."""
    rows = np.zeros(count, dtype)
    for name in dtype.names or ():
        if dtype[name].base.kind == "f":
            rows[name] = np.nan
        elif name in ("teacher_move", "argmax_head"):
            rows[name] = UNKNOWN
    return rows
