"""Builds assets of the project under the fault layer, each in a forked process of its own.

As `kill_server.py`, for the definitions. What is to be built is asked from the assets themselves
in the building process: `assets.publishing.publish` is caught, so that `publish` runs armed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any


def serve() -> None:
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import gristmill
    from commands import graph  # noqa: F401
    from gristmill.provenance import environment

    # A forked process has everything imported. No thread may run before the fork.
    for module in pkgutil.walk_packages(gristmill.__path__, "gristmill."):
        if ".build" in module.name or ".laws" in module.name:
            importlib.import_module(module.name)
    environment.git_sha()
    environment.libraries()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _build(request)
        _, status = os.waitpid(child, 0)
        print(json.dumps([child, os.waitstatus_to_exitcode(status)]), flush=True)  # noqa: T201


def _build(request: dict[str, Any]) -> None:
    os.setsid()
    code = 1
    try:
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        build = build_of(Path(request["root"]), request["asset"], request["partition"])
        from gristmill.publish.publish import publish

        os.environ.update(request["environment"])
        ctypes.CDLL(None).killpoint_arm()
        published = publish(build, rebuild=request["rebuild"])
        print("rebuilt" if published.rebuilt else "unchanged", flush=True)  # noqa: T201
        code = 0
    except BaseException:  # noqa: BLE001 - it goes to the log, which the test reads
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def build_of(root: Path, asset: str, partition: str | None) -> Any:
    """The build that the asset asks for."""
    import dagster as dg

    from assets import publishing
    from commands.arrivals import register
    from commands.graph import INBOXES, Graph
    from resources.lake import Lake

    os.environ["GRISTMILL_DATA"] = str(root)
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
