"""Proof that NumPy draws the numbers of an order now that it drew when a state was written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gristmill.contract import GristmillError

_DIGITS: Final = 8
_DRAWN: Final = 1000


def stream_of(generator: Any) -> dict[str, str]:
    """What a state says of its stream: `stream`, eight digits, and `numpy`, the version.

    generator: a new `np.random.Generator` of the kind and the seed of the order; it is drawn from.

    The digits are of a permutation, and of integers in ranges of many widths.
    """
    widths = np.append(np.arange(_DRAWN), 1 << np.arange(62)) + 1
    drawn = generator.permutation(_DRAWN), generator.integers(0, widths, dtype=np.int64)
    digest = hashlib.sha256(np.concatenate(drawn).astype("<i8").tobytes())
    return {"stream": digest.hexdigest()[:_DIGITS], "numpy": np.__version__}


def refuse_other_stream(state: Mapping[str, Any], generator: Any) -> None:
    """Raise GristmillError where a state was written with another stream than is drawn here.

    state: with what `stream_of` returned; one of an earlier version has nothing, and is taken.
    """
    here = stream_of(generator)
    found = state.get("stream", here["stream"])
    if found != here["stream"]:
        raise GristmillError(
            f"the state is of another random stream: its digits are {found!r:.20}, drawn by NumPy"
            f" {state.get('numpy')!r:.20}; here NumPy {here['numpy']!r} draws {here['stream']!r}:"
            " continue with the NumPy that wrote it, or begin a new pass"
        )
