"""Annotations start the views that name them and have arrived."""

from __future__ import annotations

import dagster as dg

from assets.macroxue import FAMILY
from resources.lake import Lake


def test_annotations_start_the_views_that_name_them(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    views = lake.inbox("views")
    views.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("one", 'pack = "a"\nannotations = "s"\n'),
        ("two", 'pack = "a"\nannotations = "other"\n'),
        ("waits", 'pack = "a"\nannotations = "s"\n'),
        ("wrong", "pack = 3\n"),
    ):
        (views / f"{name}.toml").write_text(text)
    instance.add_dynamic_partitions("macroxue_views", ["one", "two", "wrong"])
    (inbox,) = (each for each in FAMILY.inboxes if each.folder == "annotations")
    assert inbox.starts is not None
    (start,) = inbox.starts(instance, lake.inbox("annotations") / "s", {"s"})
    assert (start.partition, start.waiting) == ("one", "")
    (asset,) = start.assets
    assert asset.key.to_user_string() == "macroxue/training_view"
