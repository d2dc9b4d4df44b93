"""`gristmill verify`, laws and all, beside sha256sum over the same files: CPU seconds of processes.

Run from the checkout: `python -m bench.verify`. A corpus of text is built in memory up to its token
shards, with as many tokens as `--tokens` says: some 300 MB at 30 million. sha256sum reads all files
but those of `.gristmill`. Each process is a new one; modules are compiled before.
"""

from __future__ import annotations

import os
import subprocess
from statistics import median
from typing import Final

from bench import kit
from bench.billion import _SETTINGS, _called, _command, _root, _write

MOST: Final = 1.8


def verify(given: kit.Given) -> None:
    """Print the ratio."""
    files, root = given.scratch / "own", _root(given.scratch / "root")
    _write(files, int(float(given.tokens)), is_mutated=True)
    (root / "gristmill.toml").write_text(_SETTINGS)
    os.environ["PYTHONPYCACHEPREFIX"] = str(given.scratch / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    _called(_command("build", files, "--data-root", root))
    every = [
        "find",
        str(root),
        "-path",
        f"{root}/.gristmill",
        "-prune",
        "-o",
        "-type",
        "f",
        "-print",
    ]
    listed = subprocess.run(every, capture_output=True, text=True, check=True).stdout.split()
    _called(_command("verify", root))
    ratios = []
    for _ in range(given.rounds):
        ours, theirs = _called(_command("verify", root)), _called(["sha256sum", *listed])
        ratios.append(ours.seconds / theirs.seconds)
        print(f"verify {ours.seconds:.2f} CPU s, sha256sum {theirs.seconds:.2f}")
    kit.bounded("verify with laws to sha256sum, CPU seconds", median(ratios), most=MOST)


if __name__ == "__main__":
    kit.main(__doc__, verify, scratch_in=kit.MEMORY, tokens="3e7", rounds=5)
