"""The builds of chess as a run without a config makes them: see `Family.builds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from assets.chess.month import CACHE, ELITE, GAMES, SPLICES, VALID
from assets.family import NO_CHOICES, BuildOf
from resources import EliteArchive, Lake

if TYPE_CHECKING:
    from gristmill.publish.build import Build


def _elite(lake: Lake, key: str | None) -> Build:
    from assets.chess import builds

    return builds.elite_build(lake, EliteArchive(), key)


def _of_month(name: str) -> BuildOf:
    def build(lake: Lake, key: str | None) -> Build:
        from assets.chess import builds

        described: Callable[..., Build] = getattr(builds, name)
        return described(lake, NO_CHOICES, key)

    return build


BUILDS: dict[str, BuildOf] = {
    ELITE: _elite,
    VALID: _of_month("valid_build"),
    GAMES: _of_month("dataset_build"),
    CACHE: _of_month("cache_build"),
    SPLICES: _of_month("splice_build"),
}
