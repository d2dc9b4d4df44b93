"""Runs builds to be killed, each in a forked process of its own.

Started once under `killpoint.so`, it has everything imported, so that a build
costs a fork and not a start of Python. Pool workers are spawned by the forked
process as everywhere else. Reads one JSON request a line, answers with the
process id and the exit status of the building process.

`serve_real` does the same for assets of the project. What is to be built is asked from the assets
themselves in the building process: `assets.publishing.publish` is caught, so that `publish` runs
armed.
"""

import ctypes
import importlib
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gristmill.history import versions
from gristmill.history.rows import Kept
from gristmill.provenance import environment
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from tests.publish.scenarios import SCENARIOS


def _rows(folder: Path, _: Any) -> Iterator[Kept]:
    """The lines of the trace of a tiny artifact, as a family gives its rows."""
    with next(folder.glob("*trace.jsonl")).open("rb") as file:
        yield from (Kept("", str(n), line, "", -1, -1, n) for n, line in enumerate(file))


def _of_scenario(request: dict[str, Any]) -> Build:
    versions.history_of = lambda _: _rows
    return SCENARIOS[request["scenario"]].build(Path(request["root"]), request["workers"])


def serve(build_of: Callable[[dict[str, Any]], Build] = _of_scenario) -> None:
    """Answer requests until there are no more. build_of: makes a request a build, unarmed."""
    environment.git_sha()
    environment.libraries()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _build(request, build_of)
        _, status = os.waitpid(child, 0)
        print(json.dumps([child, os.waitstatus_to_exitcode(status)]), flush=True)  # noqa: T201


def _build(request: dict[str, Any], build_of: Callable[[dict[str, Any]], Build]) -> None:
    """Be the main process of a build: its session's leader, its environment the request's."""
    os.setsid()
    code = 1
    try:
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        build = build_of(request)
        os.environ.update(request["environment"])
        ctypes.CDLL(None).killpoint_arm()
        published = publish(build, rebuild=request.get("rebuild", False))
        print("rebuilt" if published.rebuilt else "unchanged", flush=True)  # noqa: T201
        code = 0
    except BaseException:  # noqa: BLE001 - it goes to the log, which the test reads
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve_real() -> None:
    """Answer requests for builds of assets."""
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import gristmill
    from commands import graph  # noqa: F401

    # A forked process has everything imported. No thread may run before the fork.
    for module in pkgutil.walk_packages(gristmill.__path__, "gristmill."):
        if ".build" in module.name or ".laws" in module.name:
            importlib.import_module(module.name)
    serve(_of_asset)


def _of_asset(request: dict[str, Any]) -> Any:
    """The build that the asset asks for."""
    import dagster as dg

    from assets import publishing
    from commands.graph import INBOXES, Graph, register
    from resources import Lake

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
