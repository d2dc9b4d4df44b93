"""What `gristmill build` builds: datasets of recipes whose input is there, without a Dagster run.

See also `builds.py`: inputs, config, builder and laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from assets.family import Local
from assets.puzzles.assets import RUNS
from gristmill.puzzles.raw.known_recipes import recipes, wanted
from resources import Lake

if TYPE_CHECKING:
    from gristmill.publish.build import Build


def _build(kind: str, lake: Lake, key: str, values: Mapping[str, Any]) -> Build:
    from assets.puzzles import builds

    return builds.puzzle_build(kind, lake, RUNS[kind](**values), key)


def _names(kind: str) -> Callable[[Lake], Sequence[str]]:
    """What returns the recipes of a kind that somebody asked for, sorted by name."""

    def asked_for(lake: Lake) -> Sequence[str]:
        every, names = recipes(lake), wanted(lake)
        return sorted(name for name in names if every[name].kind == kind)

    return asked_for


LOCAL = {f"puzzles/{kind}": Local(partial(_build, kind), _names(kind)) for kind in RUNS}
