"""What small commands cost, beside the import of Dagster alone.

Run from the checkout after `make run`: python -m bench.small_commands [--root DATA_ROOT]. It calls
each command on the data root and the instance of the checkout, and prints the least CPU seconds of
some calls, those of its children included, and their ratio to `import dagster` in the same run.
The sample of Domino is built again. Status 1 where a ratio is above its bound.
"""

from __future__ import annotations

from bench import kit

_ALONE = ("-c", "import dagster")
_DOMINO = ("puzzles/domino", "--partition", "domino-sample", "--rebuild")
# The arguments of each command, and the most that it may cost in imports of Dagster.
_BOUNDS = {
    ("--help",): 0.5,
    ("ls",): 0.5,
    ("doctor",): 0.8,
    ("materialize", "--all"): 1.0,
    ("materialize", *_DOMINO): 4.4,
}


def commands(given: kit.Given) -> None:
    calls = [_ALONE, *(("-m", "gristmill.cli", *words) for words in _BOUNDS)]
    root = {"GRISTMILL_DATA": str(given.root.absolute())}
    # In turn, so that what else the machine does weighs on all alike.
    rounds = [[kit.python(words, root) for words in calls] for _ in range(given.rounds)]
    alone, *least = map(min, zip(*rounds, strict=True))
    print(f"import dagster: CPU s {alone:.2f}")
    for (words, bound), seconds in zip(_BOUNDS.items(), least, strict=True):
        what = f"gristmill {' '.join(words)}: CPU s {seconds:.2f}, ratio"
        kit.bounded(what, seconds / alone, most=bound)


if __name__ == "__main__":
    kit.main(__doc__, commands, root=kit.CHECKOUT / "data", rounds=4)
