"""Folders that nobody can write, root included: bind mounts in a namespace of the command."""

from collections.abc import Sequence
from pathlib import Path

from tests.paths import ran
from tests.requirements import cannot_run

_MOUNT = """
count=$1; shift
while [ "$count" -gt 0 ]; do
    mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
    shift; count=$((count - 1))
done
exec "$@"
"""


def read_only(folders: Sequence[Path], words: Sequence[str | Path]) -> list[str]:
    """The command line that runs `words` where nobody can write into `folders`.

    Skips the test where this machine makes no mounts, or fails it where they are required.
    """
    places = [str(folder) for folder in folders]
    start = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(len(places)), *places]
    try:
        done = ran([*start, "true"])
    except OSError as error:
        cannot_run("mounts", f"there is no unshare: {error}")
    if done.returncode != 0:
        cannot_run("mounts", f"no read-only mount: {done.stderr.strip()}")
    return [*start, *map(str, words)]
