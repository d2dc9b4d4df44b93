"""Which files choose the config of Harmony shards and Megatron datasets."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from assets.choices import Choices
from assets.synth.kd_builds import FULL, SMOKE, Dataset
from assets.synth.records import FOLDER, HARMONY, drop_of_shard, record_path
from gristmill import provenance
from gristmill.settings.tables import Settings
from resources import Lake


def harmony_settings(lake: Lake, key: str) -> Settings:
    """Returns what files give for a Harmony shard, by the drop that it was built from."""
    given = lake.settings(HARMONY, _drop(lake, key))
    # An empty text in a file says that there is no such message.
    none = {"developer": None} if given.get("developer") == "" else {}
    return Settings({**given, **none}, given.file)


def _drop(lake: Lake, key: str) -> Path | None:
    path = record_path(lake, FOLDER, key)
    return drop_of_shard(lake, provenance.read_record(path)) if path.exists() else None


def _kd_settings(dataset: Dataset, lake: Lake, key: str) -> Settings:
    return lake.settings(dataset.shards, _drop(lake, key))


CHOICES = {
    HARMONY: Choices(HARMONY, harmony_settings, left_out=("num_shards",)),
    **{
        dataset.shards: Choices(dataset.shards, partial(_kd_settings, dataset))
        for dataset in (FULL, SMOKE)
    },
}
