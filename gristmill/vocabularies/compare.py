"""The sample of a build that both engines encode, and the error where they differ.

Source: `docs/formats/vocabularies.md#sample-of-a-build`.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError

SHARE: Final = 256
"""One row of so many is encoded by both engines, and the first one of each part."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHOWN: Final = 8


class EnginesDiffer(GristmillError):
    """gigatoken's tokens are not tiktoken's. No row is at fault, and nothing may be published."""


def sampled(source: str, first_row: int, rows: int) -> npt.NDArray[np.int64]:
    """Return which of some rows are in the sample, counted from 0, ascending.

    The sample depends on nothing else, so not on the number of workers.
    """
    numbers = np.arange(first_row, first_row + rows, dtype=np.uint64)
    seed = np.uint64(zlib.crc32(source.encode(errors="surrogatepass")))
    mixed = ((numbers ^ (seed << np.uint64(32))) + np.uint64(1)) * _MIX
    # The upper half decides: the lower bits of a product know only lower bits.
    return np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(SHARE) == 0)


def check_equal(where: str, fast: npt.NDArray[np.int32], reference: npt.NDArray[np.int32]) -> None:
    """Raise EnginesDiffer where two encodings of the same texts differ.

    fast: tokens that are about to be published, int32 [N].
    reference: tokens with tiktoken alone, int32 [M].
    """
    if np.array_equal(fast, reference):
        return
    both = min(len(fast), len(reference))
    places = np.flatnonzero(fast[:both] != reference[:both])
    place = int(places[0]) if len(places) else both
    shown = slice(place, place + _SHOWN)
    raise EnginesDiffer(
        f"{where}: the engines differ at token {place}: gigatoken gives {len(fast)} tokens, "
        f"there {fast[shown].tolist()}, tiktoken {len(reference)} tokens, there "
        f"{reference[shown].tolist()}. Nothing is published. The row is not at fault: "
        'set `engine = "tiktoken"` and build again, and report this text'
    )
