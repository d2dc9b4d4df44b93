"""Programs on a network of their own: Ray looks for a cloud at each start, and must find none."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.paths import CHECKOUT
from tests.requirements import cannot_run

_ALONE = ("unshare", "-n", "-p", "-f", "--kill-child", "--mount-proc")


def needs_ray() -> None:
    """Skip the test where Ray or a network of its own cannot be had."""
    try:
        import dagster_ray  # noqa: F401
        import ray  # noqa: F401
    except ImportError as error:
        cannot_run("ray", f"{error}: make engines")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        cannot_run("ray", "a network of its own needs root and unshare")


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short path, as Ray needs for its sockets."""
    folder = Path(tempfile.mkdtemp(prefix="gm-ray-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def alone(words: list[str], folder: Path, variables: Mapping[str, str]) -> str:
    """Run `python WORDS` in namespaces of network and processes; its output."""
    done = subprocess.run(
        [*_ALONE, "sh", "-c", 'ip link set lo up; "$@"', "sh", sys.executable, *words],
        cwd=CHECKOUT,
        env=os.environ
        | {
            # With the machine code that is compiled already.
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            # A job calls `dagster` by its name.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "TMPDIR": str(folder),
        }
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout
