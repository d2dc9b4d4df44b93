"""How much of a long suite a run does: all of it, or a sample of so many seconds by a seed.

A long suite is one fuzzer or one matrix, such as the kills of a build. Two variables are read:

GRISTMILL_SLOW_SECONDS  about how many seconds each long suite takes, and slow tests of a sample or
                        of a live instance come a fifth of the time; unset, each does all of it
GRISTMILL_SEED          which sample it takes; default the commit, so that each commit takes another

`.ci/run` sets both and prints the seed; `make soak` and `make fuzz` set neither.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar

from tests.paths import CHECKOUT

SECONDS = "GRISTMILL_SLOW_SECONDS"
SEED = "GRISTMILL_SEED"

NOW = 0.2
"""The share of slow tests that a run with a budget takes, of those that it may leave out."""

LEFT = 0.6
"""The share of files that take long which `make test` leaves to the slow tests of `.ci/run`."""

Item = TypeVar("Item")


def seconds() -> float | None:
    """The seconds of each long suite; None where each does all of it."""
    value = os.environ.get(SECONDS, "")
    if not value:
        return None
    if not float(value) > 0:
        raise ValueError(f"{SECONDS} is {value!r}: give a number of seconds above 0")
    return float(value)


@cache
def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:12] or "no commit"


def seed() -> str:
    """What chooses the samples: GRISTMILL_SEED, else the first 12 digits of the commit."""
    return os.environ.get(SEED, "") or _commit()


def dice(suite: str) -> random.Random:
    """Random numbers for a suite: the same for one seed and one name.

    suite: its name.
    """
    return random.Random(f"{seed()} {suite}")


def count(whole: int, each_second: float) -> int:
    """How many examples a suite makes.

    whole: the number without a budget.
    each_second: how many it makes in a second, about.
    """
    budget = seconds()
    return whole if budget is None else max(1, min(whole, int(budget * each_second)))


def chosen(suite: str, items: Sequence[Item], each: float) -> list[Item]:
    """The items that a suite takes, in their order, at least one; for parameters of tests.

    suite: its name.
    items: all of them.
    each: seconds that one takes, about.
    """
    number = count(len(items), 1 / each)
    picked = set(dice(suite).sample(range(len(items)), number))
    return [item for place, item in enumerate(items) if place in picked]


def is_dealt(name: str, share: float) -> bool:
    """Whether a test is of the share that the seed gives to `make test`.

    name: of the test.
    share: how many of such tests are, from 0 to 1.
    """
    return dice(f"dealt {name}").random() < share


def is_left(file: str) -> bool:
    """Whether `make test` leaves the tests of a file that takes long to `.ci/run`.

    file: its path.
    """
    return is_dealt(f"left {file}", LEFT)


def is_for_later(name: str) -> bool:
    """Whether a run with a budget leaves a slow test to the runs of other commits.

    name: of a test that is of a sample, or of a file whose tests start Dagster.
    """
    return seconds() is not None and not is_dealt(f"slow {name}", NOW)


def sample(suite: str, items: Sequence[Item], share: float = 1.0, least: int = 1) -> Iterator[Item]:
    """Yield the items that a suite takes: all in their order, or some until the time is over.

    suite: its name.
    items: all of them.
    share: part of the seconds that is for these items; default 1, all of them.
    least: number of items that are yielded whatever time they take; default 1.
    """
    budget = seconds()
    if budget is None:
        yield from items
        return
    end = time.monotonic() + budget * share
    for number, item in enumerate(dice(suite).sample(items, len(items))):
        if number >= least and time.monotonic() > end:
            return
        yield item
