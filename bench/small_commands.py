"""What small commands cost, beside the import of Dagster alone.

Run from the checkout after `make run`: python -m bench.small_commands [--root DATA_ROOT]. It calls
each command on the data root and the instance of the checkout, and prints the least CPU seconds of
some calls, those of its children included, and their ratio to `import dagster` in the same run.
The sample of Domino is built again. Status 1 where a ratio is above its bound.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.servers import CHECKOUT

_ALONE = ("-c", "import dagster")
_DOMINO = ("puzzles/domino", "--partition", "domino-sample", "--rebuild")
# The arguments of each command, and the most that it may cost in imports of Dagster.
_BOUNDS = {
    ("--help",): 0.5,
    ("ls",): 0.9,
    ("doctor",): 0.8,
    ("materialize", "--all"): 5.2,
    ("materialize", *_DOMINO): 4.4,
}


def children_seconds(arguments: Sequence[str], variables: Mapping[str, str]) -> float:
    """CPU seconds of one call of Python from the checkout."""
    environment = {**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=CHECKOUT, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=CHECKOUT / "data")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    called = {words: ("-m", "gristmill.cli", *words) for words in _BOUNDS}
    root = {"GRISTMILL_DATA": str(given.root.absolute())}
    least = dict.fromkeys([_ALONE, *called.values()], float("inf"))
    # In turn, so that what else the machine does weighs on all alike.
    for _ in range(given.rounds):
        for arguments in least:
            least[arguments] = min(least[arguments], children_seconds(arguments, root))
    missed = 0
    print(f"import dagster: CPU s {least[_ALONE]:.2f}")
    for words, bound in _BOUNDS.items():
        ratio = least[called[words]] / least[_ALONE]
        missed += ratio > bound
        print(
            f"gristmill {' '.join(words)}: CPU s {least[called[words]]:.2f} | ratio {ratio:.2f} | "
            f"required <= {bound}"
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
