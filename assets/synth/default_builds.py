"""The builds of SYNTH as a run without a config makes them: see `Family.builds`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from assets.family import NO_CHOICES, BuildOf
from assets.synth import harmony_builds, kd_builds
from assets.synth.kd_builds import FULL, SMOKE, Dataset
from assets.synth.records import HARMONY, HARMONY_MANIFEST
from resources import Lake

if TYPE_CHECKING:
    from gristmill.publish.build import Build


def _harmony(lake: Lake, key: str | None) -> Build:
    return harmony_builds.harmony_build(lake, NO_CHOICES, key)


def _shards(dataset: Dataset, lake: Lake, key: str | None) -> Build:
    return kd_builds.kd_build(lake, dataset, NO_CHOICES, key)


def _manifest(dataset: Dataset, lake: Lake, key: str | None) -> Build:
    return kd_builds.kd_manifest_build(lake, dataset, key)


BUILDS: dict[str, BuildOf] = {
    HARMONY: _harmony,
    HARMONY_MANIFEST: harmony_builds.harmony_manifest_build,
    **{dataset.shards: partial(_shards, dataset) for dataset in (FULL, SMOKE)},
    **{dataset.manifest: partial(_manifest, dataset) for dataset in (FULL, SMOKE)},
}
