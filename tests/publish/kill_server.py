"""Runs builds to be killed, each in a forked process of its own.

Started once under `killpoint.so`, it has everything imported, so that a build
costs a fork and not a start of Python. Pool workers are spawned by the forked
process as everywhere else. Reads one JSON request a line, answers with the
process id and the exit status of the building process.
"""

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gristmill.provenance import environment
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from tests.publish.scenarios import SCENARIOS


def _of_scenario(request: dict[str, Any]) -> Build:
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
