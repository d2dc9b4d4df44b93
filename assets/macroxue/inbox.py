"""The runs that a drop of annotations starts: those of the views that name it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import dagster as dg

from assets.family import Definitions
from assets.inbox import Start
from gristmill.data_root import DataRoot
from gristmill.macroxue.raw.view_file import views_with


def starts_of_annotations(
    built: Definitions, instance: dg.DagsterInstance, path: Path, _settled: Collection[str]
) -> list[Start]:
    """Returns the runs of annotations: one for each view that names them and has arrived."""
    arrived = set(instance.get_dynamic_partitions("macroxue_views"))
    views = views_with(DataRoot(path.parents[2]), path.name)
    return [Start((built["macroxue/training_view"],), view) for view in views if view in arrived]
