"""The kind of a folder, without reading its rows. Source: docs/formats/macroxue.md#files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gristmill.contract import BadInput
from gristmill.macroxue.format.metadata_db import read_session
from gristmill.macroxue.format.shards import ForeignForm, foreign_form
from gristmill.macroxue.format.view_files import DESCRIPTION

Kind = Literal["pack", "pool", "values", "training_view"] | ForeignForm


def kind_of(folder: Path) -> Kind | None:
    """The kind of a folder; None where it is not of this family.

    "pack": metadata.db next to valuation_types.json or to a steps file.
    "pool": a pack whose session has the key `packs`.
    "values": values.json next to a values file.
    "training_view": view.json.
    "self_play", "legacy": the first steps file has rows that the pack readers refuse.

    A folder may be damaged and still have a kind: its reader then raises BadInput. A pool whose
    metadata.db cannot be read is a "pack" here for the same reason.
    """
    if (folder / DESCRIPTION).is_file():
        return "training_view"
    steps = _first_file(folder, "steps")
    form = foreign_form(steps) if steps is not None else None
    if form is not None:
        return form
    database = folder / "metadata.db"
    if database.is_file() and (steps is not None or (folder / "valuation_types.json").is_file()):
        return "pool" if _has_members(database) else "pack"
    if (folder / "values.json").is_file() and _first_file(folder, "values") is not None:
        return "values"
    return None


def _first_file(folder: Path, stem: str) -> Path | None:
    """`<stem>.npy`, else the first `<stem>-*.npy` by name; None where there is neither."""
    for path in (folder / f"{stem}.npy", *sorted(folder.glob(f"{stem}-*.npy"))):
        if path.is_file():
            return path
    return None


def _has_members(database: Path) -> bool:
    """Whether a metadata.db names members (docs/formats/macroxue.md#session-keys-of-a-pool)."""
    try:
        return "packs" in read_session(database)
    except BadInput:
        return False


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none."""
    kind = kind_of(folder)
    if kind is None and any(folder.glob("steps*.npy")):
        return "macroxue/pack"  # its tables are missing
    if kind in ("self_play", "legacy"):
        return "macroxue/pack"
    return None if kind is None else f"macroxue/{kind}"
