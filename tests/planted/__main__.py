"""Plants faults and prints those that no test sees: `python -m tests.planted --seed 1 --count 150`.

Each fault is planted by itself in a copy of the checkout. Then the quick tests run: of the module,
of its folder, of the parent folder, up to the first that fails. The faults are spread evenly over
all packages; `--package gristmill.synth` takes one package and what is below. `--seconds` is how
long the tests may look for one fault. What changes nothing stands with its reason in
`equivalent.toml`. It needs `unshare` and the right to use it. 150 faults take about an hour.

`--again` plants the faults of `base_line.json` in the code as it is now, and ends with 1 if a
smaller share of those that still have a place is caught. `--keep` writes that file: for the
commit, the seed and the patterns of modules left out that stand at its head.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.planted import base_line
from tests.planted.checkout import Copy, product
from tests.planted.faults import drawn


def main(arguments: list[str] | None = None) -> int:
    """Print each fault and what saw it, then the share that was seen."""
    parser = argparse.ArgumentParser(prog="tests.planted", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--package", default="")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args(arguments)
    survived, number = 0, 0
    with tempfile.TemporaryDirectory(prefix="gristmill-planted-") as scratch:
        copy = Copy.of_checkout(Path(scratch), asked.seconds)
        if asked.keep:
            base_line.keep(base_line.FILE, copy, asked.count, say)
            return 0
        if asked.again:
            return base_line.ask_again(base_line.FILE, copy, say)
        for number, fault in zip(
            range(1, asked.count + 1), drawn(product(), asked.seed, asked.package), strict=False
        ):
            by = copy.verdict(fault).by
            survived += not by
            say(f"{number} {f'caught by {by}' if by else 'SURVIVED'}: {fault}")
    if number:
        say(f"{number - survived} of {number} caught: {1 - survived / number:.1%}")
    return 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
