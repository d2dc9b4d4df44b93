"""The program that outlives `gristmill ui`, to end what it started: `python keeper.py FOLDER`.

It leads the process group of the services. Its standard input is a pipe that `gristmill ui` holds
open: once that ends, however it ends, the whole group is killed and FOLDER removed. It holds the
lock of the instance so long. It imports nothing of ours, since it starts with every `gristmill ui`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys


def keep(folder: str) -> None:
    """Wait for the end of standard input, then remove `folder` and kill this process group."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    keep(sys.argv[1])
