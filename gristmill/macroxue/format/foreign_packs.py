"""Steps files that are no packs of this family but look like them, and who reads them.

Source: `docs/formats/macroxue.md#self-play-v1`, `docs/formats/macroxue.md#legacy-packs`,
`docs/formats/macroxue.md#foreign-packs`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gristmill.contract import BadInput
from gristmill.untrusted.npy_header import read_header

ForeignForm = Literal["self_play", "legacy"]

_REASONS: dict[ForeignForm, str] = {
    "self_play": (
        "self-play v1 rows (exps, no packed board, no move, no expected values): read them with"
        " the self-play reader and its collate (make_collate_steps), not with the Macroxue one;"
        " their run_id has 64 bits and their runs are not contiguous; `gristmill look --write` of"
        " their folder makes it a drop, from which a pack is built"
    ),
    "legacy": (
        "legacy expectimax rows (a packed board without tile_65536_mask): a 65536 cannot be"
        " distinguished from a 32768, and legality is missing; read them with the legacy loader"
        " and its collate (make_collate_steps), pack the raw logs again, or make the folder a drop"
        " by `gristmill look --write`, from which a pack is built"
    ),
}


def foreign_form(path: Path) -> ForeignForm | None:
    """Which foreign form the rows of a steps file have, by the field names in its header.

    Returns None for rows of a pack, for unknown rows, and for a file that is no npy file
    (`open_steps` refuses the last two). Raises OSError where the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            names = set(read_header(file)[2].names or ())
    except ValueError:
        return None
    if "exps" in names:
        return "self_play"
    if "board" in names and "tile_65536_mask" not in names:
        return "legacy"
    return None


def refuse_foreign_rows(path: Path) -> None:
    """Raise BadInput, naming the right reader, where a steps file has a foreign form.

    path: a steps file; others than those of `foreign_form` pass.
    """
    form = foreign_form(path)
    if form is not None:
        raise BadInput(path, _REASONS[form])
