"""The program that outlives `gristmill ui`, to end what it started: `python keeper.py FOLDER`."""

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
