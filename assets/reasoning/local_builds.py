"""What `gristmill build` builds: splits and manifests without a Dagster run, shards also by rank.

See also `builds.py`: inputs, config, builder and laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assets.family import NO_CHOICES, Local
from assets.reasoning.assets import AlignRun, NormalizeRun, TokenizeRun
from assets.reasoning.drops import available
from assets.reasoning.records import (
    ALIGNMENT,
    MANIFEST,
    NORMALIZED,
    RAW_MANIFEST,
    SHARDS,
    published_partitions,
)
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import PARTITIONS
from resources import Lake

if TYPE_CHECKING:
    from gristmill.publish.build import Build
    from gristmill.publish.by_rank import Ranks

Values = Mapping[str, Any]
"""Values of the config that come before those of `gristmill.toml`."""


def _normalized(lake: Lake, key: str, values: Values) -> Build:
    from assets.reasoning import builds

    return builds.normalized_build(lake, NormalizeRun(**values), key)


def _shards(lake: Lake, key: str, values: Values) -> Build:
    from assets.reasoning import builds

    return builds.shards_build(lake, TokenizeRun(**values), key)


def _shard_ranks(lake: Lake, key: str, values: Values) -> Ranks:
    from assets.reasoning import builds
    from gristmill.reasoning.builders.shard_ranks import SplitRanks
    from gristmill.reasoning.format.corpora import corpus_and_split

    corpus, split = corpus_and_split(key)
    config = builds.shards_config(lake, TokenizeRun(**values), corpus)
    jsonl = lake.root / names.NORMALIZED / names.normalized(corpus.name, split)
    return SplitRanks(jsonl, replace(config, vocabulary=lake.root / builds.VOCABULARY))


def _alignment(lake: Lake, key: str, values: Values) -> Build:
    from assets.reasoning import builds

    return builds.alignment_build(lake, AlignRun(**values), key)


def _raw_manifest(lake: Lake, key: str, values: Values) -> Build:
    from assets.reasoning import dataset_builds

    return dataset_builds.raw_manifest_build(lake, key)


def _manifest(lake: Lake, key: str, values: Values) -> Build:
    from assets.reasoning import dataset_builds

    return dataset_builds.manifest_build(lake, key)


def report_of_now(lake: Lake, key: str | None) -> Build:
    """Returns the build of a day's report, to compare it with the record.

    Raises what `report_build` raises.
    """
    from assets.reasoning import dataset_builds

    return dataset_builds.report_build(lake, NO_CHOICES, "", key)


def _manifest_of(folder: str) -> Callable[[Lake], Sequence[str]]:
    """What returns the manifest's name if a folder has a split that it would list."""
    return lambda lake: [names.MANIFEST_RECORD] if published_partitions(lake, folder) else []


def _published_in(folder: str) -> Callable[[Lake], Sequence[str]]:
    """What returns the splits that are published in a folder."""
    return lambda lake: published_partitions(lake, folder)


def _dropped(lake: Lake) -> Sequence[str]:
    present = available(lake)
    return [key for key in PARTITIONS if key in present]


LOCAL = {
    NORMALIZED: Local(_normalized, _dropped),
    SHARDS: Local(_shards, _published_in(names.NORMALIZED), _shard_ranks),
    ALIGNMENT: Local(_alignment, _published_in(names.TOKENIZED)),
    RAW_MANIFEST: Local(_raw_manifest, _manifest_of(names.NORMALIZED)),
    MANIFEST: Local(_manifest, _manifest_of(names.TOKENIZED)),
}
