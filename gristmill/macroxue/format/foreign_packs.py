"""The pools that are not Macroxue packs but look like them, and what to read them with.

Facts: docs/formats/macroxue.md#self-play-v1 and #legacy-packs.
"""

from __future__ import annotations

from pathlib import Path

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import read_header

_SELF_PLAY = (
    "self-play v1 rows (exps, no packed board, no move, no EVs): read them with the self-play"
    " reader and its collate (make_collate_steps), not with the Macroxue one, and do not stitch"
    " the two before board and exps are one representation; run_id is 64 bits wide there and is"
    " not grouped"
)
_LEGACY = (
    "legacy expectimax rows (a packed board without tile_65536_mask): 65536 and above cannot be"
    " told from 32768, and there is no legality; read them with the legacy loader and its collate"
    " (make_collate_steps), or pack the raw logs anew for a Macroxue pack"
)


def refuse_other_forms(path: Path) -> None:
    """Raise BadInput, naming the right reader, where a steps file is of another kind of pool.

    Files that are no npy files at all, or of unknown rows, pass: opening them says so.
    """
    try:
        with path.open("rb") as file:
            names = set(read_header(file)[2].names or ())
    except ValueError:
        return
    if "exps" in names:
        raise BadInput(path, _SELF_PLAY)
    if "board" in names and "tile_65536_mask" not in names:
        raise BadInput(path, _LEGACY)
