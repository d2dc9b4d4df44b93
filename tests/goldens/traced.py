"""Which functions of Gristmill a builder executes: `python -m tests.goldens.traced`.

Each line of its input names an asset and a file, with a tab between. The partitions of the asset
are built again in the data root of `GRISTMILL_DATA`, in a forked process that has imported Dagster
and no builder, and the file gets a line for each function that the builder called, in this process
and in those that it starts. The answer is the exit status.
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.publish.build import Build
from gristmill.untrusted.child import _Child
from tests.goldens.hook import sitecustomize as hook
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot, build_again

HOOK = Path(hook.__file__).parent


def _noted(make: Callable[..., Any], file: str) -> Callable[..., Any]:
    """A builder that notes what it executes."""

    def noted(attempt: Any) -> Any:
        _Child.end_idle()  # it would not note what it executes
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRACED_FILE", file)
            patch.setenv("TRACED_FOLDER", f"{CHECKOUT}/gristmill/")
            patch.setenv("PYTHONPATH", str(HOOK))
            hook.begin()
            try:
                return make(attempt)
            finally:
                hook.end()
                _Child.end_idle()  # the account of the drop, which decides no byte, uses it

    return noted


def trace(asset: str, file: str) -> None:
    """Build all partitions of an asset again, and note what their builder executes."""
    root = SampleRoot(Path(os.environ["GRISTMILL_DATA"]), Path(os.environ["DAGSTER_HOME"]))
    check = Build.__post_init__

    def noting(build: Build) -> None:
        check(build)
        object.__setattr__(build, "make", _noted(build.make, file))

    with pytest.MonkeyPatch.context() as patch, root.graph() as graph:
        patch.setattr(Build, "__post_init__", noting)
        for _, record in root.records():
            if record.asset == asset:
                outcome = build_again(graph, record)
                assert outcome.status == "built", outcome


def main() -> None:
    """Answer each line of the input."""
    from commands import graph  # noqa: F401  a forked process has it imported

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(2, 1)
                trace(*line.rstrip("\n").split("\t"))
                code = 0
            except BaseException:  # noqa: BLE001  it goes to the log, which the test reads
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
