"""States of a loader: what a file of one may have become, and what the loader then gives."""

import json
import warnings
from functools import cache
from typing import Any

from gristmill.contract import GristmillError
from tests.fuzz.parser import HUNDRED_THOUSAND, JSON, Parsers

PARSERS = Parsers()
_STEPS = 12


def _loader() -> Any:
    from gristmill.loading import Loader, Mixture, Plan
    from tests.loading.numbered import Numbered

    sources = tuple(Numbered(f"s{n}", [0, 10], "1") for n in range(2))
    return Loader(Plan(Mixture(sources, (30, 30)), seed=7), 4, form="numpy")


@cache
def _run() -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The state before each step of a run, and the samples of the step."""
    loader, states, given = _loader(), [], []
    states.append(loader.state_dict())
    for batch, _ in zip(loader, range(_STEPS), strict=False):
        given.append(batch["value"].tolist())
        states.append(loader.state_dict())
    return states, given


@PARSERS.add(
    "loader_state",
    "gristmill.loading.state",
    covers=("gristmill.loading.plan",),
    inputs=HUNDRED_THOUSAND,
    words=(*JSON, b'"sha256": ', b'"segments": [[0, [30, 30]]]', b'"batches": [[0, 0, 4]]'),
)
def state(data: bytes) -> None:
    """A state with a digest is refused, or is one that the run wrote, and gives its samples."""
    try:
        read = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise GristmillError(str(error)) from error
    states, given = _run()
    loader = _loader()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader.load_state_dict(read)
    if isinstance(read, dict) and "sha256" in read:
        at = states.index(read)
        assert next(iter(loader))["value"].tolist() == given[at]
