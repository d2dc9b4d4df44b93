"""Builds assets of the project under the fault layer, each in a forked process of its own.

As `kill_server.py`, for the definitions. What is to be built is asked from the assets themselves
in the building process: `assets.publishing.publish` is caught, so that `publish` runs armed.
"""

import importlib
import os
import pkgutil
from typing import Any

from tests.publish import kill_server


def serve() -> None:
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import gristmill
    from commands import graph  # noqa: F401

    # A forked process has everything imported. No thread may run before the fork.
    for module in pkgutil.walk_packages(gristmill.__path__, "gristmill."):
        if ".build" in module.name or ".laws" in module.name:
            importlib.import_module(module.name)
    kill_server.serve(build_of)


def build_of(request: dict[str, Any]) -> Any:
    """The build that the asset asks for."""
    import dagster as dg

    from assets import publishing
    from commands.arrivals import register
    from commands.graph import INBOXES, Graph
    from resources.lake import Lake

    os.environ["GRISTMILL_DATA"] = request["root"]
    asset, partition = request["asset"], request["partition"]
    lake, found = Lake(), []

    def catch(build: Any, **_: Any) -> Any:
        found.append(build)
        raise KeyboardInterrupt

    normal, publishing.publish = publishing.publish, catch
    try:
        with dg.DagsterInstance.ephemeral() as instance:
            graph, key = Graph(instance, lake), dg.AssetKey.from_user_string(asset)
            known = graph.partitions(key)
            for inbox in sorted(INBOXES, key=lambda one: one.folder != key.path[0]):
                if known is None or partition in known.get_partition_keys(
                    dynamic_partitions_store=instance
                ):
                    break
                register(instance, lake, inbox)
            try:
                list(graph.materialize(key, [partition]))
            except BaseException:
                if not found:
                    raise
    finally:
        publishing.publish = normal
    return found[0]
