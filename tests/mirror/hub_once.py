"""Pushes once to a dataset repository, as a program that may be killed: `hub_once ROOT URL`."""

import sys
from pathlib import Path

from gristmill.mirror import hub


def main() -> None:
    """Send one file after another; status 1 where an artifact failed."""
    hub._SMALL = 500  # type: ignore[misc]
    done = hub.push(Path(sys.argv[1]), sys.argv[2], parallel=1)
    sys.exit(any(each.error for each in done))


if __name__ == "__main__":
    main()
