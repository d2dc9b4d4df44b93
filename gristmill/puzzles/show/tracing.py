"""`gristmill trace` of a puzzle dataset: which example a person asks for."""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.puzzles.format.names import SET


def traced_example(request: Request) -> Iterable[Trace]:
    """Where an example came from.

    request: path is the folder of the dataset; the sample is the number of an example, from 0.
        Options: `split` (default train) and `set` (default all).

    The facts of `read.trace.Trace`, then the raw file below the data root as its record has it.

    Raises Misuse for a sample that is no number, BadInput where there is no such example,
    NotTraced where the record cannot be read.
    """
    from gristmill.puzzles.read.origins import example_origins

    split, set_name = place(request)
    return example_origins(request.path, request.number, split, set_name)


def place(request: Request) -> tuple[str, str]:
    """Split and set that a command names; train and all by default."""
    return request.options.get("split") or "train", request.options.get("set") or SET
