"""The launcher for runs on a Ray cluster, which `dagster.yaml` may name: docs/clusters.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster_ray import RayRunLauncher

from assets import worker
from commands import dagster_private
from gristmill import families
from resources import Lake

_CONFIG = "dagster-ray/config"
"""The tag of a run that says what dagster-ray asks of the cluster."""


class RayAssetLauncher(RayRunLauncher):
    """dagster-ray's launcher, which asks for the processors and the memory of a run's assets.

    assets: by the key of an asset, `num_cpus`, `num_gpus`, `memory` in bytes, or `resources`.

    What decides, the first first: the tag `dagster-ray/config` of the run; `assets`, the most of
    all assets of the run; `workers` of an asset in the data root's gristmill.toml, where it is
    above 1; the block `ray`.
    """

    def __init__(self, assets: Mapping[str, Mapping[str, Any]], **options: Any) -> None:
        self.assets = assets
        super().__init__(**options)

    @classmethod
    def config_type(cls) -> Any:
        """The config in `dagster.yaml`: `ray`, and `assets`."""
        each = {
            "num_cpus": dg.Field(dg.Noneable(int), is_required=False),
            "num_gpus": dg.Field(dg.Noneable(int), is_required=False),
            "memory": dg.Field(dg.Noneable(int), is_required=False),
            "resources": dg.Field({str: float}, is_required=False),
        }
        inherited: Any = super().config_type()
        assets = dg.Field({str: each}, is_required=False, default_value={})
        return {**inherited, "assets": assets}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> RayAssetLauncher:
        """The launcher of a block of `dagster.yaml`."""
        return cls(config_value["assets"], inst_data=inst_data, **config_value["ray"])

    def needs(self, run: dg.DagsterRun) -> dict[str, Any]:
        """Returns what the assets of a run need, without what is left to the block `ray`.

        Raises BadInput if gristmill.toml has a wrong table of one of the assets.
        """
        needed: dict[str, Any] = {}
        for key in run.asset_selection or ():
            name = key.to_user_string()
            wanted = dict(self.assets.get(name, {}))
            if wanted.get("num_cpus") is None and (workers := _workers(name)) > 1:
                wanted["num_cpus"] = workers
            for kind, amount in wanted.items():
                if kind == "resources":
                    known = needed.setdefault(kind, {})
                    known |= {each: max(known.get(each, 0), amount[each]) for each in amount}
                elif amount is not None:
                    needed[kind] = max(needed.get(kind, 0), amount)
        return needed

    def _launch_ray_job(self, submission_id: str, entrypoint: str, run: dg.DagsterRun) -> None:
        asked = self.needs(run) | json.loads(run.tags.get(_CONFIG, "{}"))
        # Before the job, which writes events of its own.
        self._instance.add_run_tags(run.run_id, {worker.CLUSTER: submission_id})
        tagged = run.with_tags({**run.tags, _CONFIG: json.dumps(asked)})
        super()._launch_ray_job(submission_id, entrypoint, tagged)

    def check_run_worker_health(self, run: dg.DagsterRun) -> Any:
        """Returns that a run lives, or that it is gone; unknown counts as alive.

        Where it is no Ray job, as one of `gristmill materialize`, its process on this machine
        counts: dagster-ray would take it for dead.
        """
        if worker.CLUSTER not in run.tags:
            return dagster_private.health_of_process(self._instance, run)
        answer = super().check_run_worker_health(run)
        if not dagster_private.is_unknown(answer):
            return answer
        # A head that was started again has forgotten its jobs, whose processes ended with it.
        is_forgotten = "does not exist" in str(answer.msg)
        return dagster_private.health(
            "the Ray cluster does not know the job of the run" if is_forgotten else None
        )


def _workers(asset: str) -> int:
    """The processes that gristmill.toml gives an asset; 0 where it says nothing."""
    if asset not in families.tables():
        return 0
    return int(Lake().settings(asset).get("workers", 0))
