"""The builds of 2048 as a run without a config makes them: see `Family.builds`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assets.family import NO_CHOICES
from resources import Lake

if TYPE_CHECKING:
    from gristmill.publish.build import Build


def _pack(lake: Lake, key: str | None) -> Build:
    from assets.macroxue import builds

    return builds.pack_build(lake, NO_CHOICES, key)


def _values(lake: Lake, key: str | None) -> Build:
    from assets.macroxue import builds

    return builds.values_build(lake, NO_CHOICES, key)


def _pool(lake: Lake, key: str | None) -> Build:
    from assets.macroxue import builds

    return builds.pool_build(lake, NO_CHOICES, key)


BUILDS = {"macroxue/pack": _pack, "macroxue/values": _values, "macroxue/pool": _pool}
