"""Plants faults and prints those that no test sees: `python -m tests.planted --seed 1 --count 150`.

Each fault is planted by itself in a copy of the checkout. Then the quick tests run: of the module,
of its folder, of the parent folder, up to the first that fails. The faults are spread evenly over
all packages; `--package gristmill.synth` takes one package and what is below. `--seconds` is how
long the tests may look for one fault. What changes nothing stands with its reason in
`equivalent.toml`. It needs `unshare` and the right to use it. 150 faults take about an hour.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.planted.checkout import Copy, product
from tests.planted.faults import Fault, equivalents, faults


def package(module: str) -> str:
    """The package that a module counts to: one below `gristmill`, or one beside it."""
    folders = Path(module).parts[:-1] or ("gristmill",)
    return ".".join(folders[: 2 if folders[0] == "gristmill" else 1])


def drawn(sources: Mapping[str, str], seed: int, only: str) -> Iterator[Fault]:
    """Faults without end, a package after the other; those that change nothing are left out.

    sources: path and text of each module.
    seed: of the draw.
    only: dotted name of the package to take; empty for all.
    """
    chance = random.Random(seed)
    packages = defaultdict[str, list[str]](list)
    for module in sorted(sources):
        dotted = module.removesuffix(".py").replace("/", ".")
        if f"{dotted}.".startswith(f"{only}.") or not only:
            packages[package(module)].append(module)
    known, seen = equivalents(), set[tuple[str, str, str, str]]()
    while packages:
        for name, names in sorted(packages.items()):
            while names:
                chosen = chance.choice(names)
                found = [
                    fault
                    for fault in faults(chosen, sources[chosen])
                    if fault.key not in known and fault.key not in seen
                ]
                if found:
                    break
                names.remove(chosen)
            else:
                del packages[name]
                continue
            fault = chance.choice(found)
            seen.add(fault.key)
            yield fault


def main(arguments: list[str] | None = None) -> int:
    """Print each fault and what saw it, then the share that was seen."""
    parser = argparse.ArgumentParser(prog="tests.planted", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--package", default="")
    parser.add_argument("--seconds", type=float, default=300.0)
    asked = parser.parse_args(arguments)
    survived, number = 0, 0
    with tempfile.TemporaryDirectory(prefix="gristmill-planted-") as scratch:
        copy = Copy.of_checkout(Path(scratch), asked.seconds)
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
